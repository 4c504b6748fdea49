import os
import json
import shlex
import shutil
from functools import cache
from pathlib import Path

from certified_unlearning.data.sets import built_in, find
from certified_unlearning.errors import UnlearningError
from certified_unlearning.files import content_key, read_yaml
from certified_unlearning.mechanisms.mechanism import Refit
from certified_unlearning.papers import parameters
from certified_unlearning.papers.all import data_sets
from certified_unlearning.reproduction import cluster, declared
from certified_unlearning.reproduction.claims.ending import ending
from certified_unlearning.reproduction.code import digest
from certified_unlearning.text import counted

digest = cache(digest)
PACKAGE = "certified_unlearning"

try:
    for configfile in workflow.configfiles:
        read_yaml(configfile)  # Snakemake would use the last of two equal keys.
    PARAMETERS = parameters.check(config)
except UnlearningError as error:
    raise WorkflowError(str(error))

EXPERIMENTS = {
    (paper.name, each.name): (paper, each)
    for paper in PARAMETERS.known
    for each in paper.experiments
}
MECHANISMS = sorted(
    {name for _, each in EXPERIMENTS.values() for name in each.mechanisms}
)
MECHANISM_BY_NAME = {declared.mechanism_name(each): each for each in MECHANISMS}


wildcard_constraints:
    preset="|".join(PARAMETERS.presets),
    name="|".join([*PARAMETERS.presets, *PARAMETERS.collections]),
    paper="|".join(paper.name for paper in PARAMETERS.known),
    experiment="|".join({name for _, name in EXPERIMENTS}),
    mechanism="|".join(MECHANISM_BY_NAME),


def preset(wildcards):
    return PARAMETERS.presets[wildcards.preset]


def experiment(wildcards):
    """Return the experiment of a job."""
    return EXPERIMENTS[wildcards.paper, wildcards.experiment][1]


def module_of(reference):
    """Return the module of a reference."""
    return reference.partition(":")[0]


def shown(name, wanted=lambda each: True):
    """Return paper and experiment, as pairs of names, for all wanted experiments that a preset runs."""
    return [
        (paper.name, each.name)
        for paper, each in PARAMETERS.shown(name)
        if wanted(each)
    ]


def settings(wildcards):
    """Return the settings that all experiments of a preset share, as JSON for the command line."""
    return preset(wildcards).settings.model_dump_json()


def needed_settings(wildcards):
    """Return the settings if the experiment depends on the data set; otherwise, their change must rerun nothing."""
    return settings(wildcards) if experiment(wildcards).needs_data else ""


def sweep(wildcards):
    """Return one experiment's sweep, as JSON for the command line."""
    return (
        preset(wildcards)
        .papers[wildcards.paper][wildcards.experiment]
        .model_dump_json()
    )


def defaults(wildcards):
    """Return the keys with default values, for the command line; these values are adapted to the size of the data."""
    if not experiment(wildcards).needs_data:
        return ""
    return flag(
        "default", preset(wildcards).defaults(wildcards.paper, wildcards.experiment)
    )


def others():
    """Return the papers outside this package, for the command line."""
    return " ".join(
        f"--other {shlex.quote(each)}" for each in config.get("papers_of_others", [])
    )


def others_of(name):
    """Return the papers outside this package if the data set may be theirs.

    For other data sets, a new paper must rerun nothing.
    """
    return others() if built_in(name) is None else ""


def flag(name, values):
    """Return a flag for each value, for the command line."""
    return " ".join(f"--{name} {shlex.quote(str(value))}" for value in values)


def members(wildcards):
    """Return the presets that a name refers to, each with its experiments, for the command line."""
    return flag(
        "shows",
        (
            f"{member}={','.join(name for _, name in shown(member))}"
            for member in PARAMETERS.members(wildcards.name)
        ),
    )


def key_numbers():
    """Return each paper's key numbers, for the command line; experiments that the preset does not run have none."""
    return [paper.key_numbers for paper in PARAMETERS.known if paper.key_numbers]


def figure_views(wildcards):
    """Return the information for MLflow's page on each experiment with mechanisms, as JSON for the command line."""
    return flag(
        "figure",
        (
            json.dumps(
                {
                    "name": each.name,
                    "label": each.source or each.name,
                    "title": each.title,
                    "x": each.x,
                    "y": list(each.y),
                }
            )
            for _, each in PARAMETERS.shown(wildcards.preset)
            if each.mechanisms
        ),
    )


def features(wildcards):
    """Return the choice of image features, for the command line."""
    chosen = preset(wildcards).settings.features
    return f"--features {chosen}" if chosen else ""


def table(wildcards):
    """Return the declaration of a table, for the command line."""
    own = PARAMETERS.own_data.get(preset(wildcards).settings.dataset)
    return f"--table {shlex.quote(own.model_dump_json())}" if own else ""


def caption(wildcards):
    """Return an experiment's place in the paper, what it shows, and how to read it."""
    paper, shown = EXPERIMENTS[wildcards.paper, wildcards.experiment]
    source = shown.sources.get(preset(wildcards).settings.dataset, shown.source)
    place = f"{source} of {paper.title}: " if source else ""
    return f"{place}{shown.caption.title}. {shown.caption.text}"


def processes(wildcards):
    """Return the number of processes that share the rows of a simulation job; 1 for a mechanism that fits again."""
    return 1 if fits_again(wildcards.mechanism) else preset(wildcards).processes


def threads(wildcards):
    """Return the cores of a simulation job: one for each process if several processes share it."""
    chosen = preset(wildcards)
    shared = chosen.settings.row_shards and not fits_again(wildcards.mechanism)
    return chosen.processes if shared else chosen.threads


def memory(wildcards):
    """Return the memory of a simulation job in megabytes: a fixed amount for each process."""
    return 2000 * processes(wildcards)


def fits_again(mechanism):
    """Return whether a mechanism answers by fitting again; processes cannot share that, unlike steps."""
    return isinstance(declared.mechanism(MECHANISM_BY_NAME[mechanism]), Refit)


def submitted():
    """Return whether a cluster's scheduler runs the jobs, which is known only when they are about to run."""
    return workflow.non_local_exec or workflow.remote_exec


def gpu(wildcards):
    """Return the GPUs of a simulation job, one for each process; the profile says how many there are.

    The devices of another machine are known only from the parameters: ``auto`` requests a GPU only if jobs run on this
    machine.
    """
    device = preset(wildcards).settings.device
    seen = not submitted() and shutil.which("nvidia-smi") is not None
    asked = device == "cuda" or (device == "auto" and seen)
    return processes(wildcards) if asked else 0


def refuse_second_writers():
    """Raise an error before the first job if SLURM has jobs of an earlier run that write the same files."""
    try:
        cluster.refuse_second_writers(Path.cwd(), required=submitted())
    except UnlearningError as error:
        raise WorkflowError(str(error))


def not_asked():
    """Return one line if jobs are submitted and the parameters do not say whether they need a GPU."""
    if not submitted() or not any(
        preset.settings.device == "auto"
        for preset in map(PARAMETERS.presets.get, PARAMETERS.members(PARAMETERS.preset))
    ):
        return []
    return [
        "device: auto requests no GPU from the cluster; `device: cuda` in the parameters requests one for each simulation"
    ]


def unconfirmed():
    """Return warnings about parameter files with a draft of a declaration, which contains values from the data."""
    from certified_unlearning.data.tables.draft import MARK, marked

    return [
        f'warning: {configfile} has {counted(len(left), "mark")} "{MARK}": no guarantee covers values that are '
        "taken from the records; write what each mark asks for, using only what you know without the file, and then "
        "remove the mark"
        for configfile in workflow.configfiles
        if (left := marked(Path(configfile).read_text(encoding="utf-8")))
    ]


def last_lines(workflow):
    """Return the last lines of a complete run; nothing if only a part was requested."""
    if not any(job.rule.name == "all" for job in workflow.dag.jobs):
        return []
    try:
        members = PARAMETERS.members(PARAMETERS.preset)
        lines = ending(Path("results"), PARAMETERS.preset, members).splitlines()
        return ["", *lines]
    except UnlearningError as error:
        return [f"warning: {error}"]
