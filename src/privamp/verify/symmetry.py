"""Laws of tiny samples up to symmetry: ids that both laws treat alike need not be told apart.

Averaging a mechanism over swaps of such ids keeps it epsilon-DP and changes neither expectation, so an
optimum that is the same on a whole orbit exists: the linear program needs one variable per orbit.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction

Units = tuple[int, ...]  # ids in a sample, sorted, repeated when drawn more than once
Law = Mapping[Units, Fraction]
Orbit = tuple[tuple[int, ...], ...]  # per group of alike ids: how often each appears, largest first


def collect(pairs: Iterable[tuple[Units, Fraction]]) -> dict[Units, Fraction]:
    """A law as a dictionary: units sorted, repeats summed, impossible samples dropped."""
    law: dict[Units, Fraction] = {}
    for units, probability in pairs:
        if probability:
            key = tuple(sorted(int(u) for u in units))
            law[key] = law.get(key, Fraction(0)) + probability
    return law


def alike(first: Law, second: Law) -> tuple[Units, ...]:
    """Ids in groups: swapping two ids of one group changes neither law."""
    groups: list[list[int]] = []
    for i in sorted({unit for law in (first, second) for units in law for unit in units}):
        home = next((g for g in groups if _swappable(first, g[0], i) and _swappable(second, g[0], i)), None)
        if home is None:
            groups.append([i])
        else:
            home.append(i)
    return tuple(map(tuple, groups))


def _swappable(law: Law, i: int, j: int) -> bool:
    swap = {i: j, j: i}
    return all(
        law.get(tuple(sorted(swap.get(u, u) for u in units))) == p
        for units, p in law.items()
        if i in units or j in units
    )


def orbit(units: Units, groups: tuple[Units, ...]) -> Orbit:
    """The orbit of one sample under swaps inside the groups."""
    times = Counter(units)
    return tuple(tuple(sorted((times[i] for i in group), reverse=True)) for group in groups)


def fold(law: Law, groups: tuple[Units, ...]) -> dict[Orbit, Fraction]:
    """The law of the orbit."""
    folded: dict[Orbit, Fraction] = {}
    for units, p in law.items():
        key = orbit(units, groups)
        folded[key] = folded.get(key, Fraction(0)) + p
    return folded
