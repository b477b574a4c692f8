"""The job of `privamp demo`: made-up people, one sample per design, two questions to each sample."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...core.design import Design

PEOPLE, DRAWS, SIGMA, DELTA, QUESTIONS = 10_000, 400, 8.0, 1e-6, 10


@dataclass(frozen=True)
class Result:
    """One design's run: what was released, how far off it typically is, and what it guarantees."""

    label: str
    touched: float  # expected number of different people read
    mean_age: float
    mean_age_error: float
    seniors: float
    seniors_error: float
    epsilon_upper: float
    epsilon_lower: float | None

    @property
    def interval(self) -> str:
        """epsilon for people: one number when attack and proof meet."""
        from ...numerics.printing import shown_down, shown_up

        low, high = self.epsilon_lower, self.epsilon_upper
        top = shown_up(high, decimals=2)
        return top if low is None or high - low < 0.005 else f"{shown_down(low, decimals=2)} to {top}"


def designs() -> "list[Design]":
    """Four ways to draw 400 times from 10,000 people."""
    from ...designs.multistage import MultiStage
    from ...designs.poisson import Poisson
    from ...designs.simple_random import WithoutReplacement
    from ...designs.with_replacement import WithReplacement

    return [
        Poisson(DRAWS / PEOPLE),
        WithoutReplacement(DRAWS, PEOPLE),
        WithReplacement(DRAWS, PEOPLE),
        MultiStage((("wor", DRAWS // 2), ("wr", DRAWS)), PEOPLE),
    ]


def synthetic_ages() -> "NDArray[Any]":
    """Made-up people: ages from 0 to 100, a few more of them young."""
    import numpy as np

    return np.floor(100.0 * np.random.default_rng().beta(1.7, 2.3, PEOPLE))


def run(design: "Design", ages: "NDArray[Any]") -> Result:
    """Draw once, release two sums from the sample, and certify them."""
    import numpy as np

    from ...core.neighbors import Neighbors
    from ...mechanisms.gaussian import Gaussian
    from ...report.comparison import label

    noise = Gaussian(SIGMA)  # one person adds at most 1 to either sum
    centred, senior = ages / 50.0 - 1.0, np.where(ages > 65, 1.0, -1.0)
    sample = design.draw(PEOPLE).declare([noise, noise])
    about_age, about_seniors = sample.release(noise, centred), sample.release(noise, senior)
    guarantee = sample.guarantee(Neighbors.REPLACE_ONE)
    return Result(
        label(design),
        design.expected_distinct(PEOPLE),
        50.0 + 50.0 * about_age / DRAWS,
        50.0 * typical_error(design, centred) / DRAWS,
        PEOPLE / 2 * (1.0 + about_seniors / DRAWS),
        PEOPLE / 2 * typical_error(design, senior) / DRAWS,
        guarantee.epsilon(DELTA),
        guarantee.lower.epsilon(DELTA) if guarantee.lower else None,
    )


def typical_error(design: "Design", values: "NDArray[Any]") -> float:
    """Standard deviation of a released sum: sampling and noise.

    Copies U of each record: independent coins give Var(U) sum y^2; a fixed number of draws makes the U's of two
    records equally and negatively correlated, which gives Var(U) n/(n-1) sum (y - mean)^2.
    """
    import numpy as np

    law = design.appearances()
    spread = float(np.sum(law.counts**2 * np.exp(law.log_p))) - law.mean**2
    n = values.size
    fixed = design.public_size is not None
    squares = float(np.sum((values - values.mean()) ** 2)) * n / (n - 1) if fixed else float(np.sum(values**2))
    return math.sqrt(spread * squares + SIGMA**2)


def reference_points() -> dict[str, float]:
    """The same noise without sampling; and many questions to one simple random sample, done right and wrong."""
    from ...accounting.composition import compose
    from ...accounting.joint import Joint
    from ...amplification import amplify
    from ...core.neighbors import Neighbors
    from ...designs.simple_random import WithoutReplacement
    from ...mechanisms.gaussian import Gaussian

    noise, design, one = Gaussian(SIGMA), WithoutReplacement(DRAWS, PEOPLE), Neighbors.REPLACE_ONE
    return {
        "everyone": Joint([noise] * 2).profile(one).epsilon(DELTA),
        "one_sample": amplify(Joint([noise] * QUESTIONS), design, one).epsilon(DELTA),
        "false_claim": compose(amplify(noise, design, one), QUESTIONS).epsilon(DELTA),
    }
