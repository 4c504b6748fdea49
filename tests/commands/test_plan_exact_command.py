"""`unlearn plan exact`: steps, batches and noise of exact unlearning, beside published constants."""

import json
import math
import re

import pytest
import torch
from typer.main import get_command

from certified_unlearning.accounting.tv import erm, planning, tree
from certified_unlearning.accounting.tv.distances import gaussian_tv
from certified_unlearning.accounting.tv.recomputation import noisy_recompute_probability
from certified_unlearning.accounting.tv.subsampling import subsampling_tv
from certified_unlearning.cli import app
from certified_unlearning.commands.plans.exact import MECHANISMS
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.exact.gradients import GivenRecords
from certified_unlearning.mechanisms.exact.descent import ExactDescent
from certified_unlearning.mechanisms.exact.noisy_sgd import NoisySgd

CONSTANTS = ["--lipschitz", "2", "--smoothness", "1.5", "--diameter", "3"]
DESCENT = ["--n", "11982", "--batch-size", "50", "--lipschitz", "1"]
QUESTIONS = {
    "subsample-gd": ["--n", "11982", "--batch-size", "50", "--steps", "200"],
    "noisy-sgd": [*DESCENT, "--steps", "200"],
    "accelerated-noisy-sgd": [*DESCENT, "--steps", "200"],
    "quantized-sgd": [*DESCENT, "--steps", "200", "--dimension", "784"],
    "linear-queries": ["--n", "1000", "--steps", "100", "--lipschitz", "1"],
    "dual-averaging": ["--n", "1024", "--lipschitz", "1"],
    "frank-wolfe": ["--n", "65536", "--lipschitz", "1", "--smoothness", "0.25", "--diameter", "10"],
}


def planned(plan, mechanism: str, *arguments: str) -> list[dict]:
    status, out, err = plan(mechanism, *arguments, "--json", kind="exact")
    assert (status, err) == (0, "")
    return list(json.loads(out))


def test_the_help_names_every_mechanism() -> None:
    command = get_command(app).commands["plan"].commands["exact"]
    (argument,) = (each for each in command.params if each.name == "mechanism")
    named = re.search("One of (.*)[.]", argument.help)
    assert named is not None
    assert tuple(named[1].split(", ")) == tuple(MECHANISMS) == tuple(QUESTIONS)


@pytest.mark.parametrize("mechanism", [name for name in MECHANISMS if name != "subsample-gd"])
def test_the_sharp_noise_meets_what_is_wanted_and_the_published_one_is_larger(plan, mechanism: str) -> None:
    sharp, published = planned(plan, mechanism, *QUESTIONS[mechanism], "--recompute", "0.1")
    assert (sharp["constants"], published["constants"]) == ("sharp", "published")
    assert sharp["recompute_probability"] == sharp["stated_probability"] == pytest.approx(0.1, rel=1e-9)
    assert sharp["recompute_probability"] <= 0.1
    assert published["noise"] > 5 * sharp["noise"]
    assert published["recompute_probability"] < 0.1 / 5
    assert published["recompute_probability"] <= published["stated_probability"]
    assert published["deletion_gradients"] < sharp["deletion_gradients"] < sharp["learning_gradients"]
    noise = "--quantum" if mechanism == "quantized-sgd" else "--sigma"
    for row in (sharp, published):
        again = planned(plan, mechanism, *QUESTIONS[mechanism], noise, str(row["noise"]))
        for found in again:
            assert found["noise"] == row["noise"]
            assert found["recompute_probability"] == pytest.approx(row["recompute_probability"])
            assert found["deletion_gradients"] == pytest.approx(row["deletion_gradients"])
        assert again[0]["stated_probability"] == again[0]["recompute_probability"]
        assert again[1]["stated_probability"] >= again[1]["recompute_probability"]


@pytest.mark.parametrize("mechanism", ["noisy-sgd", "accelerated-noisy-sgd", "quantized-sgd", "linear-queries"])
def test_most_steps_are_those_whose_noise_would_be_planned(plan, mechanism: str) -> None:
    question = QUESTIONS[mechanism]
    at = question.index("--steps")
    open_question = [*question[:at], *question[at + 2 :], "--recompute", "0.1"]
    noise = "--quantum" if mechanism == "quantized-sgd" else "--sigma"
    sharp, published = planned(plan, mechanism, *question, "--recompute", "0.1")
    most, printed = planned(plan, mechanism, *open_question, noise, str(sharp["noise"] * (1 + 1e-9)))
    assert most["steps"] == sharp["steps"]
    assert printed["steps"] < sharp["steps"] / 5
    _, printed = planned(plan, mechanism, *open_question, noise, str(published["noise"] * (1 + 1e-9)))
    assert printed["steps"] == sharp["steps"]
    assert printed["stated_probability"] == pytest.approx(0.1)


def test_plain_descent_is_planned_for_steps_and_for_batches(plan) -> None:
    common = ["subsample-gd", "--n", "11982"]
    sharp, printed = planned(plan, *common, "--batch-size", "8", "--recompute", "0.1")
    assert (sharp["steps"], printed["steps"]) == (157, math.floor(0.1 * 11982 / 8))
    assert sharp["recompute_probability"] == subsampling_tv(n=11982, batch_size=8, steps=157)
    assert printed["stated_probability"] == pytest.approx(149 * 8 / 11982)
    sharp, printed = planned(plan, *common, "--steps", "100", "--recompute", "0.1")
    assert sharp["batch_size"] == planning.largest_batch(n=11982, steps=100, recompute_probability=0.1)
    assert printed["batch_size"] == 11
    sharp, printed = planned(plan, *common, "--steps", "128", "--batch-size", "8")
    assert (sharp["stated_probability"], printed["stated_probability"]) == (
        pytest.approx(0.0819377, rel=5e-6),
        pytest.approx(1024 / 11982),
    )
    again = 8 * sum((8 / 11982) * (1 - 8 / 11982) ** (t - 1) * (129 - t) for t in range(1, 129))
    assert sharp["deletion_gradients"] == pytest.approx(again)


def test_without_steps_and_batches_theorems_choose_them(plan) -> None:
    """The numbers of the specification: n = 1e5, d = 20, rho = 0.1, G = 2, H = 1.5, D = 3."""
    common = ["--n", "100000", "--recompute", "0.1", *CONSTANTS]
    sharp, printed = planned(plan, "accelerated-noisy-sgd", *common, "--dimension", "20")
    assert (printed["steps"], printed["batch_size"]) == (sharp["steps"], sharp["batch_size"]) == (31, 5466)
    assert printed["noise"] == pytest.approx(0.0496)
    assert printed["step_size"] == pytest.approx(0.0698404, rel=5e-6)
    assert printed["recompute_probability"] == pytest.approx(0.00992549, rel=5e-6)
    assert sharp["noise"] < math.sqrt(2 / math.pi) * 2 * 31 / (1e5 * 0.1)
    sharp, printed = planned(plan, "noisy-sgd", *common, "--dimension", "20")
    assert (printed["steps"], printed["batch_size"]) == (294, 58)
    sharp, printed = planned(plan, "quantized-sgd", *common, "--dimension", "20")
    assert printed["steps"] == math.ceil(erm.theorem_45(erm.ConvexProblem(100_000, 20, 2, 1.5, 3, 0.1)).steps)
    sharp, printed = planned(plan, "subsample-gd", *common)
    assert (printed["steps"], printed["batch_size"]) == (225, 44)
    assert printed["stated_probability"] == pytest.approx(0.099)
    assert printed["recompute_probability"] == pytest.approx(0.0942770, rel=5e-6)
    assert subsampling_tv(n=100_000, batch_size=44, steps=sharp["steps"] + 1) > 0.1 >= sharp["recompute_probability"]


def test_prefix_sums_have_the_noise_of_the_table(plan) -> None:
    sharp, printed = planned(plan, "dual-averaging", "--n", "1024", "--lipschitz", "1", "--recompute", "0.5")
    assert printed["noise"] == pytest.approx(2 * 160)
    assert printed["stated_probability"] == tree.lemma_38(n=1024, rho=0.5)
    assert sharp["noise"] == pytest.approx(2 * 3.27281, rel=5e-6)
    assert sharp["recompute_probability"] == tree.recompute_probability_up_to(1024, gaussian_tv(2 / sharp["noise"]))
    steps = ["--dimension", "5", "--diameter", "2"]
    sharp, _ = planned(plan, "dual-averaging", "--n", "1024", "--lipschitz", "1", "--sigma", "17.55354", *steps)
    assert sharp["step_size"] == pytest.approx(0.0040, rel=0.02)
    assert sharp["learning_gradients"] == 1024
    sharp, _ = planned(plan, "frank-wolfe", *QUESTIONS["frank-wolfe"], "--recompute", "0.1")
    assert sharp["learning_gradients"] == 2 * 65536
    sharp, _ = planned(plan, "dual-averaging", "--n", "100000000", "--lipschitz", "1", "--recompute", "0.5")
    assert sharp["deletion_gradients"] is None


def test_runs_of_a_plan_compute_again_as_often_and_cost_as_much(plan) -> None:
    """Every replacement moves a gradient by 2 G / m: both are met within 6 standard errors of 40 000 runs, 4e-9."""
    (sharp, _) = planned(
        plan, "noisy-sgd", "--n", "12", "--batch-size", "3", "--steps", "5", "--lipschitz", "1", "--recompute", "0.4"
    )
    signs = torch.ones(12, dtype=torch.float64)
    signs[4] = -1
    records = GivenRecords(lambda w, z: z[..., None].expand(*z.shape, 1) + 0 * w[:, None], signs, dimension=1)
    own = ExactDescent(NoisySgd(steps=5, batch_size=3, step_size=0.5, sigma=sharp["noise"]), records)
    work = own.delete(own.learn(torch.arange(12), Draws(1), trials=40_000), 4, Draws(2))
    for counts, expected in (
        (work.recomputations, sharp["recompute_probability"]),
        (work.gradients, sharp["deletion_gradients"]),
    ):
        rate = counts.double()
        error = float(rate.std()) / 200
        # Tests after the first rejection are spared, which the average cost does not take off.
        assert float(rate.mean()) < expected + 6 * error
        assert float(rate.mean()) > expected - 6 * error - (2 * 5 * 3 / 12 if counts is work.gradients else 0)
    probability = noisy_recompute_probability(n=12, batch_size=3, steps=5, sigma=sharp["noise"], gap=2 / 3)
    assert probability == sharp["recompute_probability"]


def test_the_table_says_what_it_is_about(plan) -> None:
    status, out, _ = plan("noisy-sgd", *QUESTIONS["noisy-sgd"], "--recompute", "0.1", kind="exact")
    printed = " ".join(out.split())
    assert status == 0
    assert "│ sharp │ 200 │ 50 │ 0.125909 │ 0.1 │ │ 10,000 │ 508 │" in printed
    assert "│ Theorem 44 │ 200 │ 50 │ 1.33534 │ 0.009924 │ 0.1 │ 10,000 │ 51.2 │" in printed
    assert "Unlearning is exact, whatever these numbers are" in printed
    assert "while there are at least 11,982 records and gradients of records have norm at most 1." in printed
    _, out, _ = plan("dual-averaging", *QUESTIONS["dual-averaging"], "--recompute", "0.1", kind="exact")
    assert "while there are at most 1,024 records" in " ".join(out.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gradient-descent", "--n", "10"], "MECHANISM must be one of subsample-gd, .*, got 'gradient-descent'"),
        (["noisy-sgd"], "give --n, the number of records"),
        (["noisy-sgd", "--n", "2"], "--n must be a whole number, at least 3, got 2"),
        (
            ["noisy-sgd", "--n", "10", "--recompute", "0.1"],
            "--lipschitz, .*, --dimension must be given, or --steps and",
        ),
        (["noisy-sgd", "--n", "10", "--steps", "5"], "--batch-size must be given for noisy-sgd"),
        (
            ["noisy-sgd", "--n", "10", "--batch-size", "3", "--lipschitz", "1", "--steps", "3"],
            "leave out exactly one of --steps, --sigma, --recompute: the command plans that one; --sigma, --recompute",
        ),
        (
            ["noisy-sgd", *DESCENT, "--steps", "3", "--sigma", "1", "--recompute", "0.1"],
            "plans that one; none is",
        ),
        (
            ["noisy-sgd", *DESCENT, "--steps", "3", "--recompute", "1.5"],
            "--recompute must lie strictly between 0 and 1",
        ),
        (["noisy-sgd", *DESCENT, "--steps", "3", "--sigma", "-1"], "--sigma must be a finite number, at least 0"),
        (["noisy-sgd", *DESCENT, "--steps", "0", "--sigma", "1"], "--steps must be a whole number, at least 1, got 0"),
        (["noisy-sgd", *DESCENT, "--steps", "20000000", "--sigma", "1"], "--steps must be at most 10,000,000"),
        (["noisy-sgd", *DESCENT, "--sigma", "1e9", "--recompute", "0.1"], "would allow more than 10,000,000 steps"),
        (["noisy-sgd", *DESCENT, "--quantum", "1"], "leave out --quantum: noisy-sgd has no use for it here"),
        (["quantized-sgd", *DESCENT, "--steps", "3", "--recompute", "0.1"], "--dimension must be given for quantized"),
        (
            ["subsample-gd", "--n", "10", "--batch-size", "9", "--steps", "3"],
            "--batch-size must be at most n - 2 = 8, got 9: even after a deletion, a batch must leave a record out",
        ),
        (["subsample-gd", "--n", "10", "--batch-size", "3", "--recompute", "0.01"], "allows no step"),
        (["subsample-gd", "--n", "100", "--steps", "50", "--recompute", "0.01"], "or take at most 1 steps"),
        (["dual-averaging", "--n", "10", "--lipschitz", "1", "--sigma", "0"], "--sigma must be a finite number above"),
        (["dual-averaging", "--n", "10", "--lipschitz", "nan", "--sigma", "1"], "--lipschitz must be a finite number"),
        (["dual-averaging", "--n", "10", "--lipschitz", "1", "--sigma", "1", "--dimension", "2"], "give both"),
        (
            ["frank-wolfe", "--n", "10", "--lipschitz", "1", "--sigma", "1"],
            "--smoothness must be given for frank-wolfe",
        ),
    ],
)
def test_flags_that_make_no_sense_are_refused_in_one_sentence(plan, arguments: list[str], message: str) -> None:
    status, out, err = plan(*arguments, kind="exact")
    assert (status, out) == (1, "")
    assert re.search(message, err), err
    assert len(err.strip().splitlines()) == 1
