"""Clients that leave federated averaging: how often rounds are recomputed, what a removal costs, and accuracy.

Four fifths of Adult's training records are learned from. They are assigned to clients at random, by sizes that decrease
like 1 / rank, or by country. Up to 50 clients leave each of four learned models; every client leaves the model as it
was after learning. Times are processor time of one thread:
``OMP_NUM_THREADS=1 python benchmarks/federated_averaging.py``. It needs UNLEARNING_DATA.
"""

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from certified_unlearning.accounting.tv.recomputation import query_recompute_probability
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.mechanisms.exact.queries.federated_plan import FederatedPlan
from timing import machine, seconds

COLUMNS = [
    *("age", "workclass", "fnlwgt", "education", "education_num", "marital", "occupation", "relationship"),
    *("race", "sex", "gain", "loss", "hours", "country", "income"),
]
CASES: tuple[tuple[str, float | None], ...] = (
    ("1000", None),
    ("1000", 0.5),
    ("100", None),
    ("100", 0.1),
    ("skewed", None),
    ("country", None),
)
MODELS, LEAVING = 4, 50


def adult(rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return rows of norm 1 with a column for the intercept, labels -1 and 1, and countries, in random order."""
    path = Path(os.environ["UNLEARNING_DATA"]) / "adult" / "adult.data"
    table = pd.read_csv(path, names=COLUMNS, skipinitialspace=True)
    ranges = {"age": (15, 90), "education_num": (1, 16), "hours": (0, 80), "gain": (0, 10_000)}
    numbers = [2 * (table[name].clip(*ends) - ends[0]) / (ends[1] - ends[0]) - 1 for name, ends in ranges.items()]
    words = pd.get_dummies(table[["marital", "relationship", "sex"]]).to_numpy(float)
    rows = np.column_stack([*numbers, words])
    rows = np.column_stack([rows / np.linalg.norm(rows, axis=1, keepdims=True), np.ones(len(rows))]) / np.sqrt(2)
    order = rng.permutation(len(rows))
    labels = np.where(table["income"].str.startswith(">50K"), 1, -1)
    return rows[order], labels[order], pd.factorize(table["country"])[0][order]


def owners_of(kind: str, countries: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
    """Return the client of each row."""
    if kind == "country":
        return countries
    if kind == "skewed":
        sizes = 1 / np.arange(1, 1001)
        return rng.choice(1000, len(countries), p=sizes / sizes.sum())
    return rng.integers(0, int(kind), len(countries))


def measured(kind: str, recompute: float | None) -> dict[str, Any]:
    """Return the results for one way of assigning rows to clients."""
    rng = np.random.default_rng(0)
    rows, labels, countries = adult(rng)
    cut = 4 * len(rows) // 5
    owners = torch.from_numpy(owners_of(kind, countries[:cut], rng))
    plan = FederatedPlan.make(
        n=cut,
        clients=len(owners.unique()),
        features=rows.shape[1],
        classes=2,
        strong_convexity=1 / 2000,
        recompute=recompute,
    )
    given = torch.from_numpy(rows[:cut].astype(np.float32)), torch.from_numpy(labels[:cut]), owners
    clients = plan.clients_of(*given)
    learner = plan.learner_of(plan.method_of(clients))
    learning, removing, again, rounds, accuracy = [], [], [], [], []
    for model in range(MODELS):
        start = time.process_time()
        run, _ = learner.learn(clients.names, 1, Draws.at(kind, model))
        learning.append(time.process_time() - start)
        scores = rows[cut:] @ learner.model(run)[0].numpy()
        accuracy.append(np.mean((scores > 0) == (labels[cut:] > 0)))
        for client in rng.permutation(clients.names.numpy())[: min(LEAVING, plan.clients - 1)].tolist():
            copy = learner.restore({name: each.clone() for name, each in run.tensors().items()})
            works: list[Any] = []
            draws = Draws.at(kind, model, client)
            removing.append(
                seconds(lambda: works.append(learner.delete(copy, client, draws)), time.process_time)  # noqa: B023
            )
            again.append(float(works[0].recomputations[0]))
            rounds.append(float(works[0].iterations_run_again[0]))
    return {
        "clients": plan.clients,
        "given": kind,
        "recompute": recompute,
        "bound": query_recompute_probability(queries=plan.steps, sigma=plan.sigma, bound=plan.clip),
        "took rounds again": float(np.mean(again)),
        "removals": len(again),
        "rounds again": float(np.mean(rounds)),
        "learning over a removal": float(np.mean(learning) / np.mean(removing)),
        "accuracy": float(np.mean(accuracy)),
    }


def main() -> None:
    """Print a line for each case."""
    rows, labels, _ = adult(np.random.default_rng(0))
    cut = 4 * len(rows) // 5
    plain = LogisticRegression(max_iter=1000).fit(rows[:cut], labels[:cut])
    print(json.dumps(machine() | {"scikit-learn": plain.score(rows[cut:], labels[cut:])}))
    for kind, recompute in CASES:
        print(json.dumps(measured(kind, recompute)), flush=True)


if __name__ == "__main__":
    main()
