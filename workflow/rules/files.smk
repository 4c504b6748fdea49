# The files of a preset, below its directory, and the files that each rule reads.


HEADLINE = "results/headline.json"
"""The numbers of the preset that ran last: DVC compares presets only if their numbers are in the same file."""


def headline_of(name):
    """Return the file of the numbers by which presets are compared; nothing for a collection of several presets."""
    return [HEADLINE] if name in PARAMETERS.presets else []


def member_files(files):
    """Return the files of every preset that a name refers to; ``files`` returns those of one preset."""

    def paths(wildcards):
        return [
            f"results/{member}/{file}"
            for member in PARAMETERS.members(wildcards.name)
            for file in files(member)
        ]

    return paths


def plans_of(name):
    return [
        f"{paper}/{each}/plan.json"
        for paper, each in shown(name, lambda each: each.mechanisms)
    ]


def run_rows_of(name):
    return [
        f"{paper}/{each}/{declared.mechanism_name(mechanism)}.rows.parquet"
        for paper, each in shown(name, lambda each: each.mechanisms)
        for mechanism in EXPERIMENTS[paper, each][1].mechanisms
    ]


def learned_of(name):
    return [
        f"{paper}/{each}/{declared.mechanism_name(mechanism)}.learned.safetensors"
        for paper, each in shown(name, lambda each: each.mechanisms)
        for mechanism in EXPERIMENTS[paper, each][1].mechanisms
        if declared.mechanism(mechanism).learning
    ]


def tables_of(name):
    return [
        f"{paper}/{each}/rows.parquet"
        for paper, each in shown(name, lambda each: not each.mechanisms)
    ]


def certificates_of(name):
    return [
        f"{paper}/{each}/certificates"
        for paper, each in shown(name, lambda each: each.mechanisms)
    ]


def figures_of(name):
    return [
        f"figures/{paper}/{each}.png"
        for paper, each in shown(name, lambda each: each.shown and each.draw)
    ]


def numbers_of(name):
    return [
        f"plots/{paper}/{each}.csv"
        for paper, each in shown(name, lambda each: each.shown)
    ]


def tracked_of(name):
    return [
        f"tracking/{paper}-{each}.json"
        for paper, each in shown(name, lambda each: each.mechanisms or each.tracked)
    ]


def everything_of(member):
    """Return all results of a preset, including intermediate files; if a failed job deleted one, it is made again."""
    return [
        f"results/{member}/{file}"
        for file in (
            "data.safetensors",
            "records.parquet",
            "metrics.json",
            "parameters.html",
            *plans_of(member),
            *learned_of(member),
            *run_rows_of(member),
            *tables_of(member),
            *certificates_of(member),
            *figures_of(member),
            *numbers_of(member),
            *tracked_of(member),
        )
    ]


def job_files(kind):
    """Return the files of one kind for all mechanisms of an experiment, or its table."""

    def paths(wildcards):
        directory = (
            f"results/{wildcards.preset}/{wildcards.paper}/{wildcards.experiment}"
        )
        own = experiment(wildcards).mechanisms
        if not own:
            return [f"{directory}/{kind}.parquet"]
        return [
            f"{directory}/{declared.mechanism_name(mechanism)}.{kind}.parquet"
            for mechanism in own
        ]

    return paths


def data_source(wildcards):
    """Return the file from which a data set is prepared: the manifest of its raw files, or the table itself."""
    dataset = preset(wildcards).settings.dataset
    own = PARAMETERS.own_data.get(dataset)
    return own.path if own else f"data/manifests/{dataset}.json"


def learned(wildcards):
    """Return the learned weights from which a mechanism unlearns, if it learns in a separate job."""
    mechanism = declared.mechanism(MECHANISM_BY_NAME[wildcards.mechanism])
    directory = f"results/{wildcards.preset}/{wildcards.paper}/{wildcards.experiment}"
    return (
        [f"{directory}/{wildcards.mechanism}.learned.safetensors"]
        if mechanism.learning
        else []
    )


def summary(wildcards):
    """Return the data set's summary, if the experiment depends on it."""
    return (
        [f"results/{wildcards.preset}/data.json"]
        if experiment(wildcards).needs_data
        else []
    )


def used_plans(wildcards):
    """Return the plans that an experiment reads."""
    return [
        f"results/{wildcards.preset}/{wildcards.paper}/{used}/plan.json"
        for used in experiment(wildcards).uses
    ]


def read_files(wildcards):
    """Return the files that an experiment reads besides its data set, if they exist; the job reports a missing one."""
    section = preset(wildcards).papers[wildcards.paper][wildcards.experiment]
    return [each for each in section.files if Path(each).exists()]


def tracked_files(wildcards):
    """Return the files that are logged for an experiment in addition to its rows."""
    name = f"{wildcards.paper}/{wildcards.experiment}"
    own = [f"figures/{name}.png"] if experiment(wildcards).draw else []
    if experiment(wildcards).mechanisms:
        own += [f"{name}/plan.json", f"{name}/certificates"]
    return [f"results/{wildcards.preset}/{file}" for file in own]
