"""Exceptions raised by privamp. Every message is one sentence: the value, the rule, the way out."""


class PrivampError(Exception):
    """Base of every error privamp raises on purpose."""


class InvalidInput(PrivampError, ValueError):
    """An argument breaks a rule that its sentence names."""


class MissingExtra(InvalidInput, ImportError):
    """An optional library is not installed; the sentence gives the command that installs it."""


class NoTheorem(PrivampError):
    """Nothing is proved for this combination, so nothing is certified."""


PURE_ONLY = "only pure mechanisms are covered"  # begins the reason of theorems about pure mechanisms


class Infeasible(PrivampError):
    """No parameter reaches the wanted guarantee."""


class BudgetExceeded(PrivampError):
    """The release would pass the declared budget, so it was not made."""


class DegradingDesign(UserWarning):
    """The design makes the release less private than the mechanism on all the data; the number is still true."""
