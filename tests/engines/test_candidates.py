"""Records that a public bound on keyed numbers excludes are not looked at, and nobody who is drawn is among them."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from privamp import ImportanceSampling, LinearProfile, Poisson, PoissonPPS, Population, privacy_constrained
from privamp.engines.kernel import Kernel
from privamp.mechanisms.laplace import Laplace
from privamp.testing import seeded_key

N = 20_000
RULE = privacy_constrained(LinearProfile.of(Laplace(scale=40.0)), epsilon=0.5, radius=2.0)
VALUES = np.linspace(-2.0, 2.0, N)
DESIGNS = [Poisson(0.02), ImportanceSampling(RULE), PoissonPPS(0.05, low=0.001, per_size=0.02)]


def kernel_of(design: Any) -> tuple[Kernel, pa.RecordBatch]:
    batch = pa.record_batch({"id": np.arange(N, dtype=np.uint64), "x": np.abs(VALUES)})
    return Kernel.of(design, seeded_key(1), id="id", reads=dict.fromkeys(design.reads, ("x",))), batch


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: type(design).__name__)
def test_nobody_who_is_drawn_is_excluded(design: Any) -> None:
    kernel, batch = kernel_of(design)
    some = design.candidates(np.arange(N, dtype=np.uint64), kernel.subkey)
    everyone = design.decided(Population(N, **{name: np.abs(VALUES) for name in design.reads}).batch(), kernel.subkey)
    assert 0 < len(some) < N / 4
    assert set(everyone.positions.tolist()) <= set(some.tolist())
    assert np.array_equal(kernel.verdict(batch).positions, everyone.positions)


class Other(Poisson):
    """Draws by other numbers than Poisson does, and does not say so."""

    def partial(self, batch: Any, subkey: Any) -> Any:
        return Poisson.partial(self, batch, subkey.subkey("other"))


def test_a_design_of_ones_own_is_not_cut_by_the_bound_of_another() -> None:
    kernel, batch = kernel_of(Other(0.02))
    drawn = kernel.verdict(batch).positions
    assert 0.8 < len(drawn) / (0.02 * N) < 1.2
    assert Other(0.02).candidates(np.arange(N, dtype=np.uint64), kernel.subkey) is None
