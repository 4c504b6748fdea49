"""`unlearn plan removal`: what is planned, how it is printed; mistakes end in one sentence that names the flag."""

import itertools
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from certified_unlearning import accounting
from certified_unlearning.accounting import Problem, Schedule
from certified_unlearning.accounting.langevin.calibration import Calibration, Stream, calibrate, recuperation
from certified_unlearning.errors import ParameterError
from tests.commands.conftest import Plan
from tests.support.waiting import PATIENCE

MNIST = ["--n", "11982", "--strong-convexity", "0.011982", "--smoothness", "0.261982", "--lipschitz", "1"]
PROBLEM = Problem(11_982, 0.011982, 0.261982, 1.0, 1 / 0.261982)
QUESTION = ["--records", "100", "--epsilon", "1", "--sigma", "0.03"]
NAMES = ["lsi", "lsi-tight", "shifted"]


def executable(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [Path(sys.executable).with_name("unlearn"), "plan", "removal", *arguments]
    return subprocess.run(command, text=True, timeout=PATIENCE, **options)


def planned(plan: Plan, *arguments: str | Path) -> list[dict[str, Any]]:
    status, out, err = plan(*arguments, *MNIST, "--json")
    assert (status, err) == (0, "")
    return list(json.loads(out))


# --- What is planned. ---------------------------------------------------------------------------------------


def test_the_command_plans_by_every_accountant_and_prints_json() -> None:
    ended = executable(*QUESTION, *MNIST, "--json", capture_output=True)
    assert (ended.returncode, ended.stderr) == (0, "")
    rows = json.loads(ended.stdout)
    asked = ["accountant", "records", "steps", "sigma", "epsilon", "delta", "mu"]
    constants = ["n", "strong_convexity", "smoothness", "lipschitz", "step_size", "adjacency", "requests"]
    assert [list(row) for row in rows] == [asked + constants] * 3
    assert (rows[0]["n"], rows[0]["adjacency"], rows[0]["requests"]) == (11_982, "replace", 1)
    assert [(row["accountant"], row["steps"]) for row in rows] == [("lsi", 1997), ("lsi-tight", 1342), ("shifted", 60)]
    for row in rows:
        assert (row["records"], row["sigma"], row["delta"]) == (100, 0.03, 1 / 11_982)
        schedule = Schedule(sigma=0.03, records_per_request=100, steps=(row["steps"],))
        exact = accounting.unlearning_epsilon(PROBLEM, schedule, delta=1 / 11_982, accountant=row["accountant"])
        assert row["epsilon"] == exact <= 1
    assert [row["mu"] for row in rows] == [None, None, pytest.approx(0.302834056508942, rel=1e-14)]


def test_the_least_sigma_is_planned_where_it_is_left_out(plan: Plan) -> None:
    rows = planned(plan, "--records", "1", "--epsilon", "1", "--steps", "1")
    assert [row["sigma"] for row in rows] == pytest.approx([0.00957769, 0.00764811, 0.004647], rel=2e-6)
    assert [row["steps"] for row in rows] == [1, 1, 1]
    assert all(1 - 1e-9 < row["epsilon"] <= 1 for row in rows)


def test_the_certified_epsilon_is_computed_where_it_is_left_out(plan: Plan) -> None:
    rows = planned(plan, "--records", "100", "--steps", "1", "--sigma", "0.03")
    assert rows[2]["epsilon"] == pytest.approx(28.8086207658, rel=1e-11)
    assert rows[2]["mu"] == pytest.approx(4.79468350952051, rel=1e-13)
    assert rows[0]["epsilon"] > rows[1]["epsilon"] > rows[2]["epsilon"]
    assert [row["records"] for row in rows] == [100] * 3


def test_the_most_records_are_planned_where_they_are_left_out(plan: Plan) -> None:
    rows = planned(plan, "--epsilon", "1", "--steps", "60", "--sigma", "0.1", "--delta", "1e-5")
    for row in rows:
        arguments = {"sigma": 0.1, "steps": 60, "epsilon": 1, "delta": 1e-5}
        assert row["records"] == accounting.most_records(PROBLEM, **arguments, accountant=row["accountant"])
        assert (row["delta"], row["steps"]) == (1e-5, 60)
    assert rows[0]["records"] < rows[1]["records"] < rows[2]["records"]


def test_a_stream_has_its_steps_request_by_request(plan: Plan) -> None:
    rows = planned(plan, "--stream", "5x20", "--epsilon", "1", "--sigma", "0.03")
    assert [row["steps"] for row in rows] == [
        [1163, 1386, 1405, 1418, 1434],
        [739, 890, 916, 926, 930],
        [26, 31, 31, 31, 31],
    ]
    assert [row["records"] for row in rows] == [20] * 3
    for row in rows:
        schedule = Schedule(sigma=0.03, records_per_request=20, steps=tuple(row["steps"]))
        after = accounting.stream_guarantees(PROBLEM, schedule, delta=1 / 11_982, accountant=row["accountant"])
        worst = max(after, key=lambda each: each.epsilon)
        assert (row["epsilon"], row["mu"]) == worst
        assert worst.epsilon <= 1


def test_a_stream_of_equal_steps_has_the_epsilon_of_its_worst_request(plan: Plan) -> None:
    (row,) = planned(plan, "--stream", "3x20", "--steps", "40", "--sigma", "0.03", "--accountant", "shifted")
    assert row["steps"] == [40, 40, 40]
    schedule = Schedule(sigma=0.03, records_per_request=20, steps=(40, 40, 40))
    assert row["mu"] == accounting.unlearning_curve(PROBLEM, schedule, accountant="shifted").mu
    (first,) = planned(plan, "--stream", "1x20", "--steps", "40", "--sigma", "0.03", "--accountant", "shifted")
    assert first["steps"] == [40]
    assert first["mu"] < row["mu"]


def test_accountants_are_chosen_by_name_and_shown_once(plan: Plan) -> None:
    chosen = ["--accountant", "shifted", "--accountant", "lsi", "--accountant", "shifted"]
    assert [row["accountant"] for row in planned(plan, *QUESTION, *chosen)] == ["shifted", "lsi"]


@pytest.mark.parametrize(("adjacency", "steps"), [("replace", 60), ("remove", 60), ("zero-out", 45)])
def test_adjacency_is_taken(plan: Plan, adjacency: str, steps: int) -> None:
    (row,) = planned(plan, *QUESTION, "--adjacency", adjacency, "--accountant", "shifted")
    assert row["steps"] == steps


def test_step_size_and_delta_are_words_or_numbers(plan: Plan) -> None:
    shifted = ["--accountant", "shifted"]
    (words,) = planned(plan, *QUESTION, *shifted, "--step-size", "1/L", "--delta", "1/n")
    (default,) = planned(plan, *QUESTION, *shifted)
    (numbers,) = planned(plan, *QUESTION, *shifted, "--step-size", str(1 / 0.261982), "--delta", str(1 / 11_982))
    assert words == default == numbers
    (half,) = planned(plan, *QUESTION, *shifted, "--step-size", str(0.5 / 0.261982))
    assert half["steps"] > 1.9 * default["steps"]


def test_no_guarantee_at_all_is_null(plan: Plan) -> None:
    rows = planned(plan, "--records", "1", "--steps", "0", "--sigma", "1e-200")
    assert [row["epsilon"] for row in rows] == [None] * 3


# --- The table. ---------------------------------------------------------------------------------------------


def cells(out: str) -> list[list[str]]:
    """The table's body, one list a printed line."""
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in out.splitlines() if line.startswith("│")]


def test_accountants_that_the_step_size_rules_out_are_named_and_the_others_answer(plan: Plan):
    status, out, err = plan(*QUESTION, "--step-size", "5", *MNIST)
    assert status == 0
    assert [row[0] for row in cells(out)] == ["shifted"]
    assert [line.split(":")[1] for line in err.splitlines()] == [" --accountant lsi", " --accountant lsi-tight"]


def test_the_table_has_one_line_an_accountant_and_says_what_the_numbers_mean(plan: Plan) -> None:
    status, out, err = plan(*QUESTION, *MNIST)
    assert (status, err) == (0, "")
    heading = re.findall(r"[\w ]+", out.splitlines()[1].replace("┃", "|"))
    assert [name.strip() for name in heading] == ["accountant", "records", "steps K", "sigma", "epsilon", "delta", "mu"]
    assert cells(out) == [
        ["lsi", "100", "1,997", "0.03", "0.999934", "8.34586e-05", ""],
        ["lsi-tight", "100", "1,342", "0.03", "0.999893", "8.34586e-05", ""],
        ["shifted", "100", "60", "0.03", "0.975626", "8.34586e-05", "0.302835"],
    ]
    text = " ".join(out.split())
    assert "Adjacency replace. After every request, each epsilon is an upper bound for the model published last" in text
    assert "sqrt(2 step_size) = 2.763 times sigma" in text


def test_numbers_are_rounded_to_where_they_promise_less(plan: Plan) -> None:
    question = ["--records", "1", "--epsilon", "1", "--steps", "1"]
    rows = planned(plan, *question)
    _, out, _ = plan(*question, *MNIST)
    for row, (_, _, _, sigma, epsilon, delta, mu) in zip(rows, cells(out), strict=True):
        for name, shown in (("sigma", sigma), ("epsilon", epsilon), ("delta", delta), ("mu", mu)):
            if shown:
                assert row[name] <= float(shown) <= row[name] * (1 + 1e-5)
    _, out, _ = plan("--records", "1", "--steps", "0", "--sigma", "1e-200", *MNIST)
    assert [row[4] for row in cells(out)] == ["inf"] * 3


def test_a_stream_is_shown_request_by_request_with_its_sum(plan: Plan) -> None:
    _, out, _ = plan("--stream", "5x20", "--epsilon", "1", "--sigma", "0.03", "--accountant", "shifted", *MNIST)
    lines = cells(out)
    assert lines[0][:2] == ["shifted", "5 x 20"]
    assert " ".join(line[2] for line in lines) == "26 31 31 31 31 (150 in all)"
    assert " ".join(line[5] for line in lines).strip() == "8.34586e-05"


def test_a_narrow_terminal_does_not_cut_numbers(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    _, wide, _ = plan(*QUESTION, *MNIST)
    monkeypatch.setenv("COLUMNS", "30")
    _, narrow, _ = plan(*QUESTION, *MNIST)
    assert cells(narrow) == cells(wide)


# --- The figure. --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["curve.png", "curve.pdf", "curve.svg", "deep/er/curve.v1"])
def test_the_recuperation_is_drawn_as_png_pdf_and_svg(plan: Plan, tmp_path: Path, name: str) -> None:
    status, out, err = plan(*QUESTION, *MNIST, "--plot", tmp_path / name)
    assert (status, err) == (0, "")
    assert len(cells(out)) == 3
    stem = tmp_path / re.sub(r"\.(png|pdf|svg)$", "", name)
    assert Path(f"{stem}.png").read_bytes().startswith(b"\x89PNG")
    assert Path(f"{stem}.pdf").read_bytes().startswith(b"%PDF")
    assert b"<svg" in Path(f"{stem}.svg").read_bytes()
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 3


DRAWING = "certified_unlearning.reproduction.figures.drawing"


def test_the_figure_shows_every_accountant_to_beyond_the_planned_steps(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr(f"{DRAWING}.render", lambda *arguments: drawn.extend(arguments))
    assert plan(*QUESTION, *MNIST, "--plot", tmp_path / "curve")[0] == 0
    experiment, frame, _, stem = drawn
    assert (experiment.name, stem) == ("recuperation", tmp_path / "curve")
    assert set(frame["bound"]) == {*NAMES, "exact on quadratics"}
    assert set(frame["experiment"]) == {"recuperation"}
    assert frame["steps"].min() == 0
    assert frame["steps"].max() == round(1.25 * 1997)
    assert {"n": 11_982, "sigma": 0.03, "records_removed": 100, "lipschitz": 1}.items() <= frame.iloc[
        0
    ].to_dict().items()
    drawn.clear()
    few = ["--records", "1", "--epsilon", "5", "--sigma", "0.03"]
    assert plan(*few, *MNIST, "--accountant", "shifted", "--plot", tmp_path / "curve")[0] == 0
    assert drawn[1]["steps"].max() == 62


def test_exact_values_are_the_floor_and_the_shifted_accountant_is_on_it() -> None:
    rows = recuperation(PROBLEM, ["lsi", "lsi-tight", "shifted"], sigma=0.03, records=100, delta=1e-5, steps=[0, 1, 60])
    by_bound: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_bound.setdefault(row["bound"], []).append(row)
    exact = by_bound["exact on quadratics"]
    assert [row["mu"] for row in by_bound["shifted"]] == pytest.approx([row["mu"] for row in exact], rel=1e-12)
    assert [row["epsilon"] for row in by_bound["shifted"]] == pytest.approx(
        [row["epsilon"] for row in exact], rel=1e-12
    )
    for low, high in (("shifted", "lsi-tight"), ("lsi-tight", "lsi")):
        pairs = zip(by_bound[low], by_bound[high], strict=True)
        assert all(below["epsilon"] < above["epsilon"] for below, above in pairs)
    assert [row["steps"] for row in exact] == [0, 1, 60]
    kinds = {name: (each[0]["guarantee"], each[0]["source"]) for name, each in by_bound.items()}
    assert kinds == {
        "lsi": ("upper bound", "paper"),
        "lsi-tight": ("upper bound", "derived"),
        "shifted": ("upper bound", "derived"),
        "exact on quadratics": ("exact", "derived"),
    }
    assert [row["mu"] is None for row in rows[:4]] == [True, True, False, False]


def test_the_exact_value_holds_where_steps_overshoot() -> None:
    # eta m = 1.2: the sign alternates, the distance falls by 0.2.
    overshooting = Problem(100, 0.8, 1.0, 1.0, 1.5)
    exact = recuperation(overshooting, [], sigma=0.5, records=2, delta=1e-5, steps=[0, 1, 2, 3])
    mus = [row["mu"] for row in exact]
    assert mus[0] == pytest.approx(0.04 / 0.8 / math.sqrt(2 * 1.5 * 0.25 / (1 - 0.04)), rel=1e-14)
    assert [later / earlier for earlier, later in itertools.pairwise(mus)] == pytest.approx([0.2] * 3)
    bounds = recuperation(overshooting, ["shifted"], sigma=0.5, records=2, delta=1e-5, steps=[0, 1, 2, 3])
    assert all(bound["mu"] >= truth["mu"] for bound, truth in zip(bounds[::2], bounds[1::2], strict=True))


# --- The library's side: calibration. -----------------------------------------------------------------------


@pytest.mark.parametrize(("text", "requests", "records"), [("5x20", 5, 20), ("1x1", 1, 1), ("1000x12", 1000, 12)])
def test_a_stream_is_read(text: str, requests: int, records: int) -> None:
    assert Stream.parse(text) == Stream(requests=requests, records=records)


@pytest.mark.parametrize(
    "text", ["20", "", "x", "5x", "x20", "0x20", "5x0", "5X20", "5x20x2", " 5x20", "5x-20", "5.0x2"]
)
def test_a_stream_of_another_form_is_refused(text: str) -> None:
    message = f"^stream must be REQUESTSxRECORDS, such as 5x20, got {re.escape(repr(text))}$"
    with pytest.raises(ParameterError, match=message):
        Stream.parse(text)


def test_a_calibration_is_a_dictionary_without_infinities() -> None:
    made = Calibration("shifted", 3, [1, 2], 0.5, math.inf, 1e-5, math.inf)
    assert made.as_dict() == {
        "accountant": "shifted",
        "records": 3,
        "steps": [1, 2],
        "sigma": 0.5,
        "epsilon": None,
        "delta": 1e-5,
        "mu": None,
    }
    assert Calibration("lsi", 3, 0, 0.5, 1.5, 1e-5, None).as_dict()["epsilon"] == 1.5


def test_a_calibration_asks_for_what_it_certifies_and_no_more() -> None:
    with pytest.raises(
        ParameterError,
        match=r"^exactly three of records, sigma, steps and epsilon must be given, and the fourth is computed",
    ):
        calibrate(PROBLEM, "shifted", delta=1e-5, records=3)
    made = calibrate(PROBLEM, "shifted", delta=1e-5, records=3, sigma=0.03, epsilon=1)
    assert (made.accountant, made.records, made.sigma, made.delta) == ("shifted", 3, 0.03, 1e-5)
    assert made.steps == accounting.least_steps(
        PROBLEM, sigma=0.03, epsilon=1, delta=1e-5, records=3, accountant="shifted"
    )


# --- Mistakes. ----------------------------------------------------------------------------------------------


def without(flag: str) -> list[str]:
    place = MNIST.index(flag)
    return MNIST[:place] + MNIST[place + 2 :]


MISTAKES = {
    "epsilon 0": (
        [*QUESTION, "--epsilon", "0", *MNIST],
        "--epsilon must be a finite number above 0, got 0.0",
    ),
    "epsilon nan": ([*QUESTION, "--epsilon", "nan", *MNIST], "--epsilon must be a finite number above 0, got nan"),
    "sigma 0": ([*QUESTION, "--sigma", "0", *MNIST], "--sigma must be a finite number above 0, got 0.0"),
    "records 0": ([*QUESTION, "--records", "0", *MNIST], "--records must be a whole number, at least 1, got 0"),
    "no record to find epsilon for": (
        ["--records", "0", "--steps", "3", "--sigma", "1", *MNIST],
        "--records must be a whole number, at least 1, got 0",
    ),
    "too many records": (
        [*QUESTION, "--records", "11983", *MNIST],
        "--records must be at most --n = 11982, got 11983",
    ),
    "no record remains": (
        [*QUESTION, "--adjacency", "remove", "--records", "11982", *MNIST],
        "with --adjacency remove, a record must remain, got --records = --n = 11982",
    ),
    "steps below 0": (
        ["--records", "1", "--sigma", "1", "--steps", "-1", *MNIST],
        "--steps must be a whole number, at least 0, got -1",
    ),
    "two left out": (
        ["--records", "100", "--epsilon", "1", *MNIST],
        "exactly three of --records, --sigma, --steps and --epsilon must be given, and the fourth is computed: "
        "--sigma, --steps are missing",
    ),
    "all left out": (
        MNIST,
        "exactly three of --records, --sigma, --steps and --epsilon must be given, and the fourth is computed: "
        "--records, --sigma, --steps, --epsilon are missing",
    ),
    "none left out": (
        [*QUESTION, "--steps", "3", *MNIST],
        "exactly three of --records, --sigma, --steps and --epsilon must be given, and the fourth is computed: "
        "all were given",
    ),
    "delta 2": ([*QUESTION, "--delta", "2", *MNIST], "--delta must lie strictly between 0 and 1, got 2.0"),
    "delta as a word": (
        [*QUESTION, "--delta", "sigma", *MNIST],
        "--delta must be auto, 1/n or a number, got 'sigma'",
    ),
    "step size as a word": (
        [*QUESTION, "--step-size", "1/n", *MNIST],
        "--step-size must be a number or 1/L, got '1/n'",
    ),
    "step size 0": ([*QUESTION, "--step-size", "0", *MNIST], "--step-size must be a finite number above 0, got 0.0"),
    "step size too large for the paper": (
        [*QUESTION, "--step-size", "5", "--accountant", "lsi", "--accountant", "lsi-tight", *MNIST],
        "--accountant lsi: Langevin unlearning's theorems for strongly convex losses need --step-size <= "
        "1 / --smoothness = 3.817056133627501, got --step-size = 5.0",
    ),
    "step size too large": (
        [*QUESTION, "--step-size", "8", "--accountant", "shifted", *MNIST],
        "--accountant shifted: gradient steps contract only for --step-size <= 2 / --smoothness = 7.634112267255002, "
        "got 8.0",
    ),
    "strong convexity 0": (
        [*QUESTION, *MNIST, "--strong-convexity", "0"],
        "--accountant lsi: this bound needs a strongly convex objective: --strong-convexity must be above 0, got 0 "
        "(add an l2 regulariser)",
    ),
    "strong convexity 0 for shifted": (
        [*QUESTION, *MNIST, "--strong-convexity", "0", "--accountant", "shifted"],
        "--accountant shifted: infinitely many steps need a contraction: --strong-convexity above 0 and --step-size "
        "below 2 / --smoothness, got a contraction_gap of 0",
    ),
    "strong convexity below 0": (
        [*QUESTION, *MNIST, "--strong-convexity", "-1"],
        "--strong-convexity must be a finite number, at least 0, got -1.0",
    ),
    "more convex than smooth": (
        [*QUESTION, *MNIST, "--strong-convexity", "0.5"],
        "--strong-convexity must be at most --smoothness (no function is more convex than it is smooth), "
        "got --strong-convexity = 0.5 > --smoothness = 0.261982",
    ),
    "smoothness 0": ([*QUESTION, *MNIST, "--smoothness", "0"], "--smoothness must be a finite number above 0, got 0.0"),
    "smoothness nan": (
        [*QUESTION, *MNIST, "--smoothness", "nan"],
        "--smoothness must be a finite number above 0, got nan",
    ),
    "lipschitz 0": ([*QUESTION, *MNIST, "--lipschitz", "0"], "--lipschitz must be a finite number above 0, got 0.0"),
    "n 0": ([*QUESTION, *MNIST, "--n", "0"], "--n must be a whole number, at least 1, got 0"),
    "unknown accountant": (
        [*QUESTION, *MNIST, "--accountant", "rdp"],
        "--accountant must be one of lsi, lsi-tight, shifted, got 'rdp'",
    ),
    "stream without requests": (
        ["--stream", "20", "--epsilon", "1", "--sigma", "0.03", *MNIST],
        "--stream must be REQUESTSxRECORDS, such as 5x20, got '20'",
    ),
    "stream and records": (
        ["--stream", "5x20", *QUESTION, *MNIST],
        "with --stream, --records must be left out: the stream contains the number of records of each request",
    ),
    "stream without sigma": (
        ["--stream", "5x20", "--epsilon", "1", "--steps", "3", *MNIST],
        "with --stream, --sigma must be given: the least --sigma is planned only for a single request",
    ),
    "stream of too many records": (
        ["--stream", "5x2397", "--epsilon", "1", "--sigma", "1", *MNIST],
        "--records must be at most --n = 11982, got 11985",
    ),
    "too many steps": (
        [*QUESTION, "--epsilon", "1e-20", *MNIST],
        "removing 100 records at a time with --epsilon = 1e-20 and --sigma = 0.03 takes more than 1e+12 unlearning "
        "steps; raise --sigma, --epsilon or --step-size * --strong-convexity",
    ),
    "epsilon below all orders": (
        [*QUESTION, "--epsilon", "1e-30", *MNIST],
        "--epsilon = 1e-30 at --delta = 8.345852111500584e-05 needs Rényi orders above 1e+25; "
        "raise --epsilon or --delta",
    ),
    "not even one record": (
        ["--epsilon", "1", "--sigma", "1e-3", "--steps", "0", *MNIST],
        "with --steps = 0 and --sigma = 0.001, the removal of even one record exceeds --epsilon = 1.0; "
        "raise --steps, --sigma or --epsilon",
    ),
    "plot of a stream": (
        ["--stream", "5x20", "--epsilon", "1", "--sigma", "0.03", *MNIST, "--plot", "never-drawn"],
        "--plot shows a single request: leave out --stream",
    ),
    "plot at several sigmas": (
        ["--records", "1", "--epsilon", "1", "--steps", "1", *MNIST, "--plot", "never-drawn"],
        "--plot compares accountants at one value of --sigma and one of --records: give both",
    ),
    "plot of several numbers of records": (
        ["--sigma", "1", "--epsilon", "1", "--steps", "1", *MNIST, "--plot", "never-drawn"],
        "--plot compares accountants at one value of --sigma and one of --records: give both",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_ends_in_one_sentence_that_names_the_flag(plan: Plan, mistake: str) -> None:
    arguments, sentence = MISTAKES[mistake]
    assert plan(*arguments) == (1, "", f"error: {sentence}\n")
    assert not list(Path().glob("never-drawn*"))


@pytest.mark.parametrize("flag", ["--n", "--strong-convexity", "--smoothness", "--lipschitz"])
def test_a_missing_constant_is_named(plan: Plan, flag: str) -> None:
    status, out, err = plan(*QUESTION, *without(flag))
    assert (status, out) == (1, "")
    assert err.startswith(f"error: {flag} must be given, or --C and --n")


@pytest.mark.parametrize(
    ("flag", "value"), [("--n", "many"), ("--sigma", "x"), ("--steps", "1.5"), ("--adjacency", "add")]
)
def test_a_value_of_another_type_is_named(plan: Plan, flag: str, value: str) -> None:
    status, out, err = plan(*QUESTION, *MNIST, flag, value)
    assert (status, out) == (2, "")
    assert f"Invalid value for '{flag}'" in err


def test_a_figure_that_cannot_be_written_ends_in_one_sentence(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    # The directory's name holds a flag's: it must stay what it is.
    status, out, err = plan(*QUESTION, *MNIST, "--plot", tmp_path / "file" / "delta")
    assert (status, out) == (1, "")
    assert re.fullmatch(rf"error: cannot write {tmp_path}/file/delta\.png: [^\n]+\n", err)


@pytest.mark.parametrize(("form", "unbuffered"), [([], ""), (["--json"], ""), (["--json"], "1")])
def test_a_full_disk_ends_in_one_sentence(form: list[str], unbuffered: str) -> None:
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with Path("/dev/full").open("w") as full:
        ended = executable(*QUESTION, *MNIST, *form, stdout=full, stderr=subprocess.PIPE, env=environment)
    assert ended.returncode == 1
    assert ended.stderr == "error: cannot write to standard output: No space left on device\n"


@pytest.mark.parametrize(("form", "unbuffered"), [([], ""), (["--json"], ""), (["--json"], "1")])
def test_a_reader_that_has_seen_enough_is_no_mistake(form: list[str], unbuffered: str) -> None:
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    reading, writing = os.pipe()
    os.close(reading)
    ended = executable(*QUESTION, *MNIST, *form, stdout=writing, stderr=subprocess.PIPE, env=environment)
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (1, "")


def test_the_command_loads_no_torch() -> None:
    code = "import sys; from certified_unlearning.cli import main; sys.argv[1:] = {!r}; sys.exit(main() or 0)"
    script = f"import atexit, sys; atexit.register(lambda: print('torch' in sys.modules, file=sys.stderr)); {code}"
    ended = subprocess.run(
        [sys.executable, "-c", script.format(["plan", "removal", *QUESTION, *MNIST])],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (ended.returncode, ended.stderr) == (0, "False\n")
