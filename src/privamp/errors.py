"""Exceptions raised by privamp. Every message is one sentence: the value, the rule, the way out."""


class PrivampError(Exception):
    """Base class of the exceptions raised by privamp."""


class InvalidInput(PrivampError, ValueError):
    """An argument breaks a rule; the message names the value, the rule and the fix."""


class MissingExtra(InvalidInput, ImportError):
    """An optional library is not installed; the message gives the command that installs it."""


class NoTheorem(PrivampError):
    """No theorem covers this combination, so nothing is certified."""


PURE_ONLY = "only pure mechanisms are covered"  # begins the reason of theorems about pure mechanisms


class Infeasible(PrivampError):
    """No parameter reaches the requested guarantee."""


class BudgetExceeded(PrivampError):
    """The release would exceed the declared budget, so it was not made."""


class DegradingDesign(UserWarning):
    """The design makes the release less private than the mechanism on all the data; the bound still holds."""
