"""Text of others on a terminal: characters that would move its cursor, colour it or turn its lines around are shown."""

import re

# C0 and C1 controls, DEL, the marks that change the direction of text, and halves of characters
_ACTIVE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    r"""The same text, with such characters written out; newlines and tabs stay.

    >>> visible("\x1b[2Jstudy")
    '\\x1b[2Jstudy'
    """
    return _ACTIVE.sub(lambda found: found.group().encode("unicode_escape").decode("ascii"), text)


def one_line(text: str) -> str:
    r"""`visible`, and newlines and tabs written out too, for labels and cells of tables."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")
