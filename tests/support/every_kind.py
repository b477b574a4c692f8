"""Every design and every schedule of privamp, by name."""

import importlib
import inspect
import pkgutil

from privamp import designs, schedules
from privamp.core.design import Design
from privamp.core.schedule import Schedule


def kinds(base):
    """Every class of privamp below it that makes objects, by name."""
    for room in (designs, schedules):
        for module in pkgutil.iter_modules(room.__path__, f"{room.__name__}."):
            importlib.import_module(module.name)
    found, left = {}, [base]
    while left:
        left += (kind := left.pop()).__subclasses__()
        if kind.__module__.startswith("privamp.") and not inspect.isabstract(kind):
            found[kind.__name__] = kind
    return found


DESIGNS, SCHEDULES = kinds(Design), kinds(Schedule)
