"""Names of numbers for people: short, and no two of them the same."""

from collections.abc import Sequence
from decimal import Decimal


def told_apart(numbers: Sequence[float]) -> tuple[str, ...]:
    """Different numbers with as few digits as tell them apart, at least six."""
    for digits in range(6, 17):
        named = tuple(f"{number:.{digits}g}" for number in numbers)
        if len(set(named)) == len(set(numbers)):
            return named
    return tuple(map(repr, numbers))


def percent(probability: float) -> str:
    """A probability as it was given, in percent: 0.9999999 is 99.99999%, not 100%."""
    exact = Decimal(repr(probability)).scaleb(2).normalize()
    return f"{exact:f}%" if exact >= Decimal("1e-9") else f"{exact}%"
