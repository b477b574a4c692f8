"""Every job takes a key and a budget, and every releasing command a budget: found by a search, not by a list.

What releases nothing about records is named here with the reason; whatever is new must be one or the other.
"""

import inspect
from importlib import import_module
from importlib.util import find_spec

import typer

from privamp.cli.application import app

ROOMS = ("sums", "queries", "kmeans", "survey", "bootstrap", "sgd", "spark", "torch")
ROOMS += ("engines.local", "engines.stored_sample", "adapters.batches")
MORE = {"kmeans": ("PrivateKMeans", "private_norm_histogram"), "engines.stored_sample": ("StoredSample",)}
MORE["adapters.batches"] = ("KeyedBatches",)  # of which all samplers for other trainers are made

RELEASES_NOTHING = {
    # results, and what is asked for: values without records
    "sums.Release", "survey.Release", "survey.EstimateOptions", "survey.PlanOptions", "survey.AdjustOptions",
    "survey.Stratum", "survey.Pilot", "survey.Allocation", "survey.Cost", "survey.NeymanChange", "survey.Plan",
    "survey.PlanRow",
    "bootstrap.Bounded", "bootstrap.Finding", "bootstrap.Mean", "bootstrap.Plan", "bootstrap.PlanOptions",
    "bootstrap.Procedure", "bootstrap.Quantile", "bootstrap.Regression", "bootstrap.Result", "bootstrap.Variance",
    "sgd.ClippedSum", "sgd.Descended", "torch.LSTM", "torch.DPISPlan", "torch.ImportanceRule", "torch.Plan",
    "torch.Progress", "torch.device", "engines.local.SECRET",
    # planning by public facts
    "survey.allocate", "survey.allocation_loss", "survey.guarantees", "survey.neyman_sensitivity", "survey.plan",
    "bootstrap.plan", "spark.session",
    # records as they are, in another order
    "survey.answers",
    # a question, which its table asks and pays for
    "queries.Question",
    # draws, whose rows are secret: the sample is charged where it is asked
    "spark.draw", "spark.sample", "engines.local.draw", "engines.local.open_sample", "engines.local.sample",
    "engines.local.write",
}  # fmt: skip
SAMPLES = {"spark.SparkSample", "engines.stored_sample.StoredSample"}  # of a key already; charged by `charge` too
OF_A_SAMPLE = {"spark.estimate_strata"}  # given the sample, which has its key

COMMANDS_WITHOUT_RECORDS = {
    # public facts, certificates and theorems
    "amplify", "compare", "calibrate", "weights", "verify", "theorem", "reproduce", "demo", "example", "survey plan",
    "serve",
    # a secret file, or the budget itself
    "sample", "survey draw", "budget create", "budget show", "budget log", "budget cancel", "budget head",
    "budget verify", "budget backup", "budget rotate-key", "budget migrate",
    # made-up records
    "audit designs", "audit bounds", "audit records", "audit release", "audit workloads", "audit mistakes",
}  # fmt: skip

# With budgets too small and large enough, in test_one_door.py.
TRIED = {"survey estimate", "survey pilot", "query", "bootstrap", "kmeans", "train"}


def parameters(function):
    return set(inspect.signature(function).parameters)


def taken(found):
    """The parameters of a function, or of the public methods of a class, all together."""
    if inspect.isfunction(found):
        return parameters(found)
    methods = [member for name, member in inspect.getmembers(found, inspect.isfunction) if name[0] != "_"]
    return set().union(*map(parameters, methods), parameters(found.__init__))


def public_names():
    for room in ROOMS:
        if room == "torch" and find_spec("torch") is None:
            continue
        module = import_module(f"privamp.{room}")
        for name in MORE.get(room, getattr(module, "__all__", ())):
            owner = import_module("privamp") if room == "kmeans" else module
            yield f"{room}.{name}", getattr(owner, name)


def commands(command, path=()):
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*path, name))
    if not hasattr(command, "commands"):
        yield " ".join(path), {option for one in command.params for option in one.opts}


def test_every_job_takes_a_key_and_a_budget():
    seen = dict(public_names())
    for name, found in seen.items():
        if name in RELEASES_NOTHING:
            assert not callable(found) or not inspect.isfunction(found) or "budget" not in parameters(found), name
            continue
        assert "budget" in taken(found), f"{name} takes no budget= and is not named as one that releases nothing"
        if name not in SAMPLES | OF_A_SAMPLE:
            assert "key" in taken(found), f"{name} takes no key="
    assert len(set(seen) - RELEASES_NOTHING) >= 11
    assert not {name for name in RELEASES_NOTHING if not name.startswith("torch")} - set(seen)  # none is forgotten here


def test_every_releasing_command_takes_a_budget():
    found = dict(commands(typer.main.get_command(app)))
    assert set(found) >= COMMANDS_WITHOUT_RECORDS
    paying = set(found) - COMMANDS_WITHOUT_RECORDS
    assert [name for name in sorted(paying) if "--budget" not in found[name]] == []
    assert [name for name in COMMANDS_WITHOUT_RECORDS if "--budget" in found[name]] == []
    assert paying == TRIED


def test_a_job_that_forgets_is_noticed():
    def forgetful(values, *, key=None):
        """A job without a budget."""

    assert "budget" not in taken(forgetful)
    assert "key" in taken(forgetful)
