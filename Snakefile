from snakemake.utils import min_version

min_version("9.0")


configfile: "params.yaml"


report: "workflow/report/workflow.rst"


# The software environment of every rule is the virtual environment that `make` creates. For a container, build an image
# as the top of Containerfile describes, and name it here.
container: "docker://python:3.11-slim"


include: "workflow/rules/common.smk"
include: "workflow/rules/files.smk"
include: "workflow/rules/code.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/run.smk"
include: "workflow/rules/show.smk"
include: "workflow/rules/track.smk"


onstart:
    refuse_second_writers()
    for line in [*unconfirmed(), *not_asked()]:
        print(line)


onsuccess:
    for line in last_lines(workflow):
        print(line)


onerror:
    print(
        "Not finished. The errors are above, after 'Error in rule', with their logs; all logs are in logs/. "
        "The same command continues with what is missing."
    )


localrules:
    all,


rule all:
    default_target: True
    input:
        expand(
            "results/{name}/{file}",
            name=PARAMETERS.preset,
            file=["claims.json", "findings.json", "report.html"],
        ),
        headline_of(PARAMETERS.preset),
        [
            file
            for member in PARAMETERS.members(PARAMETERS.preset)
            for file in everything_of(member)
        ],
    message:
        f"{PARAMETERS.preset}: everything is made"
