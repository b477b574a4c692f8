"""Every design in the house passes the one suite; a new file in designs/ is found and checked by itself."""

import pytest

from privamp.cli.audit.designs import all_designs
from privamp.verify import check_design

DEEPER = {"Poisson", "WithoutReplacement", "WithReplacement", "MultiStage"}  # 1,000 checks each in test_checks.py


@pytest.mark.parametrize("design", [d for d in all_designs() if d.__name__ not in DEEPER], ids=lambda d: d.__name__)
@pytest.mark.parametrize("seed", [2, *(pytest.param(s, marks=pytest.mark.slow) for s in (3, 4))])
def test_the_design_passes(design, seed):
    report = check_design(design, checks=300, seed=seed)
    assert report.ok, str(report)
    assert report.cases >= 450
    kinds = {tally.kind: tally.comparisons for tally in report.tallies}
    assert kinds["pure upper bounds"] >= 300
    assert {t.name for t in design.theorems} >= {k[7:].split(" [")[0] for k in kinds if k.startswith("alone: ")}


def test_the_house_is_complete():
    names = {design.__name__ for design in all_designs()}
    assert names >= DEEPER | {
        "RandomSize",
        "Proportional",
        "SharedRate",
        "Systematic",
        "Stratified",
        "ClusterSampling",
        "ClusterPPS",
        "PPSClusters",
        "SystematicPPS",
        "PoissonPPS",
        "ClassRates",
        "TruncatedPoisson",
        "ConditionalPoisson",
        "ImportanceSampling",
    }
