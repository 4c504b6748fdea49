"""Evidence that is missing, damaged or of another kind; what runs say; planted faults are found."""

import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from certified_unlearning.errors import DataError
from certified_unlearning.files import write_json
from certified_unlearning.mechanisms.run import ExperimentPlan
from certified_unlearning.papers.langevin_unlearning.paper import PAPER
from certified_unlearning.reproduction.claims.evidence import Evidence
from certified_unlearning.reproduction.claims.model import claims_of
from certified_unlearning.reproduction.claims.verdicts import evaluate
from certified_unlearning.reproduction.rows import RUN_ROWS, concatenate, read_table, write_table
from tests.reproduction.claims.mnist_results import DATA, SETTINGS, write_results

CLAIMS = {each.claim.id: each for each in claims_of([PAPER])[PAPER.name]}
OF_RUNS = [
    name
    for name, each in CLAIMS.items()
    if name.startswith(("runs-", "smoothness-", "data-mnist"))
    or each.claim.measure in ("final_accuracies", "gaps_to_retraining", "gaps_between_group_sizes")
    or each.claim.measure in ("gaps_to_descent", "accuracy_change")
]


def verdicts_of(*evidence, names=OF_RUNS):
    return {verdict.id: verdict for verdict in evaluate([CLAIMS[name] for name in names], evidence)}


def verdict_of(name, *evidence):
    return verdicts_of(*evidence, names=[name])[name]


@pytest.fixture
def copied(mnist, tmp_path):
    """Results of ones own, to be damaged."""
    shutil.copytree(mnist.layout.directory, tmp_path / "mnist")
    return Evidence.read(tmp_path, "mnist", PAPER)


def edited(evidence, edit):
    """Apply a function to the rows on disk, of all experiments and mechanisms; return the evidence, to be read anew."""
    paths = sorted(evidence.layout.directory.glob("*/*/*.rows.parquet"))
    files = [path for path in paths for _ in range(len(read_table(path, RUN_ROWS)))]
    after = edit(concatenate(paths, RUN_ROWS))
    for path, rows in after.groupby([files[number] for number in after.index]):
        write_table(path, rows, RUN_ROWS)
    for path in set(paths) - {files[number] for number in after.index}:
        path.unlink()
    return replace(evidence)


def without_runs(evidence, experiment, dropped):
    """Take runs out of an experiment's sweep and its rows; return the evidence, to be read anew."""
    path = evidence.layout.plan(PAPER.name, experiment)
    plan = ExperimentPlan.read(path)
    keys = {plan.key(run) for run in plan.runs if dropped(run)}
    assert keys
    plan.model_copy(update={"runs": tuple(run for run in plan.runs if plan.key(run) not in keys)}).write(path)
    return edited(evidence, lambda records: records[~records["run_key"].isin(keys)])


def rows_of(records, **values):
    """Return the labels of the rows that have these values."""
    chosen = np.logical_and.reduce(
        [
            np.isclose(records[key], value) if isinstance(value, float) else records[key] == value
            for key, value in values.items()
        ]
    )
    assert chosen.any()
    return records.index[chosen]


# --- What runs say. -----------------------------------------------------------------------------------------


def test_good_runs_on_mnist_reproduce_all_that_needs_mnist_only(mnist):
    verdicts = verdicts_of(mnist)
    contradicted = {name for name, verdict in verdicts.items() if verdict.verdict == "contradicted"}
    waiting = {name for name, verdict in verdicts.items() if verdict.verdict == "not run"}
    assert contradicted == {"data-mnist-features-text"}
    assert waiting == {
        "runs-cifar10-binary-constants",
        "runs-cifar10-constants",
        "runs-adult-constants",
        "runs-cifar10-fig-3c-steps",
        "runs-fig-5b-descent",
        "fig-3b-cifar10-binary-accuracy",
        "fig-3a-cifar10-close-to-retraining",
        "fig-3a-cifar10-descent-i1",
        "fig-3a-cifar10-descent-i2",
        "fig-3a-cifar10-descent-i5",
        "fig-3a-cifar10-accuracy-rises",
        "fig-3c-cifar10-close-to-retraining",
        "fig-3c-cifar10-accuracy-falls",
    }


def test_orders_and_gaps_are_judged_on_every_data_set(mnist, tmp_path):
    other = write_results(tmp_path, "digits", data=DATA | {"name": "digits"}, settings=SETTINGS)
    one, two = verdict_of("runs-fig-5a-flat-in-s", mnist), verdict_of("runs-fig-5a-flat-in-s", mnist, other)
    assert (one.measured.count("±"), two.measured.count("±")) == (2, 4)
    assert verdict_of("runs-guarantees", mnist, other).verdict == "reproduced"


def test_what_the_paper_says_of_one_data_set_is_judged_on_no_other(mnist, tmp_path):
    other = write_results(tmp_path, "digits", data=DATA | {"name": "digits"}, settings=SETTINGS)
    for name in ("fig-5a-mnist-flat-in-s", "fig-3a-mnist-close-to-retraining", "fig-3c-mnist-accuracy-falls"):
        alone, beside = verdict_of(name, mnist), verdict_of(name, mnist, other)
        assert (alone.verdict, alone.measured) == ("reproduced", beside.measured)
        assert verdict_of(name, other).verdict == "not run"


# --- Planted faults. ----------------------------------------------------------------------------------------


def test_swapped_epsilons_contradict(copied):
    def swap(records):
        first = rows_of(records, experiment="fig3a", mechanism="langevin", epsilon_target=0.5)[0]
        second = rows_of(records, experiment="fig3a", mechanism="langevin", epsilon_target=5.0)[0]
        records.loc[[first, second], "epsilon"] = records.loc[[second, first], "epsilon"].to_numpy()
        return records

    evidence = edited(copied, swap)
    guarantees = verdict_of("runs-guarantees", evidence)
    assert guarantees.verdict == "contradicted"
    assert re.search(
        r"mnist-3-vs-8, fig3a, langevin \(lsi\), epsilon = 5, but its constants give 0\.5",
        guarantees.reason,
    )
    assert verdict_of("runs-targets", evidence).verdict == "contradicted"


def test_swapped_epsilons_of_descent_to_delete_contradict(copied):
    def swap(records):
        first = rows_of(records, accountant="descent-to-delete N.1", epsilon_target=0.5)[0]
        second = rows_of(records, accountant="descent-to-delete shifted", epsilon_target=0.1)[0]
        records.loc[[first, second], "epsilon"] = records.loc[[second, first], "epsilon"].to_numpy()
        return records

    guarantees = verdict_of("runs-guarantees", edited(copied, swap))
    assert guarantees.verdict == "contradicted"
    assert "descent-to-delete (descent-to-delete N.1), epsilon = 0.1, but" in guarantees.reason
    assert "descent-to-delete (descent-to-delete shifted), epsilon = 0.5, but" in guarantees.reason


@pytest.mark.parametrize(
    ("whose", "stated", "named"),
    [
        ({"mechanism": "langevin", "experiment": "fig4"}, None, "langevin (lsi), upper bound, epsilon = nan"),
        ({"mechanism": "retraining", "variant": "noiseless"}, None, "retraining (none), exact, epsilon = nan"),
        ({"variant": "from zero"}, None, "scikit-learn (none), exact, epsilon = nan"),
        ({"variant": "from zero"}, 0.5, "scikit-learn (none), epsilon = 0.5, but its constants give 0"),
        ({"variant": "warm start"}, 0.0, "scikit-learn (none), none, epsilon = 0"),
    ],
)
def test_an_epsilon_that_is_missing_or_stands_where_nothing_is_guaranteed_contradicts(copied, whose, stated, named):
    def change(records):
        records.loc[rows_of(records, **whose)[0], "epsilon"] = stated
        return records

    assert verdict_of("runs-guarantees", copied).verdict == "reproduced"
    verdict = verdict_of("runs-guarantees", edited(copied, change))
    assert verdict.verdict == "contradicted"
    assert named in verdict.reason


def test_another_sigma_than_the_epsilon_was_computed_for_contradicts(copied):
    def shrink(records):
        records.loc[rows_of(records, experiment="fig4", mechanism="langevin"), "sigma"] *= 0.99
        return records

    assert verdict_of("runs-guarantees", edited(copied, shrink)).verdict == "contradicted"


def test_constants_outside_every_theorem_contradict_and_say_why(copied):
    def lengthen(records):
        records.loc[rows_of(records, experiment="fig4", mechanism="langevin"), "step_size"] *= 3
        return records

    verdict = verdict_of("runs-guarantees", edited(copied, lengthen))
    assert verdict.verdict == "contradicted"
    assert "theorems for strongly convex losses need step_size <= 1 / smoothness" in verdict.reason


@pytest.mark.parametrize("constant", ["strong_convexity", "lipschitz", "delta"])
def test_another_constant_in_one_record_contradicts(copied, constant):
    def change(records):
        records.loc[records.index[7], constant] *= 1.01
        return records

    verdict = verdict_of("runs-mnist-constants", edited(copied, change))
    assert verdict.verdict == "contradicted"
    assert f"greatest {constant}" in verdict.reason


def test_one_accuracy_scaled_contradicts_and_is_named(copied):
    def scale(records):
        row = rows_of(records, experiment="fig3c", mechanism="langevin", accountant="lsi", trial=17)[0]
        records.loc[row, "accuracy"] *= 0.97
        return records

    verdict = verdict_of("runs-accuracies", edited(copied, scale))
    assert verdict.verdict == "contradicted"
    assert "fig3c, langevin, trial 17, accuracy 0." in verdict.reason


@pytest.mark.parametrize(
    ("experiment", "records_removed", "claim"),
    [
        ("fig3b", 20, "runs-fig-3b-close-to-retraining"),
        ("fig4", 100, "runs-fig-4-close-to-retraining"),
        ("fig5a", 100, "runs-fig-5a-flat-in-s"),
    ],
)
def test_accuracies_of_a_sweep_point_scaled_contradict(copied, experiment, records_removed, claim):
    def scale(records):
        rows = rows_of(records, experiment=experiment, mechanism="langevin", records_removed=records_removed)
        scaled = records.loc[rows, "accuracy"] * 0.97 * DATA["n_test"]
        records.loc[rows, "accuracy"] = scaled.round() / DATA["n_test"]
        return records

    evidence = edited(copied, scale)
    verdict = verdict_of(claim, evidence)
    assert verdict.verdict == "contradicted"
    assert verdict_of("runs-accuracies", evidence).verdict == "reproduced"


def test_accuracies_that_fall_with_epsilon_or_rise_with_sigma_contradict(copied):
    def turn(records):
        records["accuracy"] = 1 - records["accuracy"]
        return records

    evidence = edited(copied, turn)
    for name in ("runs-fig-3a-accuracy-rises", "runs-fig-3c-accuracy-falls", "runs-fig-3a-descent-i1"):
        assert verdict_of(name, evidence).verdict == "contradicted"
    assert verdict_of("fig-3b-mnist-accuracy", evidence).verdict == "contradicted"


def test_swapped_steps_contradict(copied):
    def swap(records):
        few = rows_of(records, experiment="fig4", mechanism="langevin", epsilon_target=1.0, records_removed=50)
        many = rows_of(records, experiment="fig4", mechanism="langevin", epsilon_target=1.0, records_removed=100)
        steps = records["unlearning_steps"].copy()
        records.loc[few, "unlearning_steps"] = steps[many].to_numpy()
        records.loc[many, "unlearning_steps"] = steps[few].to_numpy()
        return records

    evidence = edited(copied, swap)
    assert "-353, expected at least 0" in verdict_of("runs-fig-4-larger-groups", evidence).reason
    assert verdict_of("runs-guarantees", evidence).verdict == "contradicted"


def test_a_dropped_sweep_point_is_named(copied):
    def drop(records):
        return records.drop(
            rows_of(records, experiment="fig3c", mechanism="langevin", accountant="lsi", sigma=0.2)
        )  # fmt: skip

    names = ["runs-guarantees", "runs-fig-3c-steps-fall", "runs-mnist-fig-3c-steps"]
    verdicts = verdicts_of(edited(copied, drop), names=names)
    for name in names:
        assert verdicts[name].verdict == "not run"
        assert "fig3c, langevin (lsi), epsilon = 1, sigma = 0.2, 100 records" in verdicts[name].reason


def test_a_dropped_trial_of_a_later_request_is_named(copied):
    def drop(records):
        return records.drop(rows_of(records, experiment="fig3b", records_per_request=5, request=3, trial=5))

    reason = verdict_of("runs-accuracies", edited(copied, drop)).reason
    assert "lacks trials of request 3 of a planned run: fig3b, langevin (lsi)" in reason


# --- Missing evidence. --------------------------------------------------------------------------------------


def test_without_results_claims_of_runs_wait():
    for name in ("runs-guarantees", "runs-fig-4-flat-in-s", "smoothness-bound-holds"):
        assert verdict_of(name).reason == "no results; run `snakemake --cores all`"


@pytest.mark.parametrize(
    ("missing", "claim"),
    [
        ("data.json", "data-mnist-records"),
        ("data.json", "smoothness-bound-holds"),
        ("langevin_unlearning/fig3a/retraining.rows.parquet", "runs-guarantees"),
        ("langevin_unlearning/*/plan.json", "runs-guarantees"),
    ],
)
def test_a_missing_file_makes_a_claim_wait_and_says_how_to_get_it(copied, missing, claim):
    for path in list(copied.layout.directory.glob(missing)):
        path.unlink()
    verdict = verdict_of(claim, replace(copied))
    assert (verdict.verdict, verdict.measured) == ("not run", "")
    assert verdict.reason.endswith("run `snakemake --config preset=mnist`")


def test_a_damaged_file_is_an_error_not_a_verdict(copied):
    copied.layout.run_rows(PAPER.name, "fig4", "langevin").write_text("no table")
    with pytest.raises(DataError, match="not a Parquet file"):
        verdict_of("runs-guarantees", copied)


def test_too_few_trials_make_no_verdict(copied):
    settings = SETTINGS.model_copy(update={"trials": 29})
    evidence = write_results(copied.layout.directory / "few", "mnist", settings=settings)
    for name in ("runs-fig-4-close-to-retraining", "runs-fig-3a-accuracy-rises", "fig-3b-mnist-accuracy"):
        verdict = verdict_of(name, evidence)
        assert verdict.verdict == "not run"
        assert verdict.reason.startswith("too few trials to tell: ")
    assert verdict_of("runs-guarantees", evidence).verdict == "reproduced"


def test_runs_under_another_smoothness_do_not_speak_for_table_1(tmp_path):
    evidence = write_results(tmp_path, "mnist", settings=SETTINGS.model_copy(update={"smoothness": "spectral"}))
    assert "have smoothness spectral" in verdict_of("runs-mnist-fig-3c-steps", evidence).reason
    assert verdict_of("runs-guarantees", evidence).verdict == "reproduced"


@pytest.mark.parametrize(
    ("features", "verdict"),
    [
        ("HOG and colour moments of CIFAR-10 images", "not run"),
        ("ResNet-18 (weights 01234567, not ImageNet's) of CIFAR-10 images", "not run"),
        ("ResNet-18 (ImageNet) of CIFAR-10 images", "contradicted"),
    ],
)
def test_numbers_of_other_features_are_not_compared(tmp_path, features, verdict):
    write_json(tmp_path / "c" / "data.json", DATA | {"name": "cifar10-cat-vs-ship", "features": features})
    found = verdict_of("data-cifar10-binary-eigenvalue", Evidence.read(tmp_path, "c", PAPER))
    assert found.verdict == verdict
    named = "is for features ResNet-18 (ImageNet)" in found.reason and f"are for {features}" in found.reason
    assert named == (verdict == "not run")


def test_an_experiment_that_was_not_run_is_named(copied):
    copied.layout.plan(PAPER.name, "fig5a").unlink()
    evidence = edited(copied, lambda records: records[records["experiment"] != "fig5a"])
    reason = verdict_of("runs-fig-5a-flat-in-s", evidence).reason
    assert "holds no experiment fig5a; run `snakemake --config preset=mnist`" in reason


def test_a_value_that_no_sweep_has_is_named(copied):
    evidence = without_runs(copied, "fig3c", lambda run: run.sigma == 0.2)
    assert (
        "the records of fig3c on mnist-3-vs-8 lack sigma = 0.2"
        in verdict_of("runs-mnist-fig-3c-steps", evidence).reason
    )
    assert verdict_of("runs-fig-3c-steps-fall", evidence).verdict == "reproduced"


def test_descent_that_was_not_run_and_retraining_that_is_missing_are_named(copied):
    descent = without_runs(
        copied,
        "fig3a",
        lambda run: run.accountant == "descent-to-delete N.1" and run.requests[0].unlearning_steps == 2,
    )
    evidence = without_runs(descent, "fig3c", lambda run: run.variant == "noisy" and run.sigma == 0.5)
    assert "Descent-to-Delete with I = 2 in fig3a" in verdict_of("runs-fig-3a-descent-i2", evidence).reason
    reason = verdict_of("runs-fig-3c-close-to-retraining", evidence).reason
    assert re.search(r"lack the retraining that matches mnist-3-vs-8, Langevin \(lsi\).*sigma = 0\.5; run", reason)


def test_runs_of_other_accountants_only_say_nothing_of_the_paper(copied):
    evidence = without_runs(copied, "fig3c", lambda run: run.accountant == "lsi")
    assert "contain no run of the accountant lsi" in verdict_of("runs-fig-3c-steps-fall", evidence).reason


# --- Real data. ---------------------------------------------------------------------------------------------


def test_mnist_itself_has_the_eigenvalue_and_the_sizes_of_the_paper(tmp_path: Path):
    if "UNLEARNING_DATA" not in os.environ:
        pytest.skip("UNLEARNING_DATA is not set: no real MNIST here")
    from certified_unlearning.data import sets
    from certified_unlearning.data.fetch import fetch

    mnist = sets.find("mnist-3-vs-8")
    fetch(mnist, tmp_path / "raw")
    write_json(tmp_path / "mnist" / "data.json", mnist.prepare(tmp_path / "raw", 0, None).summary())
    evidence = Evidence.read(tmp_path, "mnist", PAPER)
    names = ["data-mnist-records", "data-mnist-eigenvalue", "table-2-mnist-i5-spectral", "fig-3b-mnist-by-5-spectral"]
    assert {verdict.verdict for verdict in verdicts_of(evidence, names=names).values()} == {"reproduced"}
