"""Another version of a library lacks a name, or an attribute: each adapter answers in one sentence, no traceback of it.

The sentence names the library, its installed version, what was being done, and the version that was tested.
"""

import importlib
import sys

import pytest

from privamp import Gaussian, InvalidInput, Key, Laplace, Neighbors, Poisson, PrivampError, Rounds
from privamp.adapters.peers import TESTED

AR = Neighbors.ADD_REMOVE
# module of the adapter, library, module of the library, a name that the adapter imports from it
IMPORTED = [
    ("dp_accounting", "dp-accounting", "dp_accounting", "PrivacyAccountant"),
    ("dp_events", "dp-accounting", "dp_accounting.dp_event", "PoissonSampledDpEvent"),
    ("dp_mechanisms", "dp-accounting", "dp_accounting.dp_event", "MixtureOfGaussiansDpEvent"),
    ("torch", "torch", "torch.utils.data", "default_collate"),
    ("opacus", "opacus", "opacus.accountants", "register_accountant"),
    ("opendp", "opendp", "opendp.mod", "GLOBAL_FEATURES"),
    ("jax_privacy", "jax-privacy", "jax_privacy.batch_selection", "BatchSelectionStrategy"),
    ("jax_privacy", "jax-privacy", "jax_privacy.batch_selection", "FixedBatchSampling"),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("adapter", "library", "module", "name"), IMPORTED)
def test_a_name_that_is_gone(adapter, library, module, name, monkeypatch):
    theirs = pytest.importorskip(module, reason=f"the adapter of {library} needs {library}")
    monkeypatch.delattr(theirs, name)
    whole = f"privamp.adapters.{adapter}"
    kept = sys.modules.pop(whole, None)
    try:
        with pytest.raises(PrivampError, match=rf"^{library} \d.* failed while .*{library} {TESTED[library]}"):
            importlib.import_module(whole)
    finally:
        if kept is not None:
            sys.modules[whole] = kept


def sentence(library, doing):
    return pytest.raises(InvalidInput, match=rf"^{library} .* failed while {doing} \(AttributeError\)")


def test_an_event_without_its_field():
    dp = pytest.importorskip("dp_accounting.dp_event", reason="needs dp-accounting")
    from privamp.adapters.dp_accounting import guarantee_of

    event = dp.GaussianDpEvent.__new__(dp.GaussianDpEvent)  # no noise_multiplier
    with sentence("dp-accounting", "reading its events"):
        guarantee_of(event, AR)


def test_a_strategy_without_its_field():
    theirs = pytest.importorskip("jax_privacy.batch_selection", reason="needs jax-privacy")
    from privamp.adapters.jax_privacy import plan_of

    strategy = object.__new__(theirs.BallsInBinsSampling)
    with sentence("jax-privacy", "reading a strategy"):
        plan_of(strategy, 10, AR)


def test_an_optimizer_without_its_field():
    pytest.importorskip("opacus", reason="needs Opacus")
    from privamp.adapters.opacus import PoissonAccountant

    class DPOptimizer:
        """Of another version: it counts no iterations."""

        noise_multiplier = 1.0

    accountant = PoissonAccountant()
    with sentence("opacus", "counting a step"):
        accountant.get_optimizer_hook_fn(0.1)(DPOptimizer())
    assert len(accountant) == 0


def test_a_data_set_without_a_length():
    pytest.importorskip("torch", reason="needs torch")
    from privamp.adapters.torch import KeyedBatchSampler, keyed_loader

    sampler = KeyedBatchSampler(Rounds(Poisson(0.5), 2), 5, Gaussian(1.0))
    with pytest.raises(InvalidInput, match=r"^torch .* failed while making a loader \(TypeError\)"):
        keyed_loader(object(), sampler)


def test_a_measurement_without_its_field(monkeypatch):
    dp = pytest.importorskip("opendp.prelude", reason="needs OpenDP")
    from privamp.adapters.opendp import Amplified, run_on

    dp.enable_features("contrib", "honest-but-curious")
    with sentence("opendp", "reading a measurement"):
        run_on(Poisson(0.5).draw(3, Key.generate()), object(), [1.0, 2.0, 3.0])
    monkeypatch.delattr(dp.m, "make_user_measurement")
    with sentence("opendp", "making a measurement"):
        Amplified(Laplace(1.0), Poisson(0.1)).measurement()
