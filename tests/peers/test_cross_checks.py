"""prv_accountant, autodp and PLD_accounting asked themselves: their brackets meet privamp's. Skipped where absent.

A bracket is [attack or lower bound, upper bound]; two brackets of one truth overlap, and no upper bound may lie below
another library's lower bound.
"""

import pytest

from privamp import BallsInBins, Gaussian, Laplace, Neighbors, Poisson, WithoutReplacement, amplify, compose

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
pytestmark = pytest.mark.filterwarnings("ignore")  # of the other libraries


def bracket(guarantee, delta):
    lower = guarantee.lower.epsilon(delta) if guarantee.lower else 0.0
    return lower, guarantee.epsilon(delta)


@pytest.mark.parametrize(("sigma", "rate", "steps", "delta"), [(1.0, 0.01, 300, 1e-6), (0.8, 5e-3, 1000, 1e-6)])
def test_prv_accountant_on_poisson_samples(sigma, rate, steps, delta):
    dpsgd = pytest.importorskip("prv_accountant.dpsgd", reason="prv_accountant is not installed")
    accountant = dpsgd.DPSGDAccountant(sigma, rate, max_steps=steps, eps_error=0.01, delta_error=delta / 1e3)
    low, _, high = accountant.compute_epsilon(delta=delta, num_steps=steps)
    lower, upper = bracket(compose(amplify(Gaussian(sigma), Poisson(rate)), steps), delta)
    assert low <= upper
    assert lower <= high
    assert upper <= high  # theirs has room for its error


def test_prv_accountant_on_several_mechanisms():
    """The example of its README."""
    prv = pytest.importorskip("prv_accountant", reason="prv_accountant is not installed")
    from prv_accountant.privacy_random_variables import (
        GaussianMechanism,
        LaplaceMechanism,
        PoissonSubsampledGaussianMechanism,
    )

    laws = [PoissonSubsampledGaussianMechanism(5e-3, 0.8), GaussianMechanism(8.0), LaplaceMechanism(0.1)]
    accountant = prv.PRVAccountant(laws, max_self_compositions=[1000] * 3, eps_error=0.1, delta_error=1e-10)
    low, _, high = accountant.compute_epsilon(delta=1e-6, num_self_compositions=[100, 200, 100])
    lower, upper = bracket(
        compose(
            [
                compose(amplify(Gaussian(0.8), Poisson(5e-3)), 100),
                compose(amplify(Gaussian(8.0), Poisson(1.0)), 200),
                compose(amplify(Laplace(10.0), Poisson(1.0)), 100),
            ]
        ),
        1e-6,
    )
    assert low <= upper <= high
    assert lower <= high


@pytest.mark.parametrize("is_poisson", [True, False])
def test_autodp_is_above(is_poisson):
    """Rényi bounds; without replacement its noise is stated for replaced records."""
    zoo = pytest.importorskip("autodp.transformer_zoo", reason="autodp is not installed")
    from autodp.mechanism_zoo import ExactGaussianMechanism

    noise = ExactGaussianMechanism(2.0)
    if not is_poisson:
        noise.neighboring = "replace_one"
    step = zoo.AmplificationBySampling(PoissonSampling=is_poisson)(noise, 0.05, improved_bound_flag=True)
    theirs = zoo.Composition()([step], [100]).get_approxDP(1e-6)
    ours = (
        amplify(Gaussian(2.0), Poisson(0.05), AR)
        if is_poisson
        else amplify(Gaussian(2.0, 0.5), WithoutReplacement(1, 20), RO)
    )
    lower, upper = bracket(compose(ours, 100), 1e-6)
    assert lower <= theirs
    assert upper <= theirs


@pytest.mark.parametrize(("sigma", "rounds", "epochs"), [(1.0, 50, 1), (2.0, 20, 3)])
def test_pld_accounting_on_balls_in_bins(sigma, rounds, epochs):
    pld = pytest.importorskip("PLD_accounting", reason="PLD_accounting is not installed")
    high, low = pld.gaussian_allocation_epsilon_range(delta=1e-6, sigma=sigma, num_steps=rounds, num_epochs=epochs)
    lower, upper = bracket(amplify(Gaussian(sigma), BallsInBins(rounds, epochs)), 1e-6)
    assert low <= upper
    assert lower <= high
    assert upper <= high * (1 + 0.02)
