# Raw files in place and checked, or a table of one's own; then labelled rows of norm at most 1.


rule fetch:
    input:
        code=DATA_CODE,
    output:
        manifest="data/manifests/{dataset}.json",
    log:
        "logs/fetch/{dataset}.log",
    benchmark:
        "benchmarks/results/fetch/{dataset}.tsv"
    retries: 2
    resources:
        mem_mb=1000,
        runtime=60,
    shell:
        "unlearn data fetch {wildcards.dataset} --manifest {output.manifest} 2>&1 | tee {log}"


rule prepare:
    input:
        source=data_source,
        code=DATA_CODE,
    output:
        data="results/{preset}/data.safetensors",
        summary="results/{preset}/data.json",
    log:
        "logs/{preset}/prepare.log",
    benchmark:
        "benchmarks/results/{preset}/prepare.tsv"
    resources:
        mem_mb=2500,
        runtime=120,
    params:
        dataset=lambda wildcards: preset(wildcards).dataset,
        seed=lambda wildcards: preset(wildcards).seed,
        features=features,
        table=table,
    shell:
        "unlearn data prepare {params.dataset} {params.features} {params.table} --seed {params.seed}"
        " --output {output.data} --summary {output.summary} 2>&1 | tee {log}"


rule plan:
    input:
        summary="results/{preset}/data.json",
        code=PLANNING_CODE,
    output:
        "results/{preset}/plans/{experiment}.json",
    log:
        "logs/{preset}/plan-{experiment}.log",
    benchmark:
        "benchmarks/results/{preset}/plan-{experiment}.tsv"
    resources:
        mem_mb=500,
        runtime=10,
    params:
        settings=settings,
        sweep=sweep,
    shell:
        "unlearn pipeline plan {wildcards.experiment} --preset {wildcards.preset}"
        " --settings {params.settings:q} --sweep {params.sweep:q}"
        " --summary {input.summary} --output {output} 2>&1 | tee {log}"
