import csv
import math
import statistics
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from certified_unlearning.errors import DataError, StorageError
from certified_unlearning.files import read_json, write_json
from certified_unlearning.reproduction.rows import RUN_ROWS, read_table, write_table
from certified_unlearning.reproduction.summaries import CONSTANTS, metrics, standard_point, summarise, write_csv

EMPTY = {"string": "", "int64": 1, "double": 0.0}
LANGEVIN = {"experiment": "fig3a", "mechanism": "langevin", "variant": "least-sigma", "accountant": "lsi"}
PRINTED, TIGHTENED = "descent-to-delete N.1", "descent-to-delete shifted"
DESCENT = {
    "experiment": "fig3a",
    "mechanism": "descent-to-delete",
    "variant": "secret-state",
    "accountant": PRINTED,
}
RETRAINING = {"experiment": "fig3a", "mechanism": "retraining", "variant": "noisy", "accountant": "none"}
UNRATED = {"balanced_accuracy": 0.0, "auc": 0.0, "log_loss": 0.0}
"""What rows have here that speak of accuracy alone."""
PER_REQUEST = ("request", "records_removed", "unlearning_steps", "accumulated_steps", "epsilon", "mu")


def named(method: str, member: str = "", state: str = "", swept: str = "") -> dict[str, str]:
    """The names that a plan writes into the rows of a run."""
    line = ", ".join(filter(None, (method, member, state)))
    return {"method": method, "member": member, "line": line, "point": ", ".join(filter(None, (line, swept)))}


def run(accuracies: list[float], **columns: object) -> pd.DataFrame:
    """The rows of one request of one run: one for each trial."""
    plain = {field.name: EMPTY[str(field.type)] for field in RUN_ROWS} | {"dataset": "digits", "mu": None}
    key = {"run_key": repr(sorted((k, v) for k, v in columns.items() if k not in PER_REQUEST))}
    return pd.DataFrame([{**plain, **key, **columns, "trial": t, "accuracy": a} for t, a in enumerate(accuracies)])


def langevin(target: float, **columns: object) -> dict[str, object]:
    names = named("Langevin (lsi)", "K = 1", swept=f"epsilon = {target:g}")
    return {**LANGEVIN, **names, "epsilon_target": target, **columns}


def descent(steps: int, **columns: object) -> dict[str, object]:
    names = named("Descent-to-Delete (printed)", f"I = {steps}", "secret state", "epsilon = 1")
    return {**DESCENT, **names, "unlearning_steps": steps, "epsilon_target": 1.0, **columns}


@pytest.fixture
def records(tmp_path: Path) -> pd.DataFrame:
    rows = pd.concat([
        run([0.8, 0.9, 1.0], **langevin(1.0, epsilon=0.99, sigma=0.2, delta=1e-3, extra_delta=1e-9)),
        run([0.7, 0.7, 0.7], **langevin(0.5, epsilon=0.5, sigma=0.4)),
        run([0.6, 0.7, 0.9], **descent(10, sigma=3.0)),
        run([0.5, 0.6, 0.7], **descent(2, sigma=8.0)),
        run([0.5], **RETRAINING, **named("Retraining, noisy", swept="epsilon = 1"), epsilon_target=1.0, sigma=0.2),
    ])  # fmt: skip
    write_table(tmp_path / "records.parquet", rows, RUN_ROWS)
    return read_table(tmp_path / "records.parquet", RUN_ROWS)


@pytest.fixture
def stream() -> pd.DataFrame:
    names = {
        "experiment": "fig3b",
        "mechanism": "langevin",
        "variant": "least-steps",
        "accountant": "shifted",
        "records_per_request": 5,
        **named("Langevin (shifted)", "S = 5"),
    }
    first = {
        "request": 1,
        "records_removed": 5,
        "unlearning_steps": 30,
        "accumulated_steps": 30,
        "epsilon": 0.98,
        "mu": 0.31,
    }
    second = {
        "request": 2,
        "records_removed": 10,
        "unlearning_steps": 70,
        "accumulated_steps": 100,
        "epsilon": 0.97,
        "mu": 0.29,
    }
    return pd.concat([run([0.8, 0.9], **names, **second), run([0.6, 0.9], **names, **first)])


def test_mean_and_standard_deviation_are_those_computed_by_hand(records: pd.DataFrame) -> None:
    summary = summarise(records, "fig3a").set_index("point")
    row = summary.loc["Langevin (lsi), K = 1, epsilon = 1"]
    assert (row["accuracy_mean"], row["accuracy_std"]) == pytest.approx((0.9, 0.1), rel=1e-12)
    row = summary.loc["Descent-to-Delete (printed), I = 10, secret state, epsilon = 1"]
    # deviations from 11/15 are -2/15, -1/30, 1/6: squares 16/900 + 1/900 + 25/900, divided by 3 - 1
    assert (row["accuracy_mean"], row["accuracy_std"]) == pytest.approx((11 / 15, math.sqrt(21 / 900)), rel=1e-12)
    assert statistics.stdev([0.6, 0.7, 0.9]) == pytest.approx(row["accuracy_std"], rel=1e-12)


def test_a_single_trial_has_no_spread_and_is_counted_as_one(records: pd.DataFrame) -> None:
    row = summarise(records, "fig3a").set_index("label").loc["Retraining, noisy"]
    assert (row["trials"], row["accuracy_mean"], row["accuracy_std"]) == (1, 0.5, 0.0)


def test_an_unknown_accountant_is_named(records: pd.DataFrame) -> None:
    with pytest.raises(DataError, match="fig3a hold the accountant 'wishful', which is not declared"):
        summarise(records.assign(accountant=records["accountant"].replace({"lsi": "wishful"})), "fig3a")


def test_a_mechanism_of_others_stands_where_its_rows_do(records: pd.DataFrame) -> None:
    other = run([0.3], experiment="fig3a", mechanism="scrub", variant="gentle", accountant="none", **named("Scrubbing"))
    before, after = (summarise(pd.concat(rows), "fig3a") for rows in ([other, records], [records, other]))
    assert before["label"].iloc[0] == after["label"].iloc[-1] == "Scrubbing"
    assert before["label"].iloc[1:].tolist() == after["label"].iloc[:-1].tolist()


def test_every_sweep_point_keeps_its_constants(records: pd.DataFrame) -> None:
    summary = summarise(records, "fig3a")
    assert list(summary.columns) == [
        "label",
        "point",
        "method",
        "member",
        *CONSTANTS,
        "trials",
        *(f"{measure}_{which}" for measure in ("accuracy", *UNRATED) for which in ("mean", "std")),
    ]
    assert summary["sigma"].tolist() == [0.4, 0.2, 8.0, 3.0, 0.2]
    assert summary["trials"].tolist() == [3, 3, 3, 3, 1]
    assert summary["method"].unique().tolist() == [
        "Langevin (lsi)",
        "Descent-to-Delete (printed)",
        "Retraining, noisy",
    ]
    assert summary["member"].tolist() == ["K = 1", "K = 1", "I = 2", "I = 10", ""]
    assert {"epsilon", "delta", "n", "d", "sigma", "unlearning_steps", "adjacency"} <= set(CONSTANTS)


def test_mechanisms_are_in_the_order_of_the_rows_and_theirs_in_that_of_steps_and_epsilon(
    records: pd.DataFrame,
) -> None:
    summary = summarise(records, "fig3a")
    assert summary["point"].tolist() == [
        "Langevin (lsi), K = 1, epsilon = 0.5",
        "Langevin (lsi), K = 1, epsilon = 1",
        "Descent-to-Delete (printed), I = 2, secret state, epsilon = 1",
        "Descent-to-Delete (printed), I = 10, secret state, epsilon = 1",
        "Retraining, noisy, epsilon = 1",
    ]
    mechanisms = [rows for _, rows in records.groupby("mechanism", sort=False)]
    for seed in range(5):
        shuffled = pd.concat([rows.sample(frac=1.0, random_state=seed) for rows in mechanisms])
        pd.testing.assert_frame_equal(summarise(shuffled, "fig3a"), summary, check_exact=True)
    assert summarise(pd.concat(mechanisms[::-1]), "fig3a")["mechanism"].unique().tolist() == [
        "retraining",
        "descent-to-delete",
        "langevin",
    ]


def test_swapping_the_accuracies_of_two_mechanisms_changes_the_summary(records: pd.DataFrame) -> None:
    one, other = records["sigma"] == 8.0, (records["sigma"] == 0.2) & (records["mechanism"] == "langevin")
    swapped = records.copy()
    swapped.loc[one, "accuracy"] = records.loc[other, "accuracy"].to_numpy()
    swapped.loc[other, "accuracy"] = records.loc[one, "accuracy"].to_numpy()
    before = summarise(records, "fig3a").set_index("point")["accuracy_mean"]
    after = summarise(swapped, "fig3a").set_index("point")["accuracy_mean"]
    langevin, descent = (
        "Langevin (lsi), K = 1, epsilon = 1",
        "Descent-to-Delete (printed), I = 2, secret state, epsilon = 1",
    )
    assert after[langevin] == before[descent] != after[descent] == before[langevin]


def test_a_stream_has_one_row_per_request_in_order(stream: pd.DataFrame) -> None:
    summary = summarise(stream, "fig3b")
    assert summary["request"].tolist() == [1, 2]
    assert summary["accumulated_steps"].tolist() == [30, 100]
    assert summary["accuracy_mean"].tolist() == pytest.approx([0.75, 0.85])


def test_accountants_come_in_the_order_of_their_tightness_and_members_in_that_of_their_size() -> None:
    names = {"lsi": "Langevin (lsi)", "lsi-tight": "Langevin (lsi-tight)", "shifted": "Langevin (shifted)"}
    stream = {"mechanism": "langevin", "variant": "least-steps", "experiment": "fig3b"}
    published = {"mechanism": "descent-to-delete", "variant": "published-state", "experiment": "fig3b"}
    printed, tightened = (
        named(f"Descent-to-Delete ({form})", "S = 1", "state published") for form in ("printed", "tightened")
    )
    tuned = RETRAINING | {"experiment": "fig3b"}
    runs = [
        *(
            run([0.5], **stream, **named(names[accountant], f"S = {size}"), accountant=accountant,
                records_per_request=size)
            for size in (10, 5)
            for accountant in ("shifted", "lsi", "lsi-tight")
        ),
        run([0.5], **published, **tightened, accountant=TIGHTENED),
        run([0.5], **published, **printed, accountant="descent-to-delete N.2"),
        run([0.5], **tuned, **named("Retraining, noisy")),
        run([0.5], **tuned | {"accountant": "lsi"}, **named("Retraining, noisy (lsi)")),
        run([0.5], **tuned | {"variant": "noiseless"}, **named("Retraining, noiseless")),
        run([0.5], **tuned | {"accountant": "shifted"}, **named("Retraining, noisy (shifted)")),
    ]  # fmt: skip
    assert summarise(pd.concat(runs), "fig3b")["label"].tolist() == [
        "Langevin (lsi), S = 5",
        "Langevin (lsi), S = 10",
        "Langevin (lsi-tight), S = 5",
        "Langevin (lsi-tight), S = 10",
        "Langevin (shifted), S = 5",
        "Langevin (shifted), S = 10",
        "Descent-to-Delete (printed), S = 1, state published",
        "Descent-to-Delete (tightened), S = 1, state published",
        "Retraining, noisy (lsi)",
        "Retraining, noisy (shifted)",
        "Retraining, noisy",
        "Retraining, noiseless",
    ]


def test_members_that_are_fractions_come_in_the_order_of_their_size() -> None:
    rows = [
        run([0.5], **LANGEVIN | {"experiment": "fig5a"}, **named("Langevin (lsi)", f"epsilon = {epsilon:g}"))
        for epsilon in (10.0, 0.5, 2.0, 1e-05)
    ]
    members = summarise(pd.concat(rows), "fig5a")["member"].tolist()
    assert members == ["epsilon = 1e-05", "epsilon = 0.5", "epsilon = 2", "epsilon = 10"]


def test_metrics_hold_the_guarantee_steps_sigma_and_accuracy_of_every_point(records: pd.DataFrame) -> None:
    found = metrics(records)["fig3a"]
    assert list(found) == summarise(records, "fig3a")["point"].tolist()
    assert found["Langevin (lsi), K = 1, epsilon = 1"] == {
        "epsilon": 0.99, "delta": 1e-3, "extra_delta": 1e-9, "sigma": 0.2, "unlearning_steps": 1,
        "accuracy": pytest.approx(0.9), **UNRATED,
    }  # fmt: skip
    assert found["Descent-to-Delete (printed), I = 10, secret state, epsilon = 1"]["unlearning_steps"] == 10


def test_a_point_of_which_nothing_is_guaranteed_has_no_epsilon_in_the_metrics_and_an_empty_one_in_the_summary(
    records: pd.DataFrame, tmp_path: Path
) -> None:
    refits = [
        run([0.9, 0.9], experiment="fig3a", mechanism="scikit-learn", variant=variant, accountant="none",
            **named(f"scikit-learn, {variant}"), epsilon_target=1.0, epsilon=epsilon, mu=epsilon, delta=1e-3)
        for variant, epsilon in (("from zero", 0.0), ("warm start", None))
    ]  # fmt: skip
    write_table(tmp_path / "with.parquet", pd.concat([records, *refits]), RUN_ROWS)
    rows = read_table(tmp_path / "with.parquet", RUN_ROWS)
    found = metrics(rows)["fig3a"]
    numbers = {"delta": 1e-3, "extra_delta": 0.0, "sigma": 0.0, "unlearning_steps": 1, "accuracy": 0.9, **UNRATED}
    assert found["scikit-learn, from zero"] == {"epsilon": 0.0, "mu": 0.0, **numbers}
    assert found["scikit-learn, warm start"] == numbers
    assert all("epsilon" in point for name, point in found.items() if name != "scikit-learn, warm start")
    write_json(tmp_path / "metrics.json", metrics(rows))
    assert read_json(tmp_path / "metrics.json") == metrics(rows)
    write_csv(tmp_path / "numbers.csv", summarise(rows, "fig3a"))
    with (tmp_path / "numbers.csv").open(encoding="utf-8") as file:
        epsilons = {row["label"]: row["epsilon"] for row in csv.DictReader(file)}
    assert (epsilons["scikit-learn, from zero"], epsilons["scikit-learn, warm start"]) == ("0.0", "")


def test_metrics_of_a_stream_are_its_largest_epsilon_and_mu_all_its_steps_and_its_last_accuracy(
    stream: pd.DataFrame,
) -> None:
    assert metrics(stream) == {
        "fig3b": {
            "Langevin (shifted), S = 5": {
                "epsilon": 0.98, "delta": 0.0, "extra_delta": 0.0, "mu": 0.31, "sigma": 0.0,
                "accumulated_steps": 100, "accuracy": pytest.approx(0.85), **UNRATED,
            }
        }
    }  # fmt: skip


def test_metrics_are_named_by_the_points_that_the_plan_wrote() -> None:
    langevin = {"mechanism": "langevin", "variant": "least-steps", "accountant": "lsi", "records_per_request": 100}
    retraining = RETRAINING | {"experiment": "fig4"}
    records = pd.concat([
        run([0.9], **langevin, **named("Langevin (lsi)", "S = 100", swept="sigma = 0.05"), experiment="fig3c"),
        run([0.9], **langevin, **named("Langevin (lsi)", "S = 100", swept="epsilon = 0.5"), experiment="fig4"),
        run([0.9], **retraining, **named("Retraining, noisy", swept="S = 1"), seed=1, records_removed=1),
        run([0.9], **retraining, **named("Retraining, noisy", swept="S = 100"), seed=2, records_removed=100),
        run([0.9], **RETRAINING | {"experiment": "fig3c", "variant": "noiseless"}, **named("Retraining, noiseless")),
    ])  # fmt: skip
    assert {experiment: list(points) for experiment, points in metrics(records).items()} == {
        "fig3c": ["Langevin (lsi), S = 100, sigma = 0.05", "Retraining, noiseless"],
        "fig4": [
            "Langevin (lsi), S = 100, epsilon = 0.5",
            "Retraining, noisy, S = 1",
            "Retraining, noisy, S = 100",
        ],
    }


def test_metrics_are_plain_numbers_that_json_keeps(records: pd.DataFrame, tmp_path: Path) -> None:
    write_json(tmp_path / "metrics.json", metrics(records))
    assert read_json(tmp_path / "metrics.json") == metrics(records)


def test_csv_gives_back_the_same_numbers_and_the_same_bytes(records: pd.DataFrame, tmp_path: Path) -> None:
    records["accuracy"] = np.random.default_rng(1).uniform(size=len(records))
    summary = summarise(records, "fig3a")
    for name in ("a.csv", "b.csv"):
        write_csv(tmp_path / name, summarise(records, "fig3a"))
    with (tmp_path / "a.csv").open(encoding="utf-8") as file:
        read = list(csv.DictReader(file))
    for column in ("accuracy_mean", "accuracy_std", "sigma", "epsilon"):
        assert [float(row[column]) for row in read] == summary[column].tolist()
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_csv_that_cannot_be_written_leaves_nothing(records: pd.DataFrame, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError):
        write_csv(tmp_path / "file" / "summary.csv", summarise(records, "fig3a"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "records.parquet"]


def test_a_missing_experiment_is_named_with_those_there_are(records: pd.DataFrame) -> None:
    with pytest.raises(DataError, match="the rows hold no experiment fig4, only fig3a"):
        summarise(records, "fig4")


def test_empty_records_are_refused(records: pd.DataFrame) -> None:
    with pytest.raises(DataError, match="there are no rows, so there is no fig3a"):
        summarise(records.iloc[:0], "fig3a")
    with pytest.raises(DataError, match="there are no rows of runs, so there are no metrics"):
        metrics(records.iloc[:0])


def test_records_read_twice_are_refused(records: pd.DataFrame) -> None:
    with pytest.raises(DataError, match="fig3a hold a trial twice"):
        summarise(pd.concat([records, records]), "fig3a")


def test_mixed_data_sets_are_refused(records: pd.DataFrame) -> None:
    other = records.assign(dataset="adult", run_key=records["run_key"] + "adult")
    with pytest.raises(DataError, match="mix the data sets adult, digits"):
        summarise(pd.concat([records, other]), "fig3a")


def test_two_runs_of_the_same_point_are_refused(records: pd.DataFrame) -> None:
    other = records[records["mechanism"] == "langevin"].assign(run_key="again", guarantee="exact")
    with pytest.raises(DataError, match=r"more than one run called 'Langevin \(lsi\), K = 1, epsilon = 0\.5'"):
        summarise(pd.concat([records, other[other["epsilon_target"] == 0.5]]), "fig3a")


def by(accountant: str, target: float, *, removed: int = 1, sigma: float = 0.1) -> pd.DataFrame:
    """The rows of a run that speaks for its experiment unless another is closer to the standard."""
    swept = f"{target}, {removed}, {sigma}"
    told = {"accountant": accountant, "epsilon_target": target, "records_removed": removed, "sigma": sigma}
    return run([0.9], **{**LANGEVIN, **told, "request": 1}, **named(f"Langevin ({accountant})", swept=swept))


@pytest.mark.parametrize(
    ("worse", "best"),
    [
        (by("lsi", 1.0), by("shifted", 5.0)),  # the tightest accountant before all else
        (by("shifted", 5.0), by("shifted", 0.5)),  # 1 is nearer to a half than to five
        (by("shifted", 2.0), by("shifted", 0.5)),  # as near as each other
        (by("shifted", 1.0, removed=1, sigma=0.1), by("shifted", 1.0, removed=10, sigma=0.2)),
        (by("shifted", 1.0, sigma=0.2), by("shifted", 1.0, sigma=0.1)),
    ],
    ids=["accountant", "epsilon", "tie", "records", "sigma"],
)
def test_the_standard_point_is_the_tightest_accountant_s_near_epsilon_one(worse, best):
    retraining = run([0.9], **RETRAINING, request=1, epsilon_target=1.0, **named("Retraining"))
    for rows in ([worse, best, retraining], [best, worse, retraining]):
        chosen = standard_point(summarise(pd.concat(rows, ignore_index=True), "fig3a"))
        assert chosen["point"] == best["point"].iloc[0]


def test_where_nothing_has_an_accountant_of_its_own_nothing_speaks_for_the_experiment():
    rows = run([0.9], **RETRAINING, request=1, epsilon_target=1.0, **named("Retraining"))
    assert standard_point(summarise(rows, "fig3a")) is None
