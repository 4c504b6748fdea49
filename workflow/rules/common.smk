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
        read_yaml(configfile)  # Snakemake would take the last of two equal keys.
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
    """The experiment that a job is about."""
    return EXPERIMENTS[wildcards.paper, wildcards.experiment][1]


def module_of(reference):
    """The module of a reference."""
    return reference.partition(":")[0]


def shown(name, wanted=lambda each: True):
    """Paper and experiment of all that a preset runs, as pairs of names, where the experiment is wanted."""
    return [
        (paper.name, each.name)
        for paper, each in PARAMETERS.shown(name)
        if wanted(each)
    ]


def settings(wildcards):
    """Return the settings that all experiments of a preset share, as JSON for the command line."""
    return preset(wildcards).settings.model_dump_json()


def needed_settings(wildcards):
    """The settings, where the experiment depends on the data set; otherwise a change of theirs is none of its own."""
    return settings(wildcards) if experiment(wildcards).needs_data else ""


def sweep(wildcards):
    """One experiment's sweep, as JSON for the command line."""
    return (
        preset(wildcards)
        .papers[wildcards.paper][wildcards.experiment]
        .model_dump_json()
    )


def defaults(wildcards):
    """The keys that nobody chose for these data, for the command line: they are fitted to the data's size."""
    if not experiment(wildcards).needs_data:
        return ""
    return flag(
        "default", preset(wildcards).defaults(wildcards.paper, wildcards.experiment)
    )


def others():
    """The papers of others, for the command line."""
    return " ".join(
        f"--other {shlex.quote(each)}" for each in config.get("papers_of_others", [])
    )


def others_of(name):
    """The papers of others, where the data set may be theirs: one more of them must not prepare ours again."""
    return others() if built_in(name) is None else ""


def flag(name, values):
    """A flag for each value, for the command line."""
    return " ".join(f"--{name} {shlex.quote(str(value))}" for value in values)


def members(wildcards):
    """The presets that a name stands for, each with what it runs, for the command line."""
    return flag(
        "shows",
        (
            f"{member}={','.join(name for _, name in shown(member))}"
            for member in PARAMETERS.members(wildcards.name)
        ),
    )


def key_numbers():
    """Each paper's key numbers, for the command line; what a preset does not run has no rows, and so none."""
    return [paper.key_numbers for paper in PARAMETERS.known if paper.key_numbers]


def figure_views(wildcards):
    """What MLflow's page says of each experiment that mechanisms run, as JSON for the command line."""
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
    """The choice of features of images, for the command line."""
    chosen = preset(wildcards).settings.features
    return f"--features {chosen}" if chosen else ""


def table(wildcards):
    """The declaration of a table, for the command line."""
    own = PARAMETERS.own_data.get(preset(wildcards).settings.dataset)
    return f"--table {shlex.quote(own.model_dump_json())}" if own else ""


def caption(wildcards):
    """Where the paper has an experiment, what it shows, how to read it."""
    paper, shown = EXPERIMENTS[wildcards.paper, wildcards.experiment]
    source = shown.sources.get(preset(wildcards).settings.dataset, shown.source)
    place = f"{source} of {paper.title}: " if source else ""
    return f"{place}{shown.caption.title}. {shown.caption.text}"


def processes(wildcards):
    """Processes that share the rows of a simulation job; of one that fits again there is one."""
    return 1 if fits_again(wildcards.mechanism) else preset(wildcards).processes


def threads(wildcards):
    """Cores of a simulation job: one for each process, where several share it."""
    chosen = preset(wildcards)
    shared = chosen.settings.row_shards and not fits_again(wildcards.mechanism)
    return chosen.processes if shared else chosen.threads


def memory(wildcards):
    """Megabytes of a simulation job: so many for each of its processes."""
    return 2000 * processes(wildcards)


def fits_again(mechanism):
    """Whether a mechanism answers by fitting again instead of by steps that processes could share."""
    return isinstance(declared.mechanism(MECHANISM_BY_NAME[mechanism]), Refit)


def submitted():
    """Whether a cluster's scheduler runs the jobs: known when they are about to run, not while this file is read."""
    return workflow.non_local_exec or workflow.remote_exec


def gpu(wildcards):
    """GPUs of a simulation job, one for each process; the profile says how many there are.

    Of another machine's devices only the parameters can tell: ``auto`` asks for one where jobs run here.
    """
    device = preset(wildcards).settings.device
    seen = not submitted() and shutil.which("nvidia-smi") is not None
    asked = device == "cuda" or (device == "auto" and seen)
    return processes(wildcards) if asked else 0


def refuse_second_writers():
    """End before the first job, where SLURM has jobs of an earlier start that write the same files."""
    try:
        cluster.refuse_second_writers(Path.cwd(), required=submitted())
    except UnlearningError as error:
        raise WorkflowError(str(error))


def not_asked():
    """Return one line where jobs are submitted and nobody said whether they shall have a GPU."""
    if not submitted() or not any(
        preset.settings.device == "auto"
        for preset in map(PARAMETERS.presets.get, PARAMETERS.members(PARAMETERS.preset))
    ):
        return []
    return [
        "device: auto asks the cluster for no GPU; `device: cuda` in the parameters asks for one for each simulation"
    ]


def unconfirmed():
    """Return warnings of files of parameters that hold a draft of a declaration, with what was taken from the data."""
    from certified_unlearning.data.tables.draft import MARK, marked

    return [
        f'warning: {configfile} has {counted(len(left), "mark")} "{MARK}": no guarantee covers what is read off the '
        "records; write what each mark asks for, from what you know without the file, and remove the mark then"
        for configfile in workflow.configfiles
        if (left := marked(Path(configfile).read_text(encoding="utf-8")))
    ]


def last_lines(workflow):
    """What a run of everything ends with; nothing where only a part was asked for."""
    if not any(job.rule.name == "all" for job in workflow.dag.jobs):
        return []
    try:
        members = PARAMETERS.members(PARAMETERS.preset)
        lines = ending(Path("results"), PARAMETERS.preset, members).splitlines()
        return ["", *lines]
    except UnlearningError as error:
        return [f"warning: {error}"]
