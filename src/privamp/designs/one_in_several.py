"""One record that is in the sample with a public chance, beside samples without it at public distances.

With chance q the record is drawn; with chance w_k the sample has none of it and is e_k add/remove steps from one that
has (the w_k add up to 1 - q; e_k - 1 steps where one record less is drawn). The design draws samples together with
these distances; M is stated for add/remove, a = e^eps, z = sum_k (w_k/q) a^-e_k:

    pure, one record more      log(1 + (a - 1)/(1 + a z))
    pure, one replaced         log(1 + (a^2 - 1)/(1 + a^2 z)); at smaller epsilon no more than without sampling
    Gaussian                   `one_against_several` at theta, e_k theta (replaced: 2 theta, e_k theta)
    other noise                transport: in, in 1 or 2; in, k e_k; k, in e_k - 1 or e_k; k, k 0.

Proof: docs/designs/pps.md, Thms 8 and 9.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.mechanism import Mechanism
from ..core.neighbors import Neighbors
from ..core.profile import Profile
from ..core.theorem import Theorem
from ..core.transport import Components, has_noise, transported
from ..errors import NoTheorem
from ..numerics.log_domain import log_sum
from . import cluster_gaussian as gaussian
from .pure_only import pure_epsilon, replaced_profile, upper_profile

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
_MARGIN = 1e-14


@dataclass(frozen=True, slots=True)
class Kind:
    """A record's chance q, and (w_k, e_k) of the samples without it."""

    chance: float
    others: tuple[tuple[float, int], ...]

    def loss(self, epsilon: float, steps: int) -> float:
        """Of a pure mechanism, when the record's own change takes 1 or 2 steps."""
        if not self.others:
            return steps * epsilon
        terms = [math.log(w) - e * epsilon for w, e in self.others]
        log_z = float(log_sum(np.array(terms))) - math.log(self.chance)
        log_z -= _MARGIN * (16.0 + len(terms) + abs(log_z))  # z errs downward, the loss upward
        rest = float(np.exp(-np.logaddexp(0.0, steps * epsilon + log_z)))
        if steps * epsilon > 600.0:
            return float(np.logaddexp(0.0, steps * epsilon - np.logaddexp(0.0, steps * epsilon + log_z)))
        return math.log1p(math.expm1(steps * epsilon) * rest)

    def components(self, steps: int) -> Components:
        """In, and every kind of sample without the record; two of those are apart by way of one with it."""
        chances = [self.chance, *(w for w, _ in self.others)]
        away = np.array([0.0, *(e for _, e in self.others)])
        far = away[:, None] + away[None, :]
        np.fill_diagonal(far, 0.0)
        far[0, 0] = steps
        far[1:, 0] -= 2 - steps
        return Components.of(chances, chances, far)


Kinds = Callable[[Any], Iterable[Kind]]


def merged(others: Iterable[tuple[float, int]]) -> tuple[tuple[float, int], ...]:
    """Samples at one distance taken together, in the order of the distances."""
    found: dict[int, float] = {}
    for w, e in others:
        found[e] = found.get(e, 0.0) + w
    return tuple((w, e) for e, w in sorted(found.items()) if w > 0.0)


def worst_loss(kinds: Iterable[Kind], epsilon: float, steps: int) -> float:
    """The largest over the kinds."""
    return max(kind.loss(epsilon, steps) for kind in kinds)


def under_gaussian(kinds: Iterable[Kind], mechanism: Mechanism, steps: int) -> Profile:
    """Gaussian noise: every sample without the record on one side of those with it."""
    theta = gaussian.add_remove_shift(mechanism)
    one = gaussian.added if steps == 1 else gaussian.replaced
    return Profile.maximum([one(theta, k.chance, [(w, float(e - 1)) for w, e in k.others]) for k in kinds])


def theorems(subject: str, page: str, kinds: Kinds, *, added: bool, exact: bool) -> tuple[Theorem, ...]:
    """One record replaced inside its cluster and, where sizes are private, one record more; for every noise."""

    def pure(design: Any, mechanism: Mechanism, neighbors: Neighbors) -> Profile:
        loss = worst_loss(kinds(design), pure_epsilon(mechanism, AR), _steps(neighbors))
        return upper_profile(loss) if neighbors.kind == AR.kind else replaced_profile(loss, mechanism)

    def normal(design: Any, mechanism: Mechanism, neighbors: Neighbors) -> Profile:
        return under_gaussian(kinds(design), mechanism, _steps(neighbors))

    def other(design: Any, mechanism: Mechanism, neighbors: Neighbors) -> Profile:
        if gaussian.is_covered_by_gaussian(mechanism):
            raise NoTheorem("Gaussian noise has a theorem of its own, as near and quicker")
        found = transported([kind.components(_steps(neighbors)) for kind in kinds(design)], mechanism)
        return found if neighbors.kind == AR.kind else found.symmetrised()

    relations: Sequence[tuple[str, Any, str]] = (
        *((("one record more", AR.kind, "anywhere"),) if added else ()),
        ("one record replaced inside its cluster", RO.kind, "within cluster"),
    )
    return tuple(
        theorem
        for what, gives, scope in relations
        for theorem in (
            Theorem(f"{subject}, {what}", page, AR.kind, gives, exact, pure, scope=scope),
            Theorem(
                f"{subject}, {what}, Gaussian", page, AR.kind, gives, False, normal, lambda m: m.is_gaussian,
                scope=scope,
            ),
            Theorem(f"{subject}, {what}, transport", page, AR.kind, gives, False, other, has_noise, scope=scope),
        )
    )  # fmt: skip


def _steps(neighbors: Neighbors) -> int:
    return 1 if neighbors.kind == AR.kind else 2
