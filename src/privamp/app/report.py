"""The report of a view: the page's sentence, tables and code as one file that loads nothing."""

from ..report.html import Report
from .shown import Shown


def report(title: str, shown: Shown, python: str, command: str) -> str:
    """The page to download; assumptions and theorems of every row are in it."""
    made = Report(title, shown.summary)
    for note in shown.notes:
        made.add_text(note)
    for table in shown.tables:
        heads = [head.removeprefix("<") for head in table.heads]
        made.add_table(heads, table.rows, table.caption)
    for table in shown.tables:
        for row, details in zip(table.rows, table.details, strict=False):
            text = "\n\n".join(f"{each.heading}: {'; '.join(each.lines) or 'nothing further'}" for each in details)
            made.add_text(text, row[0])
    made.add_code(python, "As Python")
    made.add_code(command, "As a command")
    return made.html()
