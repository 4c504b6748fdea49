"""Whatever moves away from a baseline is caught, and nothing else raises an alarm.

The statistical tests compare a rate with its bound by one-sided Clopper-Pearson limits; each errs with probability
1e-8 at most, all together 2e-7.
"""

import itertools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats

from certified_unlearning.errors import DataError
from certified_unlearning.files import read_model, write_json
from certified_unlearning.reproduction import regression
from certified_unlearning.reproduction.regression import (
    OF_A_POINT,
    OF_THE_PRESET,
    Baseline,
    ChangedQuantity,
    RegressionError,
    chance,
    compare,
    make_baseline,
    write_baseline,
)
from certified_unlearning.reproduction.rows import RUN_ROWS, write_table

TEST_RECORDS = 360
TRIALS = 24  # the fewest for these 7 points
TESTS = 8  # each point, and all together
WITHOUT_NOISE = 3  # the position in POINTS
ERROR_RATE = 1e-8
SHARED: dict[str, Any] = {
    "preset": "smoke",
    "dataset": "digits",
    "features": "pixels",
    "guarantee": "upper bound",
    "adjacency": "replace",
    "smoothness": "bound",
    "epsilon_target": 1.0,
    "mu": None,
    "initial_epsilon": None,
    "delta": 1 / 1437,
    "extra_delta": 0.0,
    "rounding_error": 0.0,
    "n": 1437,
    "d": 64,
    "strong_convexity": 0.02874,
    "smoothness_constant": 0.27874,
    "lipschitz": 1.0,
    "step_size": 1 / 0.27874,
    "learning_steps": 268,
    "records_per_request": 1,
    "request": 1,
    "records_removed": 1,
    "seed": 123,
    "seconds": 0.01,
    "device": "cpu",
    "dtype": "float32",
    "data_sha256": "e9" * 32,
    "code_version": "0.1.0",
}


def method(experiment: str, mechanism: str, variant: str, accountant: str, steps: int, **others: Any) -> dict[str, Any]:
    names = {"experiment": experiment, "mechanism": mechanism, "variant": variant, "accountant": accountant}
    return {**SHARED, **names, "unlearning_steps": steps, "accumulated_steps": steps, **others}


def named(point: str, values: dict[str, Any]) -> dict[str, Any]:
    """With the names that a plan gives: the tests need the point's alone."""
    return {**values, "method": "a method", "member": "", "line": "a line", "point": point}


LANGEVIN = ("langevin", "least-sigma", "lsi")
STREAM = method("fig3b", "langevin", "least-steps", "shifted", 12, epsilon=0.98, mu=0.3, sigma=0.03)
UNNAMED: list[tuple[str, dict[str, Any]]] = [
    ("a", method("fig3a", *LANGEVIN, 1, epsilon_target=0.5, epsilon=0.5, sigma=0.09, initial_epsilon=0.501)),
    ("b", method("fig3a", *LANGEVIN, 1, epsilon=1.0, sigma=0.046, initial_epsilon=1.002)),
    ("c", method("fig3a", "descent-to-delete", "secret-state", "descent-to-delete N.1", 1, epsilon=1.0, sigma=3.3)),
    ("d", method("fig3a", "retraining", "noiseless", "none", 0, epsilon=0.0, sigma=0.0, guarantee="exact")),
    ("e", STREAM),
    ("e", {**STREAM, "request": 2, "unlearning_steps": 14, "accumulated_steps": 26, "records_removed": 2}),
    ("f", method("fig3b", "retraining", "noisy", "none", 0, epsilon=0.0, sigma=0.03)),
]
NAMES = [
    "fig3a: Langevin (lsi), K = 1, epsilon = 0.5, request 1",
    "fig3a: Langevin (lsi), K = 1, epsilon = 1, request 1",
    "fig3a: Descent-to-Delete (printed), I = 1, secret state, epsilon = 1, request 1",
    "fig3a: Retraining, noiseless, request 1",
    "fig3b: Langevin (shifted), S = 1, request 1",
    "fig3b: Langevin (shifted), S = 1, request 2",
    "fig3b: Retraining, noisy, request 1",
]
POINTS = [
    (key, named(name.partition(": ")[2].rpartition(", request")[0], values))
    for (key, values), name in zip(UNNAMED, NAMES, strict=True)
]


RATED = {"balanced_accuracy": 0.7, "auc": 0.8, "log_loss": 0.5, "majority": 0.51}
"""What is not compared."""


def some_trials(seed: int = 0, trials: int = TRIALS) -> list[NDArray[np.int64]]:
    """Return correct test records of each point: beta-binomial, except for the run without noise."""
    random = np.random.default_rng(seed)
    means = [0.69, 0.82, 0.52, None, 0.84, 0.83, 0.83]
    return [
        np.full(trials, 304)
        if mean is None
        else random.binomial(TEST_RECORDS, random.beta(60 * mean, 60 * (1 - mean), trials))
        for mean in means
    ]


def some_records(correct: Sequence[NDArray[np.int64]]) -> pd.DataFrame:
    rows = [
        {**point, **RATED, "run_key": key, "trial": trial, "accuracy": count / TEST_RECORDS}
        for (key, point), counts in zip(POINTS, correct, strict=True)
        for trial, count in enumerate(counts)
    ]
    return pd.DataFrame(rows)[RUN_ROWS.names].astype({"mu": float, "initial_epsilon": float})


RECORDS = some_records(some_trials())
BASELINE = make_baseline(RECORDS, TEST_RECORDS)


@pytest.fixture
def records() -> pd.DataFrame:
    return RECORDS.copy()


@pytest.fixture
def baseline() -> Baseline:
    return BASELINE.model_copy(deep=True)


def rows_at(records: pd.DataFrame, point: int) -> "pd.Series[bool]":
    key, constants = POINTS[point]
    return (records["run_key"] == key) & (records["request"] == constants["request"])


def test_a_baseline_names_every_sweep_point_and_request(baseline: Baseline) -> None:
    assert list(baseline.points) == sorted(NAMES)


def test_every_column_of_the_records_is_compared_or_known_to_differ_between_runs_that_agree() -> None:
    # A point is named after its line, a line after its method and member.
    key = {"experiment", "method", "member", "line", "point", "request", "trial"}
    compared = {*OF_THE_PRESET, *OF_A_POINT, "accuracy"}
    # run_key is a digest of constants, so it holds their last digits.
    free = {"run_key", "seconds", "device", "code_version", *RATED}
    assert sorted([*key, *compared, *free]) == sorted(RUN_ROWS.names)


# What must raise an alarm.


def test_two_records_with_swapped_epsilons_are_caught(records: pd.DataFrame, baseline: Baseline) -> None:
    one, other = (records.index[rows_at(records, point)][3] for point in (0, 1))
    records.loc[[one, other], "epsilon"] = records.loc[[other, one], "epsilon"].to_numpy()
    assert compare(records, baseline) == [
        ChangedQuantity(NAMES[0], "epsilon", 0.5, 1.0),
        ChangedQuantity(NAMES[1], "epsilon", 1.0, 0.5),
    ]


def scaled(accuracies: "pd.Series[float]") -> "pd.Series[float]":
    """Return 0.97 of each, as far as the test records allow."""
    return (0.97 * accuracies * TEST_RECORDS).round() / TEST_RECORDS


@pytest.mark.parametrize("point", range(len(POINTS)), ids=NAMES)
def test_an_accuracy_scaled_by_0_97_is_caught(records: pd.DataFrame, baseline: Baseline, point: int) -> None:
    rows = rows_at(records, point)
    before = records.loc[rows, "accuracy"].mean()
    records.loc[rows, "accuracy"] = scaled(records.loc[rows, "accuracy"])
    (move,) = compare(records, baseline)
    assert (move.point, move.quantity) == (NAMES[point], "accuracy")
    assert (move.baseline, move.now) == (pytest.approx(before), pytest.approx(0.97 * before, abs=0.5 / TEST_RECORDS))
    assert move.chance == TESTS * 2.0 ** (1 - TRIALS)


@pytest.mark.parametrize("point", range(len(POINTS)), ids=NAMES)
def test_a_dropped_sweep_point_is_caught(records: pd.DataFrame, baseline: Baseline, point: int) -> None:
    moves = compare(records[~rows_at(records, point)], baseline)
    assert moves == [ChangedQuantity(NAMES[point], "sweep point", "present", "missing")]


def test_a_new_sweep_point_is_caught(records: pd.DataFrame, baseline: Baseline) -> None:
    new = records[rows_at(records, 1)].assign(
        run_key="new", epsilon_target=2.0, point="Langevin (lsi), K = 1, epsilon = 2"
    )
    moves = compare(pd.concat([records, new]), baseline)
    assert moves == [ChangedQuantity(NAMES[1].replace("epsilon = 1", "epsilon = 2"), "sweep point", "absent", "new")]


def test_a_point_of_another_name_is_missing_and_new(records: pd.DataFrame, baseline: Baseline) -> None:
    records.loc[rows_at(records, 6), "point"] = "Retraining, quiet"
    assert compare(records, baseline) == [
        ChangedQuantity("fig3b: Retraining, noisy, request 1", "sweep point", "present", "missing"),
        ChangedQuantity("fig3b: Retraining, quiet, request 1", "sweep point", "absent", "new"),
    ]


@pytest.mark.parametrize("column", [name for name in OF_A_POINT if RUN_ROWS.field(name).type == "double"])
def test_a_number_of_one_record_that_moves_by_2e_6_is_caught(
    records: pd.DataFrame, baseline: Baseline, column: str
) -> None:
    last = records.index[rows_at(records, 1)][-1]
    before = None if pd.isna(records.loc[last, column]) else records.loc[last, column]
    records.loc[last, column] = before * (1 + 2e-6) if before else 1e-9
    assert compare(records, baseline) == [ChangedQuantity(NAMES[1], column, before, records.loc[last, column])]


@pytest.mark.parametrize("column", [name for name in OF_A_POINT if RUN_ROWS.field(name).type != "double"])
def test_a_name_or_whole_number_of_one_record_that_changes_is_caught(
    records: pd.DataFrame, baseline: Baseline, column: str
) -> None:
    last = records.index[rows_at(records, 1)][-1]
    before = records.loc[last, column]
    records.loc[last, column] = "other" if isinstance(before, str) else before + 1
    assert compare(records, baseline) == [ChangedQuantity(NAMES[1], column, before, records.loc[last, column])]


@pytest.mark.parametrize("column", OF_THE_PRESET)
def test_other_data_or_another_seed_are_caught(records: pd.DataFrame, baseline: Baseline, column: str) -> None:
    before = records.loc[0, column]
    records[column] = "other" if isinstance(before, str) else before + 1
    assert compare(records, baseline) == [ChangedQuantity("all points", column, before, records.loc[0, column])]


def test_a_number_that_becomes_empty_is_caught(records: pd.DataFrame, baseline: Baseline) -> None:
    records.loc[rows_at(records, 4), "mu"] = None
    assert compare(records, baseline) == [ChangedQuantity(NAMES[4], "mu", 0.3, None)]


def test_an_empty_epsilon_equals_an_empty_one_and_no_number(
    tmp_path: Path, records: pd.DataFrame, baseline: Baseline, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, name = rows_at(records, WITHOUT_NOISE), NAMES[WITHOUT_NOISE]
    empty = records.assign(epsilon=records["epsilon"].mask(rows), guarantee=records["guarantee"].mask(rows, "none"))
    write_baseline(tmp_path / "baseline.json", make_baseline(empty, TEST_RECORDS))
    accepted = read_model(tmp_path / "baseline.json", Baseline, "a baseline")
    assert accepted.points[name].constants["epsilon"] is None
    assert compare(empty, accepted) == []
    for number in (0.0, 1e-9, 1.0):
        one = empty.copy()
        one.loc[one.index[rows][-1], "epsilon"] = number  # In a single trial.
        moves = compare(one, accepted)
        assert moves == [ChangedQuantity(name, "epsilon", None, number)]
        regression.show(moves)
        assert "empty" in capsys.readouterr().out
        with pytest.raises(DataError, match=f"epsilon of {name} should have one value, but has None, {number}"):
            make_baseline(one, TEST_RECORDS)
    moves = compare(empty, baseline)
    assert moves == [ChangedQuantity(name, "guarantee", "exact", "none"), ChangedQuantity(name, "epsilon", 0.0, None)]


@pytest.mark.parametrize("lost", [0, 29])
def test_a_lost_trial_is_caught_and_the_others_are_compared_with_their_own(lost: int) -> None:
    records = some_records([100 + 5 * np.arange(30)] * len(POINTS))  # every neighbour is 5 test records away
    moves = compare(records[~rows_at(records, 2) | (records["trial"] != lost)], make_baseline(records, TEST_RECORDS))
    assert moves == [ChangedQuantity(NAMES[2], "trials", 30, 29)]


def test_one_trial_more_is_caught(records: pd.DataFrame, baseline: Baseline) -> None:
    more = records[rows_at(records, 2)].iloc[:1].assign(trial=TRIALS)
    assert compare(pd.concat([records, more]), baseline) == [ChangedQuantity(NAMES[2], "trials", TRIALS, TRIALS + 1)]


def test_two_test_records_less_in_every_trial_are_caught(records: pd.DataFrame, baseline: Baseline) -> None:
    records.loc[rows_at(records, 3), "accuracy"] -= 2 / TEST_RECORDS
    (move,) = compare(records, baseline)
    assert (move.point, move.quantity) == (NAMES[3], "accuracy")


@pytest.mark.parametrize("shift", [-1, 1])
def test_one_test_record_in_every_trial_of_every_point_is_caught(
    records: pd.DataFrame, baseline: Baseline, shift: int
) -> None:
    noisy = ~rows_at(records, WITHOUT_NOISE)
    before = records.loc[noisy, "accuracy"].mean()
    records["accuracy"] += shift / TEST_RECORDS
    (move,) = compare(records, baseline)
    assert (move.point, move.quantity) == ("all points together", "accuracy")
    assert (move.baseline, move.now) == (pytest.approx(before), pytest.approx(before + shift / TEST_RECORDS))
    assert move.chance == TESTS * 2.0 ** (1 - TRIALS)


# What must not.


def test_the_same_run_in_another_order_raises_no_alarm(records: pd.DataFrame, baseline: Baseline) -> None:
    assert compare(records, baseline) == []
    assert compare(records.sample(frac=1.0, random_state=7), baseline) == []


def test_the_last_digits_of_another_library_raise_no_alarm(records: pd.DataFrame, baseline: Baseline) -> None:
    numbers = [name for name in OF_A_POINT if RUN_ROWS.field(name).type == "double" and name != "epsilon_target"]
    records[numbers] *= 1 + 5e-7
    assert compare(records, baseline) == []


@pytest.mark.parametrize("flipped", [-1, 1])
@pytest.mark.parametrize("point", range(len(POINTS)), ids=NAMES)
def test_a_test_record_that_another_machine_rounds_to_the_other_side_raises_no_alarm(
    records: pd.DataFrame, baseline: Baseline, flipped: int, point: int
) -> None:
    records.loc[rows_at(records, point) | rows_at(records, WITHOUT_NOISE), "accuracy"] += flipped / TEST_RECORDS
    assert compare(records, baseline) == []


def test_a_test_record_that_half_of_the_points_lose_in_every_trial_raises_no_alarm(
    records: pd.DataFrame, baseline: Baseline
) -> None:
    for point in (0, 1, 2, WITHOUT_NOISE):
        records.loc[rows_at(records, point), "accuracy"] -= 1 / TEST_RECORDS
    assert compare(records, baseline) == []


LAWS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], NDArray[np.int64]]] = {
    "binomial": lambda random, shape: random.binomial(TEST_RECORDS, 0.83, shape),
    "wide": lambda random, shape: random.binomial(TEST_RECORDS, random.beta(6, 4, shape)),
    "almost without noise": lambda random, shape: random.choice(
        [301, 303, 304, 305], p=[0.1, 0.2, 0.5, 0.2], size=shape
    ),
    "narrow": lambda random, shape: random.binomial(8, 0.5, shape) + 300,
    "with outliers": lambda random, shape: np.where(random.random(shape) < 0.1, 180, random.binomial(360, 0.85, shape)),
}


def exceeds(alarms: int, simulations: int, rate: float) -> bool:
    """Return whether so many alarms contradict a rate of at most this (Clopper-Pearson)."""
    return alarms > 0 and bool(stats.beta.ppf(ERROR_RATE, alarms, simulations - alarms + 1) > rate)


def p_values(law: str, trials: int, simulations: int, p_value: Callable[..., float]) -> NDArray[np.float64]:
    random = np.random.default_rng(42)
    before, now = LAWS[law](random, (2, simulations, trials))
    return np.array([p_value(each) for each in now - before])


@pytest.mark.statistical
@pytest.mark.parametrize("law", LAWS)
def test_fresh_random_numbers_raise_a_false_alarm_no_more_often_than_said(law: str) -> None:
    p = p_values(law, TRIALS, 3000, chance)
    for rate in (0.1, 0.01):
        assert not exceeds(np.count_nonzero(p <= rate), p.size, rate)


def test_that_test_sees_a_p_value_that_is_half_of_what_it_should_be() -> None:
    p = p_values("binomial", TRIALS, 3000, chance) / 2
    assert exceeds(np.count_nonzero(p <= 0.1), p.size, 0.1)


@pytest.mark.statistical
def test_all_sweep_points_together_raise_false_alarms_no_more_often_than_said(
    monkeypatch: pytest.MonkeyPatch, records: pd.DataFrame, baseline: Baseline
) -> None:
    monkeypatch.setattr(regression, "FALSE_ALARM_RATE", 0.1 * TESTS)
    simulations, alarms, uncorrected = 60, 0, 0
    for seed in range(simulations):
        accepted = dict(zip(NAMES, some_trials(10_000 + seed), strict=True))
        points = {
            name: point.model_copy(update={"correct": accepted[name].tolist()})
            for name, point in baseline.points.items()
        }
        fresh = records.assign(accuracy=np.concatenate(some_trials(20_000 + seed)) / TEST_RECORDS)
        moves = compare(fresh, baseline.model_copy(update={"points": points}))
        alarms += any(move.chance is not None and move.chance <= 0.1 for move in moves)
        uncorrected += bool(moves)  # as if Bonferroni's correction were forgotten: about 1 - 0.9^6 = 0.47
    assert not exceeds(alarms, simulations, 0.1)
    assert exceeds(uncorrected, simulations, 0.1)


def alarms_together(simulations: int, rate: float, shared: bool) -> int:
    """Return how often all points together have a p-value of at most this when nothing changed."""
    random, alarms = np.random.default_rng(11), 0
    shape = (1 if shared else len(POINTS), TRIALS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(regression, "FALSE_ALARM_RATE", rate * TESTS)
        for _ in range(simulations):
            before, now = (np.broadcast_to(random.binomial(360, 0.8, shape), (len(POINTS), TRIALS)) for _ in "ab")
            changes = {
                name: pd.DataFrame({"before": before[point], "now": now[point]}) for point, name in enumerate(NAMES)
            }
            alarms += bool(list(regression._moved_together(BASELINE, changes)))
    return alarms


@pytest.mark.statistical
@pytest.mark.parametrize("shared", [True, False], ids=["points share random numbers", "each has its own"])
def test_all_points_together_raise_a_false_alarm_no_more_often_than_said(shared: bool) -> None:
    assert not exceeds(alarms_together(400, 0.1, shared), 400, 0.1)


def test_that_test_sees_a_p_value_that_is_a_quarter_of_what_it_should_be() -> None:
    assert exceeds(alarms_together(400, 0.4, shared=True), 400, 0.1)


@pytest.mark.parametrize("seed", range(20))
def test_chance_is_the_share_of_sign_patterns_as_far_from_zero(seed: int) -> None:
    random = np.random.default_rng(seed)
    differences = random.integers(-6, 9, size=random.integers(1, 11))
    shrunk = np.sign(differences) * np.maximum(np.abs(differences) - 1, 0)
    sums = [np.dot(signs, shrunk) for signs in itertools.product((-1, 1), repeat=len(shrunk))]
    assert chance(differences) == np.mean(np.abs(sums) >= abs(shrunk.sum()))


@pytest.mark.parametrize(
    ("differences", "expected"),
    [([], 1.0), ([1, -1, 1], 1.0), ([2], 1.0), ([-5, -5], 0.5), ([5, -5], 1.0), ([9] * 100, 2.0**-99)],
)
def test_chance_of_a_few_differences(differences: list[int], expected: float) -> None:
    assert chance(np.array(differences, int)) == expected


def test_fresh_random_numbers_that_shift_by_two_and_a_half_deviations_are_caught_with_40_trials_and_77_points() -> None:
    random = np.random.default_rng(5)
    before, now = np.rint(random.normal(0.0, 10.0, (2, 300, 40))).astype(int)
    caught = sum(chance(each) * 77 <= regression.FALSE_ALARM_RATE for each in now + 25 - before)
    assert not exceeds(300 - caught, 300, 0.05)


# What cannot be a baseline.

IMPOSSIBLE = [
    (0.8501, r"^fig3a: .* an accuracy of 0.8501, which is not a multiple of 1/360 from 0 to 1"),
    (np.nan, r"^fig3a: .* an accuracy of nan, which"),
    (np.inf, r"^fig3a: .* an accuracy of inf, which"),
    (361 / 360, r"^fig3a: .* an accuracy of 1.00278, which"),
    (-1 / 360, r"^fig3a: .* an accuracy of -0.00277778, which"),
]


@pytest.mark.parametrize(("accuracy", "sentence"), IMPOSSIBLE)
def test_an_accuracy_that_the_test_records_cannot_give_is_refused_with_its_point(
    records: pd.DataFrame, baseline: Baseline, accuracy: float, sentence: str
) -> None:
    records.loc[records.index[rows_at(records, 4)][-1], "accuracy"] = accuracy
    with pytest.raises(
        DataError, match=sentence.replace("fig3a: .*", r"fig3b: Langevin \(shifted\), S = 1, request 1 has")
    ):
        compare(records, baseline)


@pytest.mark.parametrize("accuracy", [0.0, 1.0])
def test_no_and_all_test_records_are_possible(records: pd.DataFrame, accuracy: float) -> None:
    everywhere = records.assign(accuracy=accuracy)
    assert compare(everywhere, make_baseline(everywhere, TEST_RECORDS)) == []


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda rows: rows[:0], "there are no records"),
        (
            lambda rows: rows[rows["trial"] < TRIALS - 1],
            f"has {TRIALS - 1} trials, but a baseline of 7 points needs {TRIALS}",
        ),
        (lambda rows: rows[rows["trial"] > 0], "has the trials 1, 2, .* must be numbered from 0"),
        (lambda rows: pd.concat([rows, rows[:1]]), "hold a trial twice"),
        (lambda rows: pd.concat([rows, rows[:TRIALS].assign(run_key="copy")]), "more than one run called 'fig3a: Lang"),
        (lambda rows: rows.assign(sigma=np.where(rows.index == 3, 0.5, rows["sigma"])), "sigma of fig3a.* 0.09, 0.5"),
        (lambda rows: rows.assign(seed=rows.index % 2), "seed of the preset should have one value, but has 0, 1"),
        *((lambda rows, wrong=wrong: rows.assign(accuracy=wrong), sentence) for wrong, sentence in IMPOSSIBLE),
    ],
)
def test_records_that_contradict_themselves_or_are_too_few_make_no_baseline(
    records: pd.DataFrame, change: Callable[[pd.DataFrame], pd.DataFrame], sentence: str
) -> None:
    with pytest.raises(DataError, match=sentence):
        make_baseline(change(records), TEST_RECORDS)


def test_the_fewest_trials_are_those_that_can_raise_an_alarm() -> None:
    assert TESTS * 2.0 ** (1 - TRIALS) <= regression.FALSE_ALARM_RATE < TESTS * 2.0 ** (2 - TRIALS)


def test_a_baseline_comes_back_as_it_was_with_each_quantity_on_a_line(tmp_path: Path, baseline: Baseline) -> None:
    write_baseline(tmp_path / "smoke.json", baseline)
    assert read_model(tmp_path / "smoke.json", Baseline, "a baseline") == baseline
    lines = (tmp_path / "smoke.json").read_text().splitlines()
    assert f'      "correct": [{", ".join(["304"] * TRIALS)}]' in lines
    assert len(lines) < (len(OF_A_POINT) + 6) * len(POINTS) + 20


def test_the_same_records_in_another_order_write_the_same_baseline(tmp_path: Path, records: pd.DataFrame) -> None:
    for name, rows in {"a": records, "b": records.sample(frac=1.0, random_state=3)}.items():
        write_baseline(tmp_path / name, make_baseline(rows, TEST_RECORDS))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


# The command.


def write_results(directory: Path, records: pd.DataFrame) -> None:
    write_table(directory / "smoke" / "records.parquet", records, RUN_ROWS)
    write_json(directory / "smoke" / "data.json", {"n_test": TEST_RECORDS})


def test_what_was_accepted_does_not_move(tmp_path: Path, records: pd.DataFrame) -> None:
    write_results(tmp_path, records)
    baseline = tmp_path / "baselines" / "smoke.json"
    assert regression.run(tmp_path, "smoke", baseline, accept=True) == f"accepted: 7 points, in {baseline}"
    assert regression.run(tmp_path, "smoke", baseline, accept=False) == "nothing moved: 7 points compared"


def test_what_moved_is_shown_and_counted(
    tmp_path: Path, records: pd.DataFrame, baseline: Baseline, capsys: pytest.CaptureFixture[str]
) -> None:
    write_baseline(tmp_path / "smoke.json", baseline)
    records.loc[rows_at(records, 3), "accuracy"] = scaled(records.loc[rows_at(records, 3), "accuracy"])
    records.loc[rows_at(records, 1), "epsilon"] = 1.0000021
    write_results(tmp_path, records[~rows_at(records, 6)])
    with pytest.raises(RegressionError, match=r"^3 quantities moved away from .*smoke.json; .* --accept"):
        regression.run(tmp_path, "smoke", tmp_path / "smoke.json", accept=False)
    lines = [line.strip("│ ") for line in capsys.readouterr().out.splitlines() if line.startswith("│")]
    assert [[cell.strip() for cell in line.split("│")] for line in lines] == [
        [NAMES[1], "epsilon", "1", "1.0000021"],
        [NAMES[3], "accuracy", "0.844444444", "0.819444444", f"{TESTS * 2.0 ** (1 - TRIALS):.0e}"],
        [NAMES[6], "sweep point", "present", "missing"],
    ]


def test_one_move_is_counted_as_one(tmp_path: Path, records: pd.DataFrame, baseline: Baseline) -> None:
    write_baseline(tmp_path / "smoke.json", baseline)
    write_results(tmp_path, records[~rows_at(records, 6)])
    with pytest.raises(RegressionError, match=r"^1 quantity moved"):
        regression.run(tmp_path, "smoke", tmp_path / "smoke.json", accept=False)


def test_records_that_cannot_be_a_baseline_leave_the_old_one(
    tmp_path: Path, records: pd.DataFrame, baseline: Baseline
) -> None:
    write_baseline(tmp_path / "smoke.json", baseline)
    write_results(tmp_path, records[records["trial"] < 5])
    with pytest.raises(DataError, match="has 5 trials"):
        regression.run(tmp_path, "smoke", tmp_path / "smoke.json", accept=True)
    assert read_model(tmp_path / "smoke.json", Baseline, "a baseline") == baseline


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda value: value["points"][NAMES[0]]["constants"].pop("sigma"), "sigma missing or superfluous"),
        (lambda value: value["constants"].pop("seed"), "seed missing or superfluous"),
        (lambda value: value["points"][NAMES[0]].pop("correct"), "correct: Field required"),
    ],
)
def test_a_baseline_that_lacks_something_is_refused(
    tmp_path: Path, records: pd.DataFrame, baseline: Baseline, damage: Callable[[Any], Any], sentence: str
) -> None:
    value = json.loads(baseline.model_dump_json())
    damage(value)
    write_json(tmp_path / "smoke.json", value)
    write_results(tmp_path, records)
    with pytest.raises(DataError, match=sentence):
        regression.run(tmp_path, "smoke", tmp_path / "smoke.json", accept=False)


def test_a_missing_baseline_is_named(tmp_path: Path, records: pd.DataFrame) -> None:
    write_results(tmp_path, records)
    with pytest.raises(DataError, match=r"cannot read .*absent.json: No such file"):
        regression.run(tmp_path, "smoke", tmp_path / "absent.json", accept=False)
