"""Result directories of two presets, small and drawn at random, as the pipeline lays them out."""

import functools
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

from certified_unlearning import parameters
from certified_unlearning.certificate import Certificate, certify
from certified_unlearning.experiments.plan import make_plan
from certified_unlearning.files import write_json, write_model
from certified_unlearning.results import RECORD_SCHEMA, write_table

PRESETS = ("first", "second")
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
HOSTILE = "<img src=x onerror=\"document.title='fallen'\"> & <b>bold</b>"
CLAIMS = [
    ("k-lsi", "Fig. 3b, digits", "The first request takes 263 steps.", [263, 579], [354, 778], 0, "contradicted",
     f"L is not what the text says. {HOSTILE}"),
    ("sigma", "Table 3", "The least sigma is 0.0095.", 0.0095, 0.009577691123, "truncated", "reproduced", None),
    ("flat", "Section 5", "Utility is flat in S.", True, True, "two standard errors", "reproduced", ""),
    ("more", "Tables 2, 3; Adult", "Adult needs less noise.", "less", None, None, "not run", "Adult was not run."),
]  # fmt: skip


def run(preset: str, experiment: str, mechanism: str, variant: str, accountant: str, **constants: Any):
    """The records of one run: a row for each trial; noiseless runs have one value."""
    names = {"experiment": experiment, "mechanism": mechanism, "variant": variant, "accountant": accountant}
    key = f"{preset}-{'-'.join(names.values())}-{constants}"
    random = np.random.default_rng(list(key.encode()))
    accuracies = random.uniform(0.5, 0.9, 1 if variant == "noiseless" else TRIALS)
    steps = {"learning_steps": 268, "unlearning_steps": 0, "epsilon": constants.get("epsilon_target", 1.0)}
    row = {**DEFAULTS, "preset": preset, "run_key": key, **names, **steps, **constants}
    row["accumulated_steps"] = row["unlearning_steps"]
    return pd.DataFrame([{**row, "trial": trial, "accuracy": accuracies[trial % len(accuracies)]}
                         for trial in range(TRIALS)])  # fmt: skip


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
    return pd.concat(parts, ignore_index=True)


@functools.cache
def certificates() -> dict[str, Certificate]:
    """Accountant -> a certificate of the smoke preset: of two requests for lsi, of one for the others."""
    preset = parameters.load(Path(__file__).parents[2] / "params.yaml").presets["smoke"]
    common = parameters.Common(**preset.model_dump(include=set(parameters.Common.model_fields)))
    summary = {
        "n": 1437, "d": 64, "classes": {"train": {"-1": 700, "+1": 737}}, "largest_eigenvalue": 0.595,
        "sha256": "5eed" * 16, "features": "pixels",
    }  # fmt: skip
    single = make_plan("smoke", common, "fig3a", preset.experiments.fig3a, summary)
    stream = make_plan("smoke", common, "fig3b", preset.experiments.fig3b, summary)
    found = {run.accountant: certify(single, run) for run in single.runs if run.mechanism != "retraining"}
    two_requests = (run for run in stream.runs if run.accountant == "lsi" and len(run.requests) == 2)
    return found | {"lsi": certify(stream, next(two_requests))}


def write_certificates(directory: Path, records: pd.DataFrame) -> None:
    """Write a certificate for every run; each is right in itself, but of other constants than the records."""
    for (experiment, accountant), rows in records[records["mechanism"] != "retraining"].groupby(
        ["experiment", "accountant"]
    ):
        for number, key in enumerate(sorted(rows["run_key"].unique())):
            certificate = certificates()[accountant].model_copy(update={"run_key": key})
            write_model(directory / experiment / f"{accountant.replace(' ', '-')}-{number}.json", certificate)


def write_results(results: Path) -> None:
    random = np.random.default_rng(3)
    for preset in PRESETS:
        directory = results / preset
        for part in ("figures", "plots", "plans"):
            (directory / part).mkdir(parents=True)
        write_table(directory / "records.parquet", records_of(preset), RECORD_SCHEMA)
        write_json(directory / "data.json", {
            "name": "adult" if preset == "second" else "digits", "features": "pixels", "preprocessing": "norm 1",
            "n": 1437, "n_test": 360, "d": 64, "sha256": "5eed" * 16,
        })  # fmt: skip
        for name, width in (("fig3a", 204), ("recuperation", 102), ("dynamics1", 204)):
            pixels = random.integers(0, 256, (100, width, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(directory / "figures" / f"{name}.png")
            data = f"experiment,y\n{name},{'same' if name == 'dynamics1' else preset}\n"
            (directory / "plots" / f"{name}.csv").write_text(data, encoding="utf-8")
        (directory / "figures/fig3a.pdf").write_bytes(b"%PDF-1.4 nothing\n%%EOF\n")
        (directory / "plots/accountants.csv").write_text(
            'quantity,lsi,shifted\n"least sigma, S = 1, K = 1: epsilon = 0.5, 1","0.09, 0.05","0.03, 0.02"\n'
            '"all steps, S = 5 a request: sigma = 0.03, epsilon = 1",964,26\n',
            encoding="utf-8",
        )
        write_json(directory / "plans/fig3a.json", {"settings": {"seed": 123, "radius": None, "start": 1000.0}})
        (directory / "parameters.html").write_text("<table></table>", encoding="utf-8")
        write_certificates(directory / "certificates", records_of(preset))
    (results / "first/plots/table2.csv").write_text(
        "dataset,smoothness,smoothness_constant,accountant,epsilon_target,sigma\n"
        "digits,bound,0.27874,N.1,0.5,6.533902274961859\ndigits,bound,0.27874,N.1,1.0,3.31\n"
        "digits,spectral,0.1775751,N.1,0.5,3.889895\n",
        encoding="utf-8",
    )
    keys = ("id", "source", "statement", "expected", "measured", "tolerance", "verdict", "reason")
    write_json(results / "both/claims.json", [dict(zip(keys, claim, strict=True)) for claim in CLAIMS])


def change_claim(results: Path, **changes: Any) -> None:
    """Change the first claim."""
    path = results / "both/claims.json"
    claims = json.loads(path.read_text(encoding="utf-8"))
    claims[0] |= changes
    write_json(path, claims)
