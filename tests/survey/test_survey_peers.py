"""As epsilon grows, estimates from the classical samples of schools are those of samplics and of R's survey package.

The facts are what samplics 0.6.1 printed (benchmarks/survey_peers.py).
"""

import pytest

from scripts import script

peers = script("benchmarks/survey_peers.py")
pytestmark = pytest.mark.skipif(not peers.DATA.is_file(), reason="api_schools.csv.gz is not here")


@pytest.fixture(scope="module")
def rows():
    return peers.schools()


@pytest.mark.parametrize(("name", "statistic"), peers.PRINTED)
def test_the_same_numbers_without_noise(rows, name, statistic):
    value, error = peers.PRINTED[name, statistic]
    found = peers.released(rows, name, statistic, 1e6)
    assert found.value == pytest.approx(value, rel=1e-5)
    if name == "clus1":  # a large district that may have been missed is in the error
        assert error < found.sampling_error < 3 * error
    elif error is not None:
        assert found.sampling_error == pytest.approx(error, rel=2e-3)
    assert found.noise_error < 1e-4 * abs(value)


@pytest.mark.filterwarnings("ignore")  # of samplics
@pytest.mark.parametrize(("name", "statistic"), peers.PRINTED)
def test_samplics_prints_what_is_compared(rows, name, statistic):
    pytest.importorskip("samplics")
    found, printed = peers.by_samplics(rows, name, statistic), peers.PRINTED[name, statistic]
    assert [each is None for each in found] == [each is None for each in printed]
    assert found[0] == pytest.approx(printed[0], rel=1e-9)
    assert printed[1] is None or found[1] == pytest.approx(printed[1], rel=1e-9)


def test_nearer_with_every_budget(rows):
    value, _ = peers.PRINTED["strat", "mean of api00"]
    away = [abs(peers.released(rows, "strat", "mean of api00", epsilon).value - value) for epsilon in (1.0, 30.0, 1e3)]
    assert away == sorted(away, reverse=True)
