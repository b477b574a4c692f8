"""dp-accounting: guarantees of privamp as events, and an accountant that composes them with its own events.

>>> from privamp import Laplace, amplify
>>> accountant = GuaranteeAccountant().compose(GuaranteeEvent.of(amplify(Laplace(1.0), Poisson(0.1))))
>>> f"{accountant.get_epsilon(0.0):.4f}"
'0.1586'
"""

import json
import math
from typing import Any

from ..accounting.composition import compose
from ..core.guarantee import Guarantee
from ..core.neighbors import Neighbors
from ..designs.poisson import Poisson
from ..errors import InvalidInput, PrivampError
from ..mechanisms.gaussian import Gaussian
from ..mechanisms.laplace import Laplace
from ..validation import in_range, whole
from .dp_events import guarantee_of
from .dp_mechanisms import NotPrivate, counted, down, listed
from .peers import imported

with imported("dp-accounting", "privamp.adapters.dp_accounting"):
    import attr
    from dp_accounting import NeighboringRelation, PrivacyAccountant
    from dp_accounting import dp_event as dp

__all__ = ["GuaranteeAccountant", "GuaranteeEvent", "NeighboringRelation", "guarantee_of", "standard_event"]

_RELATIONS = {
    NeighboringRelation.ADD_OR_REMOVE_ONE: Neighbors.ADD_REMOVE,
    NeighboringRelation.REPLACE_ONE: Neighbors.REPLACE_ONE,
}


@attr.s(frozen=True, slots=True, auto_attribs=True)
class GuaranteeEvent(dp.DpEvent):
    """A guarantee of privamp as an event: its certificate, which is recomputed when it is read."""

    certificate: bytes = attr.ib(repr=False)  # JSON; DpEvent.to_named_tuple would split text into letters

    @classmethod
    def of(cls, guarantee: Guarantee) -> "GuaranteeEvent":
        """The event of a guarantee that is made of claims."""
        if not isinstance(guarantee, Guarantee) or not guarantee.claims:
            raise InvalidInput(
                "an event needs a guarantee with claims, and this one has none; use the result of amplify or compose "
                "for designs and mechanisms without functions"
            )
        return cls(json.dumps(guarantee.to_json(), sort_keys=True).encode())

    def guarantee(self) -> Guarantee:
        """The guarantee, recomputed."""
        return Guarantee.from_json(self.certificate.decode(errors="replace"))


def standard_event(guarantee: Guarantee) -> Any:
    """The same in dp-accounting's own events, for its own accountants: Poisson samples under add/remove.

    Others are rejected: for samples of fixed size dp-accounting's accountants assume that a replaced record moves a sum
    of rows of norm at most C by C, though it moves it by up to 2C.
    """
    if not isinstance(guarantee, Guarantee) or guarantee.neighbors != Neighbors.ADD_REMOVE or guarantee.draws:
        raise InvalidInput(
            "dp-accounting's own events cover only fresh draws under add-remove; for others use "
            "GuaranteeEvent.of(guarantee) with GuaranteeAccountant"
        )
    events = [dp.SelfComposedDpEvent(_standard(claim), claim.times) for claim in guarantee.claims]
    if not events:
        raise InvalidInput(
            "this guarantee has no claims, so it cannot be an event; use the result of amplify or compose"
        )
    return events[0] if len(events) == 1 else dp.ComposedDpEvent(events)


def _standard(claim: Any) -> Any:
    mechanism, design = claim.mechanism, claim.design
    kind = {Gaussian: dp.GaussianDpEvent, Laplace: dp.LaplaceDpEvent}.get(type(mechanism))
    if kind is None or type(design) is not Poisson or mechanism.neighbors != Neighbors.ADD_REMOVE:
        raise InvalidInput(
            f"dp-accounting's accountants read no event for {type(mechanism).__name__} on {type(design).__name__} as "
            "privamp does; use GuaranteeEvent.of(guarantee) with GuaranteeAccountant"
        )
    scale = mechanism.sigma if isinstance(mechanism, Gaussian) else mechanism.scale
    return dp.PoissonSampledDpEvent(float(design.rate), kind(down(scale / mechanism.sensitivity)))


class GuaranteeAccountant(PrivacyAccountant):
    """Composes `GuaranteeEvent`s and the events that `guarantee_of` reads; the numbers are privamp's, rounded up.

    Like every list of events, they must be fixed beforehand: which event comes next may not depend on answers.
    """

    def __init__(self, neighboring_relation: NeighboringRelation = NeighboringRelation.ADD_OR_REMOVE_ONE) -> None:
        super().__init__(neighboring_relation)
        if neighboring_relation not in _RELATIONS:
            raise InvalidInput(
                f"privamp certifies added, removed and replaced records, got {neighboring_relation} instead; where the "
                "special record is a legal one, REPLACE_ONE covers it"
            )
        self._parts: list[Guarantee] = []
        self._is_private = True

    @property
    def neighbors(self) -> Neighbors:
        """The relation as a `Neighbors`."""
        return _RELATIONS[self.neighboring_relation]

    def guarantee(self) -> Guarantee:
        """Everything composed so far, with its theorems and assumptions."""
        if not self._is_private:
            raise InvalidInput("an event without privacy was composed, so there is no guarantee")
        return compose(self._parts) if self._parts else guarantee_of(dp.NoOpDpEvent(), self.neighbors)

    def get_epsilon(self, target_delta: float) -> float:
        """The certified epsilon at this delta."""
        in_range(0, 1, target_delta=target_delta)
        return self.guarantee().epsilon(target_delta) if self._is_private else math.inf

    def get_delta(self, target_epsilon: float) -> float:
        """The certified delta at this epsilon."""
        return float(self.guarantee().delta(target_epsilon)) if self._is_private else 1.0

    def _maybe_compose(self, event: Any, count: int, do_compose: bool) -> Any:
        try:
            whole(0, count=count)
            found = self._read(event, max(count, 1))
            together = compose([*self._parts, found])  # rejects another relation, and one draw counted twice
        except NotPrivate:
            self._is_private &= not do_compose
        except PrivampError as error:
            return self.CompositionErrorDetails(event, str(error))
        else:
            self._parts = [together] if do_compose else self._parts
        return None

    def _read(self, event: Any, count: int) -> Guarantee:
        """Their composition of ours is taken apart, so that both may stand in one tree."""
        if isinstance(event, dp.ComposedDpEvent) and listed(event):
            return compose([self._read(part, count) for part in listed(event)])
        if isinstance(event, dp.SelfComposedDpEvent) and counted(event):
            return self._read(event.event, count * counted(event))
        if isinstance(event, GuaranteeEvent):
            found = event.guarantee()
            if found.neighbors != self.neighbors:
                raise InvalidInput(f"the event is about {found.neighbors}, but the accountant about {self.neighbors}")
            return compose(found, count)
        return compose(guarantee_of(event, self.neighbors), count)
