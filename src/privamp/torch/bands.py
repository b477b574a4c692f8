"""How many bands of correlated noise a run should have, and what they are predicted to gain.

At equal (epsilon, delta), cyclic Poisson batches with b bands need a larger noise multiplier than Poisson batches with
independent noise: a group is drawn at b times the rate. Their prefix sums may still have a smaller error, because the
noise of neighbouring steps partly cancels. Error = multiplier * `prefix_error(steps, b)`; the ratio to independent
noise on Poisson batches is the predicted gain. It says nothing about a model's accuracy by itself.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from ..accounting.banded import prefix_error
from ..designs.poisson import Poisson
from ..numerics.printing import as_asked
from ..schedules.cyclic_poisson import CyclicPoisson
from ..validation import in_range, positive, whole
from .plan import calibrated


@dataclass(frozen=True, slots=True)
class TriedBands:
    """A number of bands, the noise multiplier it needs, and the error of prefix sums over that of independent noise."""

    bands: int
    noise_multiplier: float
    ratio: float


@dataclass(frozen=True, slots=True)
class BandsPlan:
    """What `plan_bands` found. `sampler` goes to `make_private`, `str` prints the table."""

    rate: float
    steps: int
    epsilon: float
    delta: float
    tried: tuple[TriedBands, ...]  # the first is independent noise

    @property
    def best(self) -> TriedBands:
        """The smallest predicted error."""
        return min(self.tried, key=lambda one: (one.ratio, one.bands))

    @property
    def bands(self) -> int:
        """The best number of bands; 1 is independent noise."""
        return self.best.bands

    @property
    def ratio(self) -> float:
        """The predicted error of prefix sums over that of independent noise on Poisson batches: below 1 is better."""
        return self.best.ratio

    @property
    def sampler(self) -> CyclicPoisson | Poisson:
        """The batches of the best number of bands."""
        return CyclicPoisson(self.rate, self.bands, self.steps) if self.bands > 1 else Poisson(self.rate)

    def plot(self) -> Any:
        """A matplotlib figure of the predicted errors (pip install 'privamp[plots]')."""
        return import_module("..report.shown_plans", __package__).bands_figure(self)

    def _repr_html_(self) -> str:
        """The plan as notebooks show it."""
        text: str = import_module("..report.shown_plans", __package__).bands_fragment(self)
        return text

    def __str__(self) -> str:
        asked = f"epsilon {as_asked(self.epsilon)}, delta {as_asked(self.delta)}"
        head = f"{self.steps} steps, rate {self.rate:g}, {asked}"
        rows = [
            f"{one.bands:5} {one.noise_multiplier:17.4f} {one.ratio:6.3f}{'  <- best' if one is self.best else ''}"
            for one in self.tried
        ]
        return "\n".join([head, "bands  noise multiplier  error of prefix sums (independent noise: 1)", *rows])


def plan_bands(
    *,
    sample_rate: float,
    steps: int,
    target_epsilon: float,
    target_delta: float,
    most: int | None = None,
) -> BandsPlan:
    """Choose the number of bands with the smallest predicted error of prefix sums, at equal epsilon and delta.

    Powers of two are tried, up to `most`: every band but one is kept in memory as a copy of the parameters, unless
    `keep_noise=False`. Nothing of the data is used, so the choice costs no privacy.
    """
    in_range(0, 1, sample_rate=sample_rate)
    positive(sample_rate=sample_rate, target_epsilon=target_epsilon)
    in_range(0, 1, open_ends=True, target_delta=target_delta)
    whole(1, steps=steps)
    if most is not None:
        whole(1, most=most)
    limit = min(int(1.0 / sample_rate), steps, most or steps)
    tried = [TriedBands(1, calibrated(Poisson(sample_rate), None, steps, target_epsilon, target_delta), 1.0)]
    alone = tried[0].noise_multiplier * prefix_error(steps)
    bands = 2
    while bands <= limit:
        noise = calibrated(CyclicPoisson(sample_rate, bands, steps), None, steps, target_epsilon, target_delta)
        tried.append(TriedBands(bands, noise, noise * prefix_error(steps, bands) / alone))
        ratios = [one.ratio for one in tried[-3:]]
        if len(ratios) == 3 and ratios == sorted(ratios):
            break  # twice worse: more bands only raise the noise from here
        bands *= 2
    return BandsPlan(sample_rate, steps, target_epsilon, target_delta, tuple(tried))
