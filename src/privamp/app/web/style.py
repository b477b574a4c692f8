"""How the pages look, in light and in dark."""

CSS = """
:root { --ink: #1c2126; --soft: #57616b; --paper: #f6f8fa; --card: #ffffff; --line: #d5dbe1; --accent: #0b5cad; }
body.body--dark { --ink: #e6eaee; --soft: #a3adb7; --paper: #101418; --card: #1a2026; --line: #353d45;
  --accent: #7db8f5; }
body { background: var(--paper); color: var(--ink);
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
.nicegui-content { padding: 0; gap: 0; align-items: stretch; }
.top { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; align-items: baseline; padding: .8rem 1rem;
  background: var(--card); border-bottom: 1px solid var(--line); width: 100%; }
.top b { font-size: 1.05rem; }
.top a { color: var(--soft); text-decoration: none; padding: .15rem 0; border-bottom: 2px solid transparent; }
.top a[aria-current="page"] { color: var(--accent); border-color: var(--accent); }
.page { display: grid; grid-template-columns: minmax(0, 20rem) minmax(0, 1fr); gap: 1rem; padding: 1rem;
  max-width: 90rem; width: 100%; margin: 0 auto; }
.head { grid-column: 1 / -1; }
.head h1 { font-size: 1.5rem; line-height: 1.2; font-weight: 650; margin: 0; }
.head p { margin: .25rem 0 0; color: var(--soft); max-width: 50rem; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: 1rem; width: 100%;
  display: block; min-width: 0; box-shadow: none; }
.side { align-self: start; } .results { display: grid; gap: 1rem; min-width: 0; }
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem; min-width: 0; }
.summary { font-size: 1.1rem; font-weight: 600; margin: 0; }
.note { color: #9a5b00; margin: .3rem 0 0; } body.body--dark .note { color: #f0b35a; }
.control { margin-bottom: .55rem; width: 100%; }
.control .name { display: flex; justify-content: space-between; align-items: center; font-size: .92rem; gap: .5rem; }
.control .hint { color: var(--soft); font-size: .8rem; line-height: 1.25; }
.control .name .q-field { width: 7rem; }
input[type="range"] { width: 100%; accent-color: var(--accent); margin: .35rem 0; cursor: pointer; }
input[type="range"]:focus-visible { outline: 2px solid var(--accent); outline-offset: 3px; border-radius: .3rem; }
.table-text { font-family: ui-monospace, Menlo, Consolas, monospace; font-size: .8rem; line-height: 1.35;
  white-space: pre; overflow-x: auto; }
.pair > :only-child { grid-column: 1 / -1; }
.control .buttons { margin: .2rem 0; }
.scroll + .scroll { margin-top: 1.2rem; }
.chart h2 { font-size: .92rem; line-height: 1.3; font-weight: 600; margin: 0 0 .25rem; color: var(--soft); }
.plot, .nicegui-echart { height: 19rem; width: 100%; }
.scroll { overflow-x: auto; } .scroll:focus-visible, summary:focus-visible { outline: 2px solid var(--accent); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: .95rem; }
caption { text-align: left; color: var(--soft); padding-bottom: .4rem; font-size: .92rem; }
th, td { text-align: left; padding: .35rem .7rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
thead th { color: var(--soft); font-weight: 600; font-size: .85rem; } tbody th { font-weight: 500; }
.number { text-align: right; white-space: nowrap; }
summary { cursor: pointer; display: list-item; } details p { margin: .4rem 0 0; font-size: .85rem; }
details ul { margin: 0; padding-left: 1.1rem; list-style: disc; font-size: .85rem; font-weight: 400;
  max-width: 44rem; overflow-wrap: anywhere; }
.buttons { display: flex; flex-wrap: wrap; gap: .5rem; align-items: center; }
.code pre { white-space: pre; overflow-x: auto; font-size: .82rem; margin: .3rem 0; }
@media (max-width: 60rem) { .page { grid-template-columns: minmax(0, 1fr); padding: .6rem; gap: .6rem; }
  .pair { grid-template-columns: minmax(0, 1fr); gap: .6rem; } .results { gap: .6rem; } .card { padding: .75rem; }
  tbody th { min-width: 9.5rem; } }
"""
