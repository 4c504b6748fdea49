"""Result directories of two presets, small and drawn at random, as the pipeline lays them out."""

import functools
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

from certified_unlearning import certificate
from certified_unlearning.certificate import StepsCertificate
from certified_unlearning.files import write_json, write_model, write_text
from certified_unlearning.papers.langevin_unlearning.paper import PAPER
from certified_unlearning.reproduction.claims import findings, verdicts
from certified_unlearning.reproduction.claims.findings import KeyFinding
from certified_unlearning.reproduction.claims.verdicts import Verdict
from certified_unlearning.reproduction.layout import Layout
from certified_unlearning.reproduction.rows import RUN_ROWS, write_table
from tests.reproduction.row_names import named
from tests.support.planning import ANEW, experiment_called, make, paper_of, settings_of, sweep_of

PRESETS = ("first", "second")
FIGURES = ("fig3a", "fig4", "recuperation", "dynamics1")
TABLES = {"first": ("table2", "accountants"), "second": ("accountants",)}
SHOWN = {
    preset: [(paper_of(name), experiment_called(name)) for name in (*FIGURES, *TABLES[preset])] for preset in PRESETS
}
TRIALS = 4
EPSILONS = {"first": (0.5, 1.0), "second": (1.0, 2.0)}
DEFAULTS: dict[str, Any] = {
    "dataset": "digits", "features": "pixels", "guarantee": "upper bound", "adjacency": "replace",
    "smoothness": "bound", "mu": None, "initial_epsilon": None, "delta": 1e-3, "extra_delta": 1e-8,
    "rounding_error": 0.0,
    "n": 1437, "d": 64,
    "strong_convexity": 0.03, "smoothness_constant": 0.28, "lipschitz": 1.0, "step_size": 3.5, "seed": 123,
    "seconds": 0.25, "device": "cpu", "dtype": "float32", "data_sha256": "5eed" * 16, "code_version": "0.1.0+abc1234",
    "request": 1, "records_per_request": 1, "records_removed": 1, "sigma": 0.03,
}  # fmt: skip
REFITS = (
    ("from zero", {"guarantee": "exact", "epsilon_target": 1.0, "epsilon": 0.0, "mu": 0.0, "rounding_error": None}),
    ("warm start", {"guarantee": "none", "epsilon_target": 1.0, "epsilon": None, "rounding_error": None}),
)
"""Of scikit-learn: the variants, and what each states."""
HOSTILE = "<img src=x onerror=\"document.title='fallen'\"> & <b>bold</b>"
CLAIMS = [
    ("flat", "Section 5", "Utility is flat in S.", "yes", "yes", "two standard errors", "reproduced", "", PAPER.name,
     None, None),
    ("sigma", "Table 3", "The least sigma is 0.0095.", "0.0095", "0.0096", "truncated", "contradicted", "", PAPER.name,
     "rounding", 0.01),
    ("k-lsi", "Fig. 3b, digits", "The first request takes 263 steps.", "263, 579", "354, 778", "exact", "contradicted",
     f"L is not what the text says. {HOSTILE}", PAPER.name, "large", 0.35),
    ("more", "Tables 2, 3; Adult", "Adult needs less noise.", "less", "", "", "not run", "Adult was not run.",
     PAPER.name, None, None),
    ("rate", "Theorem 1", "The bound holds.", "at most 1", "43", "", "contradicted", "", "privacy_dynamics",
     "different in kind", 42.0),
    ("slip", "Lemma 2", "The factor is 2.", "2", "4", "", "contradicted", "", "privacy_dynamics", "misprint", 1.0),
    ("stored", "results.json of the authors' repository", "The second request takes 579 steps.", "579", "579", "",
     "reproduced", "", PAPER.name, None, None, "authors' code"),
    ("asked", "Theorem 3.2", "The bound is below 1.", "at most 1", "9", "", "contradicted", "", PAPER.name,
     "different in kind", 8.0, "ours"),
    ("checked", "Our constants", "They are sound.", "yes", "yes", "", "reproduced", "", PAPER.name, None, None, "ours"),
]  # fmt: skip
KEYS = (
    "id",
    "source",
    "statement",
    "expected",
    "measured",
    "tolerance",
    "verdict",
    "reason",
    "paper",
    "severity",
    "gap",
    "whose",
)
READING = {
    "assumes": "A step of at most 1/beta, which the check keeps to.",
    "setting": f"One hundred steps, which are our choice. {HOSTILE}",
    "right_if": "The bound would hold with twice the noise.",
}
# What a claim lacks at its end has its default.
VERDICTS = [
    Verdict.model_validate(dict(zip(KEYS, claim, strict=False)) | ({"reading": READING} if claim[0] == "rate" else {}))
    for claim in CLAIMS
]
FOLDED = {
    "Differential Privacy Dynamics": ["rate", "slip"],
    "Langevin unlearning": ["k-lsi", "sigma", "more", "flat", "stored", "asked", "checked"],
}
"""Claims by paper, as the page orders both."""
FOUND = [
    KeyFinding(text="Removing 10 records takes 20 steps.", newcomers=True),
    KeyFinding(text=f"Accurate. {HOSTILE}", newcomers=True),
    KeyFinding(text="first: removing 10 of 1,437 records takes 20 steps."),
    KeyFinding(text="Theorem 1: The bound holds.", expected="at most 1", measured="43", claim="rate",
               severity="different in kind"),
    KeyFinding(text=HOSTILE),
]  # fmt: skip


def run(preset: str, experiment: str, mechanism: str, variant: str, accountant: str, **constants: Any):
    """The records of one run: a row for each trial; runs without noise have one value."""
    names = {"experiment": experiment, "mechanism": mechanism, "variant": variant, "accountant": accountant}
    key = f"{preset}-{'-'.join(names.values())}-{constants}"
    random = np.random.default_rng(list(key.encode()))
    steps = {"learning_steps": 268, "unlearning_steps": 0, "epsilon": constants.get("epsilon_target", 1.0)}
    row = {**DEFAULTS, "preset": preset, "run_key": key, **names, **steps, **constants}
    row["accumulated_steps"] = row["unlearning_steps"]
    accuracies = random.uniform(0.5, 0.9, TRIALS if row["sigma"] else 1)
    rows = [{**row, "trial": trial, "accuracy": accuracies[trial % len(accuracies)]} for trial in range(TRIALS)]
    return rated(pd.DataFrame(rows))


def rated(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with the other measures, made of the accuracy, and a majority line."""
    accuracy = rows["accuracy"]
    return rows.assign(
        balanced_accuracy=accuracy - 0.01, auc=(1 + accuracy) / 2, log_loss=1.2 - accuracy, majority=0.51
    )


@functools.cache
def records_of(preset: str) -> pd.DataFrame:
    parts = []
    for epsilon, accountant in itertools.product(EPSILONS[preset], ("lsi", "shifted")):
        at = {"epsilon_target": epsilon, "sigma": 0.02 / epsilon}
        parts.append(run(preset, "fig3a", "langevin", "least-sigma", accountant, unlearning_steps=1, **at))
        parts.append(run(preset, "fig3a", "retraining", "noisy", accountant, guarantee="exact", **at, epsilon=0.0))
        for size in (1, 10):
            steps = {"unlearning_steps": int(1200 / epsilon) if accountant == "lsi" else 20}
            group = {"epsilon_target": epsilon, "epsilon": 0.98765432 * epsilon, "records_removed": size}
            parts.append(run(preset, "fig4", "langevin", "least-steps", accountant, **group, **steps,
                             records_per_request=size))  # fmt: skip
    for epsilon, steps in itertools.product(EPSILONS[preset], (1, 5)):
        for accountant, guarantee in (("N.1", "as published"), ("shifted", "upper bound")):
            parts.append(run(preset, "fig3a", "descent-to-delete", "secret-state", f"descent-to-delete {accountant}",
                             guarantee=guarantee, epsilon_target=epsilon, unlearning_steps=steps))  # fmt: skip
    noiseless = {"guarantee": "exact", "epsilon_target": 1.0, "epsilon": 0.0}
    parts.append(run(preset, "fig3a", "retraining", "noiseless", "none", **noiseless, sigma=0.0))
    for size, (variant, sigma) in itertools.product((1, 10), (("noisy", 0.03), ("noiseless", 0.0))):
        removed = {"records_removed": size, "records_per_request": size, "sigma": sigma}
        parts.append(run(preset, "fig4", "retraining", variant, "none", **noiseless, **removed))
    for (experiment, size), (variant, stated) in itertools.product((("fig3a", 1), ("fig4", 1), ("fig4", 10)), REFITS):
        removed = {"records_removed": size, "records_per_request": size, "learning_steps": 0, "sigma": 0.0}
        parts.append(run(preset, experiment, "scikit-learn", variant, "none", **stated, **removed))
    return named(pd.concat(parts, ignore_index=True))


@functools.cache
def certificates() -> dict[str, StepsCertificate]:
    """Accountant -> a certificate of the smoke preset: of two requests for lsi, of one for the others."""
    summary = {
        "n": 1437, "d": 64, "classes": {"train": {"-1": 700, "+1": 737}}, "largest_eigenvalue": 0.595,
        "sha256": "5eed" * 16, "features": "pixels",
    }  # fmt: skip
    single, stream = (make(name, settings_of("smoke"), sweep_of("smoke", name), summary) for name in ("fig3a", "fig3b"))
    runs = [run for run in single.runs if run.mechanism not in ANEW]
    runs += [run for run in stream.runs if run.accountant == "lsi" and len(run.requests) == 2]
    return {run.accountant: certificate.of(run, key="", noise_source="seed") for run in runs}


def write_certificates(layout: Layout, records: pd.DataFrame) -> None:
    """Write a certificate for every run; each is right in itself, but of other constants than the records."""
    certified = records[~records["mechanism"].isin(ANEW)]
    for (experiment, accountant), rows in certified.groupby(["experiment", "accountant"]):
        for number, key in enumerate(sorted(rows["run_key"].unique())):
            stated = certificates()[accountant].model_copy(update={"run_key": key})
            directory = layout.certificates(PAPER.name, experiment)
            write_model(directory / f"{accountant.replace(' ', '-')}-{number}.json", stated)


def write_figure(layout: Layout, name: str, *, width: int, data: str, random: np.random.Generator) -> None:
    """Write an experiment's figure and the numbers that it shows."""
    paper = paper_of(name).name
    png, pdf, svg = (layout.figure(paper, name, kind) for kind in ("png", "pdf", "svg"))
    png.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(random.integers(0, 256, (100, width, 3), dtype=np.uint8)).save(png)
    pdf.write_bytes(b"%PDF-1.4 nothing\n%%EOF\n")
    svg.write_bytes(b"<?xml version='1.0'?><svg xmlns='http://www.w3.org/2000/svg'></svg>\n")
    write_text(layout.numbers(paper, name), f"experiment,y\n{name},{data}\n")


def write_table_of(layout: Layout, name: str, rows: list[dict[str, Any]]) -> None:
    """Write the rows of an experiment that is a table, and its numbers."""
    paper, frame = paper_of(name).name, pd.DataFrame(rows)
    write_table(layout.rows(paper, name), frame, experiment_called(name).rows)
    write_text(layout.numbers(paper, name), frame.to_csv(index=False))


ASKED_FOR = {
    ("smallest sigma for one request of 1 record with K = 1", 0.5): (0.09, 0.03),
    ("smallest sigma for one request of 1 record with K = 1", 1.0): (0.05, 0.02),
    ("total number of steps until 10 records are removed, with 5 records per request and sigma = 0.03", 1.0): (964, 26),
}
NOISE = {("bound", 0.27874): {0.5: 6.533902274961859, 1.0: 3.31}, ("spectral", 0.1775751): {0.5: 3.889895}}


def asked_for() -> list[dict[str, Any]]:
    """Rows of ``accountants``."""
    return [
        {"quantity": quantity, "epsilon_target": epsilon, "accountant": accountant, "value": float(value)}
        for (quantity, epsilon), values in ASKED_FOR.items()
        for accountant, value in zip(("lsi", "shifted"), values, strict=True)
    ]


def noise() -> list[dict[str, Any]]:
    """Rows of ``table2``."""
    shared = {
        "dataset": "digits", "features": "pixels", "mechanism": "descent-to-delete",
        "accountant": "descent-to-delete N.1", "guarantee": "as published", "unlearning_steps": 1, "delta": 1e-3,
    }  # fmt: skip
    return [
        {**shared, "smoothness": rule, "smoothness_constant": constant, "epsilon_target": epsilon, "sigma": sigma}
        for (rule, constant), sigmas in NOISE.items()
        for epsilon, sigma in sigmas.items()
    ]


def write_results(results: Path) -> None:
    random = np.random.default_rng(3)
    for preset in PRESETS:
        layout = Layout(results, preset)
        write_table(layout.records, records_of(preset), RUN_ROWS)
        write_json(layout.summary, {
            "name": "adult" if preset == "second" else "digits", "features": "pixels", "preprocessing": "norm 1",
            "n": 1437, "n_test": 360, "d": 64, "sha256": "5eed" * 16,
        })  # fmt: skip
        for name in FIGURES:
            width = 102 if name == "recuperation" else 204
            data = "same" if name == "dynamics1" else preset
            write_figure(layout, name, width=width, data=data, random=random)
        write_table_of(layout, "accountants", asked_for())
        for name in ("fig3a", "fig4"):
            write_json(layout.plan(PAPER.name, name), {"settings": {"seed": 123, "radius": None, "start": 1000.0}})
        write_text(layout.directory / "parameters.html", "<table></table>")
        write_certificates(layout, records_of(preset))
    write_table_of(Layout(results, "first"), "table2", noise())
    verdicts.write(results / "both/claims.json", VERDICTS)
    findings.write(results / "both/findings.json", FOUND)


def change_claim(results: Path, **changes: Any) -> None:
    """Change the first claim."""
    path = results / "both/claims.json"
    claims = json.loads(path.read_text(encoding="utf-8"))
    claims[0] |= changes
    write_json(path, claims)
