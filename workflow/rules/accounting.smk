# What accounting says without a simulation: privacy bounds against steps, and what each accountant asks for.

BOUNDS = ("recuperation", "smoothness", "dynamics1", "dynamics2")


localrules:
    recuperation,
    smoothness,
    dynamics,
    accountants,
    tables,


wildcard_constraints:
    bound="|".join(BOUNDS),


rule recuperation:
    input:
        summary="results/{preset}/data.json",
        code=[
            *PLANNING_CODE,
            *code("experiments/recuperation.py", "offers.py", "results.py"),
        ],
    output:
        "results/{preset}/bounds/recuperation.parquet",
    log:
        "logs/{preset}/recuperation.log",
    benchmark:
        "benchmarks/results/{preset}/recuperation.tsv"
    resources:
        mem_mb=500,
        runtime=10,
    params:
        settings=settings,
        sweep=lambda wildcards: preset(wildcards).bounds.recuperation.model_dump_json(),
    shell:
        "unlearn pipeline recuperation --settings {params.settings:q} --sweep {params.sweep:q}"
        " --summary {input.summary} --output {output} 2>&1 | tee {log}"


rule smoothness:
    input:
        summary="results/{preset}/data.json",
        code=[
            *PLANNING_CODE,
            *code("experiments/smoothness_streams.py", "results.py"),
        ],
    output:
        "results/{preset}/bounds/smoothness.parquet",
    log:
        "logs/{preset}/smoothness.log",
    benchmark:
        "benchmarks/results/{preset}/smoothness.tsv"
    resources:
        mem_mb=500,
        runtime=10,
    params:
        settings=settings,
        sweep=lambda wildcards: preset(wildcards).experiments.fig3b.model_dump_json(),
    shell:
        "unlearn pipeline smoothness --settings {params.settings:q} --sweep {params.sweep:q}"
        " --summary {input.summary} --output {output} 2>&1 | tee {log}"


rule tables:
    input:
        summary="results/{preset}/data.json",
        code=[
            *PLANNING_CODE,
            *code(
                "experiments/smoothness_streams.py",
                "markdown.py",
                "paper_tables.py",
                "results.py",
                "rounding.py",
                "summaries.py",
            ),
        ],
    output:
        markdown="results/{preset}/tables.md",
        tables=report(
            expand("results/{{preset}}/plots/table{number}.csv", number=[1, 2, 3]),
            caption="../report/tables.rst",
            category="Tables",
        ),
    log:
        "logs/{preset}/tables.log",
    benchmark:
        "benchmarks/results/{preset}/tables.tsv"
    resources:
        mem_mb=500,
        runtime=10,
    params:
        settings=settings,
        experiments=lambda wildcards: preset(wildcards).experiments.model_dump_json(),
        directory=lambda wildcards, output: os.path.dirname(output.tables[0]),
    shell:
        "unlearn pipeline tables --settings {params.settings:q} --experiments {params.experiments:q}"
        " --summary {input.summary} --markdown {output.markdown} --output {params.directory} 2>&1 | tee {log}"


rule dynamics:
    input:
        code=code(
            "accounting/*.py",
            "data/declaration.py",
            "deletion/parameters.py",
            "experiments/dynamics_bounds.py",
            "parameters.py",
            "results.py",
        ),
    output:
        "results/{preset}/bounds/dynamics{number}.parquet",
    log:
        "logs/{preset}/dynamics{number}.log",
    benchmark:
        "benchmarks/results/{preset}/dynamics{number}.tsv"
    resources:
        mem_mb=500,
        runtime=10,
    params:
        sweep=PARAMETERS.dynamics.model_dump_json(),
    shell:
        "unlearn pipeline dynamics {wildcards.number} --sweep {params.sweep:q} --output {output} 2>&1 | tee {log}"


rule bound_figure:
    input:
        bounds="results/{preset}/bounds/{bound}.parquet",
        code=code(
            "data/declaration.py",
            "deletion/names.py",
            "deletion/parameters.py",
            "figures/*.py",
            "parameters.py",
            "results.py",
            "summaries.py",
        ),
    output:
        png=report(
            "results/{preset}/figures/{bound}.png",
            caption="../report/bound.rst",
            category="Figures",
            labels={"figure": "{bound}", "format": "PNG"},
        ),
        pdf="results/{preset}/figures/{bound}.pdf",
        summary=report(
            "results/{preset}/plots/{bound}.csv",
            caption="../report/numbers.rst",
            category="Numbers",
            labels={"figure": "{bound}", "format": "CSV"},
        ),
    log:
        "logs/{preset}/figure-{bound}.log",
    benchmark:
        "benchmarks/results/{preset}/figure-{bound}.tsv"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        style=PARAMETERS.figures.model_dump_json(),
        stem=lambda wildcards, output: output.png.removesuffix(".png"),
    shell:
        "unlearn pipeline figure {wildcards.bound} --records {input.bounds} --style {params.style:q}"
        " --output {params.stem} --summary {output.summary} 2>&1 | tee {log}"


rule accountants:
    input:
        plans=expand(
            "results/{{preset}}/plans/{experiment}.json",
            experiment=["fig3a", "fig3b", "fig4"],
        ),
        code=code(
            "accountant_table.py",
            "data/declaration.py",
            "deletion/parameters.py",
            "experiments/model.py",
            "markdown.py",
            "parameters.py",
            "results.py",
            "rounding.py",
            "summaries.py",
        ),
    output:
        markdown="results/{preset}/accountants.md",
        table=report(
            "results/{preset}/plots/accountants.csv",
            caption="../report/accountants.rst",
            category="Accountants",
            labels={"table": "accountants"},
        ),
    log:
        "logs/{preset}/accountants.log",
    benchmark:
        "benchmarks/results/{preset}/accountants.tsv"
    resources:
        mem_mb=500,
        runtime=10,
    shell:
        "unlearn pipeline accountants {input.plans} --markdown {output.markdown} --output {output.table}"
        " 2>&1 | tee {log}"
