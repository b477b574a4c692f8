"""What the guarantee of a fit inside scikit-learn does not count: other fits, and what earlier pipeline steps learned.

A search or a cross-validation clones an estimator and fits the clones; a guarantee is about one fit. A step of a
pipeline that learns from the records (`StandardScaler` finds their means) is a release of its own that no budget pays
for. Neither can be prevented from inside one estimator, so both are listed among the assumptions and raise a warning.
"""

import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from types import FrameType
from typing import Any, Self

from .guarantee import Guarantee

OTHER_FITS = (
    "this is one of several fits of the same estimator; neither the others nor scores that chose among them are in "
    "this guarantee"
)
CHARGED_FITS = (
    "this is one of several fits of the same estimator, each charged to a budget; scores that chose among them are not "
    "in this guarantee"
)
_LEARNED = "what {} learned from the records, before this estimator saw them, is not in this guarantee"
_INSTEAD = "; scale by public bounds instead, with PublicScaler(bounds)"
_DEEPEST = 60  # frames


class OneOfSeveral:
    """An estimator that knows whether it is a clone, and so one of several fits."""

    _is_clone = False

    def __sklearn_clone__(self) -> Self:
        """Another estimator with the same parameters, as scikit-learn makes for searches and cross-validations."""
        other = super().__sklearn_clone__()  # type: ignore[misc]
        other._is_clone = True
        return other  # type: ignore[no-any-return]

    def _among_others(self, guarantee: Guarantee, *, charged: bool) -> Guarantee:
        """The guarantee of this fit, with what it does not count among the assumptions."""
        said = [CHARGED_FITS if charged else OTHER_FITS] if self._is_clone or hasattr(self, "guarantee_") else []
        if learned := steps_that_learned(self):
            said.append(_LEARNED.format(" and ".join(learned)))
            warnings.warn(said[-1] + _INSTEAD, UserWarning, stacklevel=3)
        return replace(guarantee, assumes=(*guarantee.assumes, *said)) if said else guarantee


def steps_that_learned(estimator: Any) -> list[str]:
    """The classes of earlier steps of the pipeline that is fitting this estimator which learn from the records."""
    found = getattr(sys.modules.get("sklearn.pipeline"), "Pipeline", None)
    if found is None:
        return []
    frame: FrameType | None = sys._getframe(1)
    for _ in range(_DEEPEST):
        if frame is None:
            break
        owner = frame.f_locals.get("self")
        if isinstance(owner, found) and any(step is estimator for _, step in owner.steps):
            earlier = [step for _, step in owner.steps]
            learning = _learning(earlier[: [step is estimator for step in earlier].index(True)])
            return list(dict.fromkeys(learning))
        frame = frame.f_back
    return []


def _learning(steps: list[Any]) -> Iterator[str]:
    from sklearn.utils import get_tags

    for step in steps:
        if hasattr(step, "steps"):  # a pipeline in a pipeline
            yield from _learning([part for _, part in step.steps])
        elif not (step is None or isinstance(step, str) or hasattr(step, "guarantee_")) and get_tags(step).requires_fit:
            yield type(step).__name__
