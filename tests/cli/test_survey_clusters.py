"""Names of clusters in a file become numbers by public facts alone: who else is in the file moves nobody's."""

import json

import numpy as np
import pytest

from privamp import ClusterPPS, ClusterSampling, Population, PPSClusters, SystematicPPS
from privamp.cli.survey.population import read_records
from privamp.errors import InvalidInput

UNITS = [f"u{number:02d}" for number in range(20)]
NAMED = f"unit={','.join(UNITS)}"
ONES = "+".join(["1"] * 20)


def written(folder, rows, name="frame.csv"):
    path = folder / name
    path.write_text("unit,x\n" + "".join(f"{unit},{x}\n" for unit, x in rows))
    return path


APART = [SystematicPPS((1,) * 20, 10), ClusterPPS((0.05,) * 20, 1), PPSClusters((1,) * 20, 3, 1)]


@pytest.mark.parametrize("design", APART)
def test_an_empty_cluster_moves_no_other_one(design, tmp_path):
    everybody = [(unit, 1) for unit in UNITS]
    full, less = (
        read_records(written(tmp_path, rows, f"{len(rows)}.csv"), cluster=NAMED).population(design).columns["cluster"]
        for rows in (everybody, [row for row in everybody if row[0] != "u10"])
    )
    assert np.array_equal(full, np.arange(20))
    assert np.array_equal(less, np.delete(np.arange(20), 10))


def test_numbers_in_the_column_are_the_designs_numbers(tmp_path):
    sizes = (12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34)
    frame = written(tmp_path, [(number, 1) for number in range(12)])
    found = read_records(frame, cluster="unit").population(SystematicPPS(sizes, 4)).columns["cluster"]
    assert found.tolist() == list(range(12))  # as text 10 would come after 1


def test_every_total_by_public_sizes_is_the_sum_of_the_sizes(privamp, tmp_path):
    sizes = [12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34]
    frame = written(tmp_path, list(enumerate(sizes)))
    spec = f"systematic-pps:sizes={'+'.join(map(str, sizes))},chosen=4"
    asked = ["--value", "x", "--statistic", "total", "--bounds", "0:40", "--epsilon", "1000", "--sd", "range"]
    found = privamp("survey", "estimate", str(frame), *asked, "--design", spec, "--cluster", "unit", "--json")
    assert found.exit_code == 0, found.stderr
    assert json.loads(found.stdout)["estimates"][0]["estimate"] == pytest.approx(sum(sizes), abs=3.0)


@pytest.mark.parametrize(
    ("cluster", "match"),
    [
        ("unit", "--cluster unit=first,second"),
        ("unit=u00,u01", "must name the design's 20 clusters"),
        (f"unit={','.join(['a', *UNITS[1:]])}", "not among the 20 names given"),
        ("unit=a,a", "every cluster once"),
    ],
)
def test_names_that_the_design_cannot_place_are_refused(cluster, match, tmp_path):
    frame = written(tmp_path, [(unit, 1) for unit in UNITS])
    with pytest.raises(InvalidInput, match=match):
        read_records(frame, cluster=cluster).population(SystematicPPS((1,) * 20, 10))


def test_clusters_that_are_alike_need_no_names(tmp_path):
    frame = written(tmp_path, [(unit, 1) for unit in reversed(UNITS)])
    alike, apart = ClusterSampling(3, 20, 5), ClusterSampling(3, 20, (5,) * 19 + (6,))
    assert sorted(read_records(frame, cluster="unit").population(alike).columns["cluster"]) == list(range(20))
    with pytest.raises(InvalidInput, match="numbers from 0 on"):
        read_records(frame, cluster="unit").population(apart)


@pytest.mark.parametrize("labels", [(101, 102, 103), np.array([101, 102, 103]), ("101", "102", "103")])
@pytest.mark.parametrize("column", [[101, 102, 103], ["101", "102", "103"]])
def test_labels_that_are_numbers_find_their_records(labels, column):
    design = ClusterSampling(3, 3, 30, labels=tuple(labels))
    assert design.numbers_of(Population(3, "p", cluster=column).columns["cluster"]).tolist() == [0, 1, 2]


@pytest.mark.parametrize("column", [["0", "1", "2"], np.array(["0", 1, 2.0], dtype=object)])
def test_numbers_as_text_find_their_records_without_labels(column):
    design = SystematicPPS((12, 14, 16), 2)
    assert design.numbers_of(Population(3, "p", cluster=column).columns["cluster"]).tolist() == [0, 1, 2]
