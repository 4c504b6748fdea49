from snakemake.utils import min_version

min_version("9.0")


configfile: "params.yaml"


report: "workflow/report/workflow.rst"


# The software environment of every rule is the virtual environment that `make` creates; for a container,
# build one from the constraints file and name it here.
container: "docker://python:3.11-slim"


include: "workflow/rules/common.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/accounting.smk"
include: "workflow/rules/deletion.smk"
include: "workflow/rules/learning.smk"
include: "workflow/rules/unlearning.smk"
include: "workflow/rules/baselines.smk"
include: "workflow/rules/results.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/tracking.smk"


localrules:
    all,


rule all:
    default_target: True
    input:
        expand(
            "results/{name}/{file}",
            name=PARAMETERS.preset,
            file=["claims.json", "report.html"],
        ),
        expand(
            "results/{preset}/{file}",
            preset=PARAMETERS.members(PARAMETERS.preset),
            file=[
                "data.safetensors",
                "records.parquet",
                "metrics.json",
                "parameters.html",
                # Intermediate files too: one that a failed job took with it must not pass for up to date.
                *expand("plans/{experiment}.json", experiment=EXPERIMENTS),
                *expand("models/{experiment}.safetensors", experiment=EXPERIMENTS),
                *[
                    f"{kind}/{experiment}-{mechanism}.parquet"
                    for kind in ("records", "curves")
                    for experiment in EXPERIMENTS
                    for mechanism in mechanisms(experiment)
                ],
                *expand("certificates/{experiment}", experiment=EXPERIMENTS),
                *expand("bounds/{bound}.parquet", bound=BOUNDS),
                *expand("deletion/{table}.parquet", table=["attacks", "risk"]),
                *expand(
                    "figures/{figure}.png", figure=[*EXPERIMENTS, *BOUNDS, "deletion"]
                ),
                *expand(
                    "plots/{figure}.csv", figure=[*EXPERIMENTS, *BOUNDS, "deletion"]
                ),
                "accountants.md",
                "tables.md",
                *expand(
                    "tracking/{experiment}.json", experiment=[*EXPERIMENTS, "deletion"]
                ),
            ],
        ),
