# One figure an experiment, with the numbers it shows; the table of parameters for the report.


rule figure:
    input:
        records=job_tables("records"),
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
            "results/{preset}/figures/{experiment}.png",
            caption="../report/figure.rst",
            category="Figures",
            labels={"figure": "{experiment}", "format": "PNG"},
        ),
        pdf="results/{preset}/figures/{experiment}.pdf",
        summary=report(
            "results/{preset}/plots/{experiment}.csv",
            caption="../report/numbers.rst",
            category="Numbers",
            labels={"figure": "{experiment}", "format": "CSV"},
        ),
    log:
        "logs/{preset}/figure-{experiment}.log",
    benchmark:
        "benchmarks/results/{preset}/figure-{experiment}.tsv"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        style=PARAMETERS.figures.model_dump_json(),
        records=lambda wildcards, input: " ".join(
            f"--records {path}" for path in input.records
        ),
        stem=lambda wildcards, output: output.png.removesuffix(".png"),
    shell:
        "unlearn pipeline figure {wildcards.experiment} {params.records} --style {params.style:q}"
        " --output {params.stem} --summary {output.summary} 2>&1 | tee {log}"


rule parameter_table:
    input:
        code=code("data/declaration.py", "deletion/parameters.py", "parameters.py"),
    output:
        report(
            "results/{preset}/parameters.html",
            caption="../report/parameters.rst",
            category="Parameters",
            labels={"preset": "{preset}"},
        ),
    log:
        "logs/{preset}/parameters.log",
    benchmark:
        "benchmarks/results/{preset}/parameters.tsv"
    resources:
        mem_mb=500,
        runtime=10,
    params:
        preset=lambda wildcards: preset(wildcards).model_dump_json(),
    shell:
        "unlearn pipeline parameters {wildcards.preset} --values {params.preset:q} --output {output} 2>&1 | tee {log}"
