"""Numbers for people: upper bounds are printed rounded up and lower bounds rounded down, so that the text is true too.

Rounded to nearest, the X in "at most X" would be below the certified number about half of the time.
"""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

UP, DOWN = ROUND_CEILING, ROUND_FLOOR
_DIGITS = 6
_TINY = 1e-300
_EXACT = Context(prec=2000)


def shown_up(value: float, digits: int = _DIGITS, *, decimals: int | None = None) -> str:
    """The value with this many digits (or decimals), rounded up: an upper bound stays one.

    >>> shown_up(0.12345612), shown_up(0.501, decimals=2), shown_up(float("inf"))
    ('0.123457', '0.51', '∞')
    """
    return shown(value, UP, digits, decimals)


def shown_down(value: float, digits: int = _DIGITS, *, decimals: int | None = None) -> str:
    """The value with this many digits (or decimals), rounded down: a lower bound stays one.

    >>> shown_down(0.12345678), shown_down(0.509, decimals=2)
    ('0.123456', '0.50')
    """
    return shown(value, DOWN, digits, decimals)


def as_asked(value: float, digits: int = _DIGITS) -> str:
    """A number that somebody asked for, as it was written; rounded up where it has more digits.

    The double 0.1 is a little above the number 0.1, so `shown_up` has to say 0.100001. What was asked is read as a
    double again, and the text reads as this one or a larger one.

    >>> as_asked(0.1), as_asked(1e-6), as_asked(1 / 3), shown_up(0.1)
    ('0.1', '1e-06', '0.333334', '0.100001')
    """
    if not math.isfinite(value):
        return shown(value, UP, digits)
    return f"{float(Context(prec=digits, rounding=UP).create_decimal(Decimal(repr(float(value))))):.{digits}g}"


def shown(value: float, rounding: str, digits: int = _DIGITS, decimals: int | None = None) -> str:
    """Rounded in one direction, UP or DOWN."""
    value = float(value)
    if not math.isfinite(value):
        return "∞" if value > 0 else "-∞" if value < 0 else "nan"
    if decimals is not None:
        return f"{Decimal(value).quantize(Decimal(1).scaleb(-decimals), rounding, _EXACT):f}"
    if 0.0 < value < _TINY:  # too near the end of the doubles to round by digits
        return f"{_TINY:g}" if rounding == UP else "0"
    rounded = float(Context(prec=digits, rounding=rounding).create_decimal(Decimal(value)))
    return f"{rounded:.{digits}g}" if math.isfinite(rounded) else "∞"
