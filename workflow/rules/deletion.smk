# Forget Unlearning: attacks on deletion and the excess risk along a stream. Of the presets only the size is taken.


localrules:
    deletion_figure,


rule deletion:
    input:
        code=[*ENGINE_CODE, *code("data/digits.py", "deletion/*.py")],
    output:
        attacks="results/{preset}/deletion/attacks.parquet",
        risk="results/{preset}/deletion/risk.parquet",
    log:
        "logs/{preset}/deletion.log",
    benchmark:
        "benchmarks/results/{preset}/deletion.tsv"
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        parameters=PARAMETERS.deletion.model_dump_json(),
        interactions=lambda wildcards: preset(wildcards).interactions,
    shell:
        "unlearn pipeline deletion --parameters {params.parameters:q} --interactions {params.interactions}"
        " --attacks {output.attacks} --risk {output.risk} 2>&1 | tee {log}"


rule deletion_figure:
    input:
        attacks="results/{preset}/deletion/attacks.parquet",
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
            "results/{preset}/figures/deletion.png",
            caption="../report/deletion.rst",
            category="Figures",
            labels={"figure": "deletion", "format": "PNG"},
        ),
        pdf="results/{preset}/figures/deletion.pdf",
        summary=report(
            "results/{preset}/plots/deletion.csv",
            caption="../report/numbers.rst",
            category="Numbers",
            labels={"figure": "deletion", "format": "CSV"},
        ),
    log:
        "logs/{preset}/figure-deletion.log",
    benchmark:
        "benchmarks/results/{preset}/figure-deletion.tsv"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        style=PARAMETERS.figures.model_dump_json(),
        stem=lambda wildcards, output: output.png.removesuffix(".png"),
    shell:
        "unlearn pipeline figure deletion --records {input.attacks} --style {params.style:q}"
        " --output {params.stem} --summary {output.summary} 2>&1 | tee {log}"


rule track_deletion:
    input:
        store="results/{preset}/tracking/store.json",
        attacks="results/{preset}/deletion/attacks.parquet",
        figure="results/{preset}/figures/deletion.png",
        code=TRACKING_CODE,
    output:
        "results/{preset}/tracking/deletion.json",
    log:
        "logs/{preset}/track-deletion.log",
    benchmark:
        "benchmarks/results/{preset}/track-deletion.tsv"
    resources:
        mem_mb=1500,
        runtime=10,
    shell:
        "unlearn pipeline track deletion --results results/{wildcards.preset}"
        " --store {input.store} --output {output} 2>&1 | tee {log}"
