import json
import os
import shlex
import shutil
from pathlib import Path

from certified_unlearning import parameters
from certified_unlearning.errors import UnlearningError
from certified_unlearning.files import content_key, read_yaml

try:
    for configfile in workflow.configfiles:
        read_yaml(configfile)  # Snakemake would take the last of two equal keys.
    PARAMETERS = parameters.check(config)
except UnlearningError as error:
    raise WorkflowError(str(error))

EXPERIMENTS = sorted(parameters.Experiments.model_fields)


wildcard_constraints:
    preset="|".join(PARAMETERS.presets),
    name="|".join([*PARAMETERS.presets, *PARAMETERS.collections]),
    experiment="|".join(EXPERIMENTS),


def preset(wildcards):
    return PARAMETERS.presets[wildcards.preset]


def settings(wildcards):
    """What all experiments of a preset share, as JSON for the command line."""
    common = preset(wildcards).model_dump(
        mode="json", include=set(parameters.Common.model_fields)
    )
    return json.dumps(common)


def sweep(wildcards):
    """One experiment's sweep, as JSON for the command line."""
    return getattr(
        preset(wildcards).experiments, wildcards.experiment
    ).model_dump_json()


def features(wildcards):
    """The choice of features of images, for the command line."""
    chosen = preset(wildcards).features
    return f"--features {chosen}" if chosen else ""


def declared(wildcards):
    """The declaration of the table that a preset is about; None of a built-in data set."""
    return PARAMETERS.tables.get(preset(wildcards).dataset)


def data_source(wildcards):
    """What a data set is prepared from: the manifest of its raw files, or the table itself."""
    own = declared(wildcards)
    return own.path if own else f"data/manifests/{preset(wildcards).dataset}.json"


def table(wildcards):
    """The declaration of a table, for the command line."""
    own = declared(wildcards)
    return f"--table {shlex.quote(own.model_dump_json())}" if own else ""


def members(wildcards):
    """The presets that a name stands for, for the command line."""
    return " ".join(f"--member {each}" for each in PARAMETERS.members(wildcards.name))


def member_files(*files):
    """Files of every preset that a name stands for."""

    def paths(wildcards):
        return [
            f"results/{member}/{file}"
            for member in PARAMETERS.members(wildcards.name)
            for file in files
        ]

    return paths


def threads(wildcards):
    return preset(wildcards).threads


def gpu(wildcards):
    """GPUs of a simulation job; the profile says how many there are. Without one, jobs share the cores only."""
    device = preset(wildcards).device
    return int(
        device == "cuda"
        or (device == "auto" and shutil.which("nvidia-smi") is not None)
    )


def mechanisms(experiment):
    """The mechanisms an experiment compares."""
    with_descent = {"fig3a", "fig3b"}
    return [
        "langevin",
        "retraining",
        *(["descent-to-delete"] if experiment in with_descent else []),
    ]


def job_tables(kind, experiments=None):
    """The tables of all jobs of an experiment (or of all experiments)."""

    def paths(wildcards):
        return [
            f"results/{wildcards.preset}/{kind}/{experiment}-{mechanism}.parquet"
            for experiment in experiments or [wildcards.experiment]
            for mechanism in mechanisms(experiment)
        ]

    return paths


def code(*parts):
    """The modules a rule's command runs: declared as input, a change of theirs reruns the rule."""
    root = Path(workflow.basedir) / "src/certified_unlearning"
    files = [file for part in parts for file in sorted(root.glob(part))]
    return [str(file.relative_to(workflow.basedir)) for file in files]


DATA_CODE = code("data/*.py")
PLANNING_CODE = code(
    "accounting/*.py",
    "assumptions.py",
    "data/declaration.py",
    "deletion/parameters.py",
    "experiments/model.py",
    "experiments/plan.py",
    "guarantees.py",
    "mechanisms/learning_start.py",
    "objectives/constants.py",
    "parameters.py",
    "rounding.py",
)
ENGINE_CODE = code(
    "accounting/*.py",
    "checkpoint.py",
    "data/declaration.py",
    "deletion/parameters.py",
    "data/prepared.py",
    "data/requests.py",
    "data/stored_rows.py",
    "devices.py",
    "dynamics.py",
    "experiments/jobs.py",
    "experiments/model.py",
    "experiments/simulation.py",
    "experiments/tables.py",
    "mechanisms/*.py",
    "objectives/*.py",
    "parameters.py",
    "randomness.py",
    "results.py",
    "rounding.py",
)
TRACKING_CODE = code(
    "data/declaration.py",
    "deletion/parameters.py",
    "experiments/model.py",
    "parameters.py",
    "results.py",
    "summaries.py",
    "tracking/*.py",
)
