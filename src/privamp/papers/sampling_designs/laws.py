"""Laws of samples enumerated record by record, for the exact loss over all mechanisms on small populations."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate, combinations
from math import comb

from ...verify.exact import exact_epsilon_of_laws

Law = dict[tuple[int, ...], Fraction]
NEW = 99  # the record that is added, removed or replaces another


def subsets(records: Sequence[int], size: int) -> Law:
    """Every subset of this size, equally likely."""
    return {tuple(sorted(s)): Fraction(1, comb(len(records), size)) for s in combinations(records, size)}


def mixed(laws: Sequence[tuple[Fraction, Law]]) -> Law:
    """A mixture of several laws, each with its probability."""
    total: Law = {}
    for chance, law in laws:
        for units, p in law.items():
            total[units] = total.get(units, Fraction(0)) + chance * p
    return total


def clusters_of(sizes: Sequence[int]) -> list[list[int]]:
    """Records 0, 1, ... split into clusters of these sizes."""
    ends = list(accumulate(sizes))
    return [list(range(end - size, end)) for size, end in zip(sizes, ends, strict=True)]


def some_clusters(clusters: Sequence[Sequence[int]], chosen: int) -> Law:
    """All members of `chosen` clusters drawn without replacement."""
    picks = list(combinations(clusters, chosen))
    unions = [tuple(sorted(record for cluster in pick for record in cluster)) for pick in picks]
    return mixed([(Fraction(1, len(picks)), {union: Fraction(1)}) for union in unions])


def one_more_member(sizes: Sequence[int], chosen: int, epsilon: float) -> float:
    """The exact loss when the first cluster gains a member."""
    old = clusters_of(sizes)
    new = [[*old[0], NEW], *old[1:]]
    return exact_epsilon_of_laws(some_clusters(old, chosen), some_clusters(new, chosen), epsilon, "add-remove")
