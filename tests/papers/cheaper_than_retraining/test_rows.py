"""The rows of `cost`: every system at every point, with numbers or with the reason why there are none."""

import time

import pytest

from certified_unlearning.data import sets
from certified_unlearning.papers.cheaper_than_retraining import measured
from certified_unlearning.papers.cheaper_than_retraining.experiments import COST, COST_ROWS
from certified_unlearning.papers.cheaper_than_retraining.measured import cost_table
from certified_unlearning.papers.cheaper_than_retraining.names import SYSTEMS
from certified_unlearning.papers.cheaper_than_retraining.systems import MADE
from certified_unlearning.reproduction.rows import names, read_table, write_table
from tests.support.planning import sweep_of

NUMBERS = ("passes", "fit_passes", "accuracy", "seconds", "seconds_low", "seconds_high", "fit_seconds")


def small(**changes):
    sizes = {"isotropic": [200], "correlated": [200], "data": ["digits"]}
    return sweep_of("smoke", "cost", **sizes | {"records": [1], "rounds": 2} | changes)


def test_every_system_has_a_row_at_every_point(cost):
    assert list(MADE) == list(SYSTEMS)
    points = cost[["data", "n", "records", "system"]]
    assert not points.duplicated().any()
    assert len(points) == (3 + 1 + 1) * 2 * len(SYSTEMS)
    assert set(points["system"]) == set(SYSTEMS)


def test_rows_have_the_columns_of_the_experiment_and_survive_the_disk(cost, tmp_path):
    write_table(tmp_path / "rows.parquet", cost, COST_ROWS)
    assert len(read_table(tmp_path / "rows.parquet", COST.rows)) == len(cost)


def test_seconds_are_cost_and_what_comes_out_again_is_measure():
    assert names(COST_ROWS, "cost") == ("seconds", "seconds_low", "seconds_high", "fit_seconds")
    assert {"passes", "fit_passes", "accuracy", "requests_that_read", "requests_that_moved"} == set(
        names(COST_ROWS, "measure")
    )


def test_a_row_has_all_numbers_or_the_reason_why_it_has_none(cost):
    skipped = cost["skipped"] != ""
    assert cost.loc[~skipped, list(NUMBERS)].notna().all(axis=None)
    assert cost.loc[skipped, list(NUMBERS)].isna().all(axis=None)
    run = cost[~skipped]
    assert (run["seconds_low"] <= run["seconds"]).all()
    assert (run["seconds"] <= run["seconds_high"]).all()
    assert run["accuracy"].between(0.6, 1).all()


def test_what_is_skipped_says_why(cost):
    own = cost[(cost["skipped"] != "") & (cost["data"] == "isotropic")]
    reasons = own.set_index(["system", "n", "records"])["skipped"]
    assert "too few records for mini-batches" in reasons["langevin-minibatch", 1000, 1]
    assert reasons["langevin-full", 30_000, 1] == (
        "takes too long: not run above n = 10,000 (`largest_full_batch` in params.yaml)"
    )


def test_requests_that_would_take_too_many_records_are_skipped():
    found = cost_table(small(records=[100]))
    found = found[found["data"] != "digits"]
    reason = "2 requests of 100 would remove more than a tenth of the records"
    assert set(found.loc[found["system"] != "langevin-minibatch", "skipped"]) == {reason}


def test_data_that_are_not_there_are_skipped_with_the_reason(tmp_path, monkeypatch):
    monkeypatch.setattr(sets, "RAW_ROOT", tmp_path)
    monkeypatch.setattr(sets, "fetch", lambda known, root: known.prepare(root, 0))
    found = cost_table(small(data=["adult"]))
    found = found[found["data"] == "adult"]
    assert len(found) == len(SYSTEMS)
    assert found["skipped"].str.contains("adult.data").all()


def test_built_in_data_are_measured(cost):
    own = cost[cost["data"] == "digits"]
    assert (set(own["n"]), set(own["d"])) == ({1437}, {64})
    assert set(own.loc[own["skipped"] == "", "system"]) == set(SYSTEMS) - {"langevin-minibatch"}


@pytest.mark.parametrize("name", ["cifar10", "nonsense"])
def test_data_of_more_classes_or_of_no_name_are_refused_before_anything_is_run(name):
    assert small(data=["digits", name]).check() == (
        f"data contains {name!r}, but must name built-in data sets of two classes"
    )


@pytest.mark.parametrize(
    ("system", "guarantee", "adaptive", "stays"),
    [
        ("lbfgs-cold", "exact", True, False),
        ("lbfgs-warm", "none", False, False),
        ("sisa", "exact", False, False),
        ("langevin-full", "upper bound", False, True),
        ("langevin-minibatch", "upper bound", False, True),
        ("descent-to-delete", "upper bound", False, False),
        ("certified-refit", "upper bound", True, False),
        ("newton-removal", "upper bound", True, False),
    ],
)
def test_rows_say_what_is_guaranteed(cost, system, guarantee, adaptive, stays):
    own = cost[(cost["system"] == system) & (cost["skipped"] == "")]
    assert set(own["guarantee"]) == {guarantee}
    assert set(own["adaptive"]) == {adaptive}
    assert set(own["private_for_those_who_stay"]) == {stays}
    if guarantee == "none":
        assert own["epsilon"].isna().all()
    else:
        assert (own["epsilon"] <= 1).all()
        assert (own["delta"] <= 1.1e-6).all()
    if stays:
        assert (own["epsilon_for_those_who_stay"] > own["epsilon"]).all()


def test_everything_but_seconds_comes_out_again():
    first, second = (cost_table(small()) for _ in range(2))
    same = list(names(COST_ROWS, "point", "constant", "measure"))
    assert first[same].equals(second[same])


def test_rows_name_the_machine_and_its_threads(cost):
    (machine,) = set(cost["machine"])
    assert machine == measured.machine(1)
    assert ", 1 thread, scikit-learn " in machine


def test_the_section_of_smoke_is_quick():
    """About 3 seconds of processor time; the limit leaves room for slower machines."""
    start = time.process_time()
    cost_table(sweep_of("smoke", "cost"))
    assert time.process_time() - start < 10
