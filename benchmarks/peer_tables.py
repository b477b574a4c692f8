"""The tables of docs/peers.md: what each library can do, and its printed values beside privamp's.

python benchmarks/peer_tables.py              # capabilities, and how many values agree
python benchmarks/peer_tables.py --values     # every value that differs, recomputed; minutes
python benchmarks/peer_tables.py --values --quick   # those of one release only; a minute
"""

import argparse
import csv
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests"
VERDICTS = ("agrees", "looser", "lower", "false")
HEADER = ("library", "agree", "looser", "lower", "false")


def markdown(rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """The lines of a table; the first row is its head."""
    lines = [[str(cell) for cell in row] for row in rows]
    for at, line in enumerate(lines):
        yield "".join(f"| {cell} " if cell else "| " for cell in line) + "|"
        if not at:
            yield "|" + "---|" * len(line)


def capabilities() -> Iterator[str]:
    """One row per capability, one column per library."""
    with (TESTS / "peers" / "capabilities.csv").open(encoding="utf-8", newline="") as file:
        return markdown(list(csv.reader(file)))


def counts(facts: Sequence[dict[str, object]]) -> Iterator[str]:
    """How many printed values of each library have which verdict."""
    found = Counter((fact["peer"], fact["verdict"]) for fact in facts)
    peers = dict.fromkeys(fact["peer"] for fact in facts)
    return markdown([HEADER, *((peer, *(found[peer, verdict] for verdict in VERDICTS)) for peer in peers)])


def values(facts: Sequence[dict[str, object]], quick: bool) -> Iterator[str]:
    """Every value that is not privamp's, with privamp's bracket as it is computed now."""
    from peer_facts import said

    yield "| source | what | printed | privamp, [attack, bound] | verdict |"
    yield "|---|---|---|---|---|"
    for fact in facts:
        if fact["verdict"] == "agrees" or (quick and (fact["steps"] != 1 or fact["asks"] == "renyi")):
            continue
        lower, upper = said(fact)
        what = f"{fact['asks']} at {fact['at']:g}: {fact['mechanism']} on {fact['design']}, {fact['neighbors']}"
        what += f", {fact['steps']:g} rounds" if fact["steps"] != 1 else ""
        told = f"{fact['verdict']}: {fact['why']}"
        yield f"| {fact['peer']}, {fact['source']} | {what} | {fact['value']:g} | [{lower:.6g}, {upper:.6g}] | {told} |"


def main() -> None:
    parser = argparse.ArgumentParser(description="The tables of docs/peers.md.")
    parser.add_argument("--values", action="store_true", help="every value that differs, recomputed")
    parser.add_argument("--quick", action="store_true", help="with --values: those of one release only")
    asked = parser.parse_args()
    sys.path.insert(0, str(TESTS / "support"))
    from peer_facts import facts

    if asked.values:
        for line in values(facts(), asked.quick):
            print(line, flush=True)
        return
    print("\n".join([*capabilities(), "", *counts(facts())]))


if __name__ == "__main__":
    main()
