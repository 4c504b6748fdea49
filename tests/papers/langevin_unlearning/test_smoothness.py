"""Fig. 3b's streams under every rule for the smoothness are the published ones, and only what holds is called so."""

from typing import Any

import pandas as pd
import pytest

from certified_unlearning import accounting
from certified_unlearning.papers.langevin_unlearning import fig3b
from certified_unlearning.papers.langevin_unlearning.smoothness import ROWS, plans_by_smoothness
from certified_unlearning.reproduction.experiment import Inputs, NoSweep
from certified_unlearning.reproduction.rows import read_table, write_table
from tests.support.planning import make, settings_of, sweep_of

SWEEP = sweep_of("mnist", "fig3b", epsilon=1.0, sigma=0.03, records=100, records_per_request=[5, 10, 20])


def data(n: int, d: int, largest_eigenvalue: float, classes: int = 2) -> dict[str, Any]:
    return {
        "features": "none", "n": n, "d": d, "classes": {"train": dict.fromkeys(range(classes), n // classes)},
        "largest_eigenvalue": largest_eigenvalue, "sha256": "0" * 64,
    }  # fmt: skip


MNIST = data(11_982, 784, 0.7308741769)


def smoothness_table(data: dict[str, Any], **settings: Any) -> pd.DataFrame:
    """Of a plan under the preset's own settings; the table is made with these."""
    plan = make("fig3b", settings_of("mnist", accountants=["lsi"]), SWEEP, data, preset_name="mnist")
    rows = make("smoothness", settings_of("mnist", **settings), NoSweep(), data, plans={"fig3b": plan})
    assert isinstance(rows, pd.DataFrame)
    return rows


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return smoothness_table(MNIST)


def stream(table: pd.DataFrame, rule: str, accountant: str, size: int) -> pd.DataFrame:
    chosen = (table["smoothness"], table["accountant"], table["records_per_request"])
    return table[(chosen[0] == rule) & (chosen[1] == accountant) & (chosen[2] == size)]


def steps(table: pd.DataFrame, rule: str, accountant: str, size: int) -> list[int]:
    return stream(table, rule, accountant, size)["unlearning_steps"].tolist()


def test_mnist_has_the_published_streams_under_spectral_and_table_1s_under_bound(table: pd.DataFrame) -> None:
    assert steps(table, "spectral", "lsi", 20) == [864, 1030, 1044, 1054, 1066]
    assert steps(table, "spectral", "lsi", 10) == [579, 776, 806, 830, 855, 887, 926, 973, 1025, 1082]
    fives = steps(table, "spectral", "lsi", 5)
    assert (fives[:6], fives[-1], sum(fives)) == ([263, 531, 586, 630, 674, 721], 1566, 19_717)
    assert steps(table, "bound", "lsi", 20) == [1163, 1386, 1405, 1418, 1434]
    assert steps(table, "bound", "lsi", 10) == [778, 1044, 1085, 1116, 1151, 1193, 1246, 1309, 1379, 1455]
    fives = steps(table, "bound", "lsi", 5)
    assert (fives[:6], fives[-1], sum(fives)) == ([354, 715, 789, 848, 906, 970], 2107, 26_529)


def test_mnist_has_the_published_steps_of_descent_to_delete(table: pd.DataFrame) -> None:
    spectral = steps(table, "spectral", "descent-to-delete N.2", 1)
    assert spectral == [90] * 6 + [91] * 70 + [92] * 24
    assert sum(spectral) == 9118
    bound = steps(table, "bound", "descent-to-delete N.2", 1)
    assert bound[0] == 123
    saved = 1 - sum(steps(table, "spectral", "lsi", 20)) / sum(spectral)
    assert saved == pytest.approx(0.445, abs=5e-4)
    assert sum(steps(table, "bound", "lsi", 5)) > sum(bound)


def test_cifar_10_cat_vs_ship_has_the_published_streams_under_spectral() -> None:
    table = smoothness_table(data(10_000, 512, 0.692438), accountants=["lsi"])
    assert steps(table, "spectral", "lsi", 20) == [1072, 1248, 1260, 1267, 1276]
    assert steps(table, "spectral", "lsi", 10) == [762, 965, 990, 1010, 1031, 1059, 1095, 1142, 1195, 1255]
    fives = steps(table, "spectral", "lsi", 5)
    assert (fives[:6], fives[-1], sum(fives)) == ([430, 689, 739, 778, 819, 865], 1785, 23_142)
    assert sum(steps(table, "spectral", "descent-to-delete N.2", 1)) == 10_098


def test_ten_classes_have_the_published_streams_under_bound_and_count_all_parameters() -> None:
    table = smoothness_table(data(50_000, 512, 0.7, classes=10), accountants=["lsi"])
    assert steps(table, "bound", "lsi", 20) == [391, 782, 863, 927, 991]
    assert steps(table, "bound", "lsi", 10) == [1, 401, 569, 665, 752, 838, 927, 1017, 1108, 1200]
    fives = steps(table, "bound", "lsi", 5)
    assert (fives[:6], fives[-1], sum(fives)) == ([1, 1, 225, 421, 524, 623], 1937, 20_462)
    assert steps(table, "bound", "descent-to-delete N.2", 1)[0] == 130
    assert set(table["d"]) == {5120}


def test_the_margin_costs_a_little_more_than_the_heuristic_and_less_than_the_bound(table: pd.DataFrame) -> None:
    runs = ["accountant", "records_per_request"]
    totals = table.pivot_table(index=runs, columns="smoothness", values="unlearning_steps", aggfunc="sum")
    assert len(totals) == 11
    assert (totals["spectral"] <= totals["spectral-with-margin"]).all()
    assert (totals["spectral-with-margin"] < 1.03 * totals["spectral"]).all()
    assert (totals["spectral-with-margin"] < 0.8 * totals["bound"]).all()


def test_only_the_spectral_rule_is_a_heuristic(table: pd.DataFrame) -> None:
    heuristic = table.groupby("smoothness")["guarantee"].agg(lambda rows: set(rows) == {"heuristic"})
    assert heuristic.to_dict() == {"bound": False, "spectral": True, "spectral-with-margin": False}
    assert "heuristic" not in set(table.loc[table["smoothness"] != "spectral", "guarantee"])


def test_the_margin_makes_room_for_all_records_of_the_stream_and_every_rule_has_its_own_step_size(
    table: pd.DataFrame,
) -> None:
    columns = ["smoothness", "smoothness_constant", "step_size"]
    first = table.loc[table["mechanism"] == "langevin", columns].drop_duplicates().set_index("smoothness")
    assert len(first) == 3
    assert first["smoothness_constant"].to_dict() == pytest.approx(
        {
            "bound": 0.25 + 0.011982,
            "spectral": 0.7308741769 / 4 + 0.011982,
            "spectral-with-margin": (0.7308741769 + 100 / 11_982) / 4 + 0.011982,
        },
        rel=1e-14,
    )
    assert first["step_size"].to_list() == pytest.approx((1 / first["smoothness_constant"]).to_list(), rel=1e-14)


def test_every_request_meets_the_target_and_one_step_less_would_not(table: pd.DataFrame) -> None:
    assert (table["epsilon"] <= table["epsilon_target"]).all()
    for rule, smoothness in table.groupby("smoothness")["smoothness_constant"].first().items():
        problem = accounting.Problem(11_982, 0.011982, smoothness, 1.0, 1 / smoothness)
        counts = steps(table, str(rule), "lsi", 20)
        for requests in range(1, 6):
            fewer = accounting.Schedule(
                sigma=0.03, records_per_request=20, steps=(*counts[: requests - 1], counts[requests - 1] - 1)
            )
            assert accounting.unlearning_epsilon(problem, fewer, delta=1 / 11_982, accountant="lsi") > 1.0


def test_steps_accumulate_and_records_are_removed_request_by_request(table: pd.DataFrame) -> None:
    rows = stream(table, "spectral", "lsi", 20)
    assert rows["request"].tolist() == [1, 2, 3, 4, 5]
    assert rows["records_removed"].tolist() == [20, 40, 60, 80, 100]
    assert rows["accumulated_steps"].tolist() == [864, 1894, 2938, 3992, 5058]
    assert set(rows["experiment"]) == {"smoothness"}


def test_a_presets_own_rule_and_step_size_do_not_matter(table: pd.DataFrame) -> None:
    other = smoothness_table(MNIST, smoothness="spectral", step_size=5.0, accountants=["lsi"])
    expected = table[table["accountant"].isin(["lsi", "descent-to-delete N.2", "descent-to-delete shifted"])]
    pd.testing.assert_frame_equal(other, expected.reset_index(drop=True))


def test_under_the_presets_rule_the_steps_are_those_that_are_run() -> None:
    inputs = Inputs("mnist", settings_of("mnist", accountants=["lsi"]), SWEEP, MNIST)
    first, *_ = plans_by_smoothness(fig3b.plan, inputs)
    run = fig3b.plan(inputs)
    for planned, each in zip(first.runs, run.runs, strict=True):
        assert [one.unlearning_steps for one in planned.requests] == [one.unlearning_steps for one in each.requests]


def test_the_table_survives_its_file(table: pd.DataFrame, tmp_path) -> None:
    write_table(tmp_path / "streams.parquet", table, ROWS)
    again = read_table(tmp_path / "streams.parquet", ROWS)
    pd.testing.assert_frame_equal(again[["accumulated_steps", "sigma"]], table[["accumulated_steps", "sigma"]])
