"""Log entries, before any MLflow is involved."""

import math
import os
from pathlib import Path

import pytest

from certified_unlearning import certificate
from certified_unlearning.errors import DataError
from certified_unlearning.mechanisms.run import Run
from certified_unlearning.papers.langevin_unlearning.paper import PAPER
from certified_unlearning.reproduction.layout import Layout
from certified_unlearning.reproduction.rows import RUN_ROWS, read_table
from certified_unlearning.reproduction.tracking.entries import Entry, Origin
from certified_unlearning.reproduction.tracking.histogram import Histogram
from certified_unlearning.reproduction.tracking.view import ORDER_TAG
from certified_unlearning.text import rounded_up
from tests.reproduction.tracking.of_langevin import entries_of
from tests.support.planning import ANEW, experiment_called


def numbers(entry: Entry, name: str) -> dict[int, float]:
    values = {metric.step: metric.value for metric in entry.metrics if metric.name == name}
    assert len(values) == sum(metric.name == name for metric in entry.metrics), f"{name} twice at a step"
    return values


def warm(run: Run) -> bool:
    """Whether nothing is guaranteed of a run."""
    return (run.mechanism, run.variant) == ("scikit-learn", "warm start")


def entries_by_key(results: Path, experiment: str) -> dict[str, Entry]:
    _, entries = entries_of(results, experiment)
    return {entry.key: entry for entry in entries}


def test_every_sweep_point_has_an_entry_with_the_numbers_of_its_plan_and_records(results, plan):
    entries = entries_by_key(results, "fig3a")
    records = {
        mechanism: read_table(Layout(results, "smoke").run_rows(PAPER.name, "fig3a", mechanism), RUN_ROWS)
        for mechanism in ("langevin", "descent-to-delete", *ANEW)
    }
    assert set(entries) == {plan.key(run) for run in plan.runs}
    for run in plan.runs:
        entry = entries[plan.key(run)]
        rows = records[run.mechanism].query("run_key == @entry.key")
        assert numbers(entry, "epsilon") == ({} if warm(run) else {0: run.requests[0].epsilon})
        assert numbers(entry, "K") == {0: run.requests[0].unlearning_steps}
        assert numbers(entry, "sigma") == {0: run.sigma}
        assert numbers(entry, "accuracy")[0] == pytest.approx(rows["accuracy"].mean(), rel=1e-12)
        assert numbers(entry, "accuracy_std")[0] == pytest.approx(rows["accuracy"].std(ddof=1), rel=1e-12)
        assert entry.params["delta"] == plan.constants.delta
        assert entry.params["step_size"] == run.step_size
        assert entry.params["device"] == "cpu"
        assert entry.params["features"] == plan.features
        assert entry.name == run.point
        assert entry.dataset.sha256 == plan.constants.data_sha256
        assert not any(metric.name.startswith("request/") for metric in entry.metrics)


@pytest.mark.parametrize(
    ("experiment", "point"),
    [("fig3a", "Langevin (shifted), K = 1, epsilon = 1"), ("fig3b", "Langevin (lsi), S = 5")],
    ids=["epsilon", "stream"],
)
def test_the_parent_has_the_headline_of_one_sweep_point_and_says_which(results, write_experiment, experiment, point):
    write_experiment(experiment)
    parent, entries = entries_of(results, experiment)
    (child,) = [entry for entry in entries if entry.name == point]
    headline = {metric.name: metric.value for metric in parent.metrics}
    assert {"epsilon", "K", "sigma", "accuracy", "auc", "log_loss", "majority"} <= set(headline)
    assert all(numbers(child, name) == {0: value} for name, value in headline.items() if name != "seconds")
    assert headline["seconds"] == parent.origin.seconds == pytest.approx(1.5 * len(entries))
    assert f"*{point}*" in parent.description
    assert parent.name.startswith(experiment_called(experiment).source)


def test_every_entry_says_in_words_what_was_done_what_is_guaranteed_and_how_good_it_is(results, plan):
    entries = entries_by_key(results, "fig3a")
    said = {run.point: entries[plan.key(run)].description for run in plan.runs}
    langevin = said["Langevin (lsi), K = 1, epsilon = 0.5"]
    assert langevin.startswith("Langevin (lsi): 1 record of 1,437 removed from a model learned in ")
    (run,) = (run for run in plan.runs if run.point == "Langevin (lsi), K = 1, epsilon = 0.5")
    delta = rounded_up(plan.constants.delta + run.extra_delta, 4)
    assert f"epsilon = 0.5 at delta = {delta} (upper bound, by the accountant lsi)." in langevin
    accuracy = numbers(entries[plan.key(plan.runs[0])], "accuracy")[0]
    assert f"Test accuracy {accuracy:.4f} ± " in langevin
    assert "epsilon = 0 at delta = " in said["scikit-learn, from zero"]
    assert "Nothing is guaranteed." in said["scikit-learn, warm start"]
    assert "epsilon" not in said["scikit-learn, warm start"]


def test_an_entry_is_from_the_code_that_declares_it_took_its_time_and_ended_when_it_was_written(results, plan):
    path = Layout(results, "smoke").run_rows(PAPER.name, "fig3a", "langevin")
    os.utime(path, (1.7e9, 1.7e9))
    entries = entries_by_key(results, "fig3a")
    written = read_table(path, RUN_ROWS)["code_version"].iloc[0]
    for run in plan.of("langevin"):
        source = "certified_unlearning.papers.langevin_unlearning.fig3a"
        assert entries[plan.key(run)].origin == Origin(source, written, seconds=1.5, ended=1.7e9)


def test_the_saved_view_s_order_starts_with_what_the_experiment_is_about(results, plan):
    entries = entries_by_key(results, "fig3a")
    ordered = sorted(entries.values(), key=lambda entry: entry.tags[ORDER_TAG])
    about = [plan.key(run) for run in plan.of("langevin")]
    assert [entry.key for entry in ordered[: len(about)]] == about


def test_methods_have_colours_of_their_own(results, plan):
    entries = entries_by_key(results, "fig3a")
    colours = {run.accountant: set() for run in plan.of("langevin")}
    for run in plan.of("langevin"):
        colours[run.accountant].add(entries[plan.key(run)].color)
    assert [len(each) for each in colours.values()] == [1, 1]
    assert len(set.union(*colours.values())) == 2
    assert all(entry.color.startswith("#") for entry in entries.values())


def test_a_warm_start_has_no_epsilon_and_no_mu_and_says_that_nothing_is_guaranteed(results, plan):
    entries = entries_by_key(results, "fig3a")
    from_zero, warm_start = (entries[plan.key(run)] for run in plan.of("scikit-learn"))
    for name in ("epsilon", "mu"):
        assert numbers(from_zero, name) == {0: 0.0}
        assert numbers(warm_start, name) == {}
    assert (from_zero.tags["guarantee"], warm_start.tags["guarantee"]) == ("exact", "none")
    for entry in (from_zero, warm_start):
        assert not any(metric.name.startswith("curve/") for metric in entry.metrics)
        assert all(math.isfinite(metric.value) for metric in entry.metrics)
        assert numbers(entry, "accuracy_std") == {0: 0.0}
        assert numbers(entry, "seconds") == {0: 1.5}
        assert numbers(entry, "K") == numbers(entry, "learning_steps") == {0: 0}


def test_a_stream_has_its_largest_epsilon_all_its_steps_and_one_value_a_request(results, write_experiment):
    plan = write_experiment("fig3b")
    (run,) = plan.of("langevin")
    entry = entries_by_key(results, "fig3b")[plan.key(run)]
    steps = [request.unlearning_steps for request in run.requests]
    assert len(steps) == 2
    assert numbers(entry, "K") == {0: sum(steps)}
    assert numbers(entry, "epsilon") == {0: max(request.epsilon for request in run.requests)}
    assert numbers(entry, "request/K") == {1: steps[0], 2: steps[1]}
    assert numbers(entry, "request/accumulated_K") == {1: steps[0], 2: sum(steps)}
    assert numbers(entry, "request/records_removed") == {1: 5, 2: 10}
    assert numbers(entry, "accuracy") == {0: numbers(entry, "request/accuracy")[2]}
    assert len(entry.accuracies) == plan.settings.trials


def test_a_learning_curve_has_one_value_a_step_though_a_request_takes_no_step(results, write_experiment):
    plan = write_experiment("fig4", epsilon=[5.0], sigma=1.0, records=[1])
    (run,) = plan.of("langevin")
    assert run.requests[0].unlearning_steps == 0
    entry = entries_by_key(results, "fig4")[plan.key(run)]
    curve = numbers(entry, "curve/accuracy")
    assert set(curve) == {1, run.learning_steps}
    assert curve[run.learning_steps] == pytest.approx(numbers(entry, "accuracy")[0], abs=1e-12)


def test_certificates_and_figures_are_artifacts_where_there_are_any(results, plan):
    parent, _ = entries_of(results, "fig3a")
    assert parent.tags == {"figure": "fig3a", "paper": PAPER.name, "preset": "smoke", "kind": "experiment"}
    assert set(parent.files) == {"plan.json", "fig3a.png", "fig3a.pdf"}
    entries = entries_by_key(results, "fig3a")
    for run in plan.runs:
        files = entries[plan.key(run)].files
        assert ("certificate.json" in files) == (run.mechanism not in ANEW)
        if run.mechanism not in ANEW:
            stated = certificate.StepsCertificate.model_validate_json(files["certificate.json"])
            assert stated.run_key == plan.key(run)
        assert files["accuracies.csv"].decode().splitlines()[0] == "request,records_removed,trial,accuracy"


def test_the_digest_changes_with_the_result_and_only_with_it(results, plan, rewrite_rows):
    before = entries_by_key(results, "fig3a")
    again = entries_by_key(results, "fig3a")
    rewrite_rows(plan, "langevin", 1)
    after = entries_by_key(results, "fig3a")
    assert {key: entry.digest for key, entry in before.items()} == {key: entry.digest for key, entry in again.items()}
    changed = {key for key in before if before[key].digest != after[key].digest}
    assert changed == {plan.key(run) for run in plan.of("langevin")}


def test_another_accountant_beside_changes_no_sweep_point(results, plan, write_experiment):
    before = entries_by_key(results, "fig3a")
    write_experiment("fig3a", accountants=["lsi", "lsi-tight", "shifted"])
    after = entries_by_key(results, "fig3a")
    assert len(after) > len(before)
    unchanged = {plan.key(run) for run in plan.of("langevin")}
    assert {after[key].digest for key in unchanged} == {before[key].digest for key in unchanged}


def test_records_that_the_plan_does_not_know_are_left_out(results, plan, write_experiment):
    stale = {plan.key(run) for run in plan.runs}
    newer = plan.model_copy(update={"runs": plan.runs[1:]})
    newer.write(Layout(results, "smoke").plan(PAPER.name, "fig3a"))
    assert set(entries_by_key(results, "fig3a")) == stale - {plan.key(plan.runs[0])}


def test_a_mechanism_without_records_is_left_out_and_none_at_all_is_an_error(results, plan):
    layout = Layout(results, "smoke")
    layout.run_rows(PAPER.name, "fig3a", "retraining").unlink()
    entries = entries_by_key(results, "fig3a")
    assert {entry.tags["mechanism"] for entry in entries.values()} == {
        "langevin",
        "descent-to-delete",
        "scikit-learn",
    }
    for path in layout.of(PAPER.name, "fig3a").glob("*.rows.parquet"):
        path.unlink()
    with pytest.raises(DataError, match=r"fig3a/langevin\.rows\.parquet does not exist"):
        entries_of(results, "fig3a")


@pytest.mark.parametrize("accuracies", [(0.9, 0.91, 0.95), (0.9, 0.9)], ids=["spread", "all-equal"])
def test_a_histogram_shows_every_trial(accuracies, monkeypatch):
    histogram = Histogram()
    histogram.png((0.1, 0.2, 0.3, 0.4), "what was drawn before is wiped away")
    assert histogram.png(accuracies, "three trials").startswith(b"\x89PNG")
    heights = [patch.get_height() for patch in histogram._axes.patches]
    assert sum(heights) == len(accuracies)
