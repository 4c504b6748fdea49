# Experiments: plans, and the mechanisms that carry them out; or rows that are computed directly.


# Priorities: first the jobs that verdicts wait for (2), then figures and the report (1). Jobs that log to MLflow come
# last, because nothing waits for them. They use the processor while the report, the last long job of a run, is written.


# On a cluster, only learning, unlearning and retraining are worth submitting as jobs, because each job takes seconds to
# start.
localrules:
    plan,
    make,
    refit,
    certify,
    collect,
    metrics,


REFITS = [name for name in MECHANISM_BY_NAME if fits_again(name)]


ruleorder: plan > make


rule plan:
    input:
        summary="results/{preset}/data.json",
    output:
        "results/{preset}/{paper}/{experiment}/plan.json",
    log:
        "logs/{preset}/{paper}/{experiment}/plan.log",
    benchmark:
        "benchmarks/results/{preset}/{paper}/{experiment}/plan.tsv"
    priority: 2
    resources:
        mem_mb=500,
        runtime=10,
    params:
        code=experiment_code,
        experiment=lambda wildcards: experiment(wildcards).reference,
        settings=settings,
        sweep=sweep,
        defaults=defaults,
    message:
        "{wildcards.preset}: {wildcards.paper}, {wildcards.experiment}: runs planned"
    shell:
        "unlearn pipeline plan {params.experiment} --preset {wildcards.preset}"
        " --settings {params.settings:q} --sweep {params.sweep:q} {params.defaults}"
        " --summary {input.summary} --output {output} 2>&1 | tee {log} | sed -u 1d"


rule learn:
    input:
        plan="results/{preset}/{paper}/{experiment}/plan.json",
        data="results/{preset}/data.safetensors",
    output:
        "results/{preset}/{paper}/{experiment}/{mechanism}.learned.safetensors",
    log:
        "logs/{preset}/{paper}/{experiment}/{mechanism}-learn.log",
    benchmark:
        "benchmarks/results/{preset}/{paper}/{experiment}/{mechanism}-learn.tsv"
    priority: 2
    threads: threads
    resources:
        gpu=gpu,
        mem_mb=memory,
        runtime=240,
    params:
        code=mechanism_code,
        mechanism=lambda wildcards: MECHANISM_BY_NAME[wildcards.mechanism],
    message:
        "{wildcards.preset}: {wildcards.paper}, {wildcards.experiment}: {wildcards.mechanism} learns"
    shell:
        "unlearn pipeline learn {params.mechanism} --plan {input.plan} --data {input.data}"
        " --output {output} --processes {threads} 2>&1 | tee {log} | sed -u 1d"


rule unlearn:
    input:
        plan="results/{preset}/{paper}/{experiment}/plan.json",
        data="results/{preset}/data.safetensors",
        learned=learned,
    output:
        rows="results/{preset}/{paper}/{experiment}/{mechanism}.rows.parquet",
        curves="results/{preset}/{paper}/{experiment}/{mechanism}.curves.parquet",
    log:
        "logs/{preset}/{paper}/{experiment}/{mechanism}-unlearn.log",
    benchmark:
        "benchmarks/results/{preset}/{paper}/{experiment}/{mechanism}-unlearn.tsv"
    wildcard_constraints:
        mechanism="|".join(sorted({*MECHANISM_BY_NAME} - {*REFITS})) or "$^",
    priority: 2
    threads: threads
    resources:
        gpu=gpu,
        mem_mb=memory,
        runtime=480,
    params:
        code=mechanism_code,
        mechanism=lambda wildcards: MECHANISM_BY_NAME[wildcards.mechanism],
        learned=lambda wildcards, input: flag("learned", input.learned),
    message:
        "{wildcards.preset}: {wildcards.paper}, {wildcards.experiment}: {wildcards.mechanism} answers removals"
    shell:
        "unlearn pipeline unlearn {params.mechanism} --plan {input.plan} --data {input.data} {params.learned}"
        " --rows {output.rows} --curves {output.curves} --processes {threads} 2>&1 | tee {log} | sed -u 1d"


# A mechanism that fits again with another library takes only seconds, because one model represents all trials.
use rule unlearn as refit with:
    wildcard_constraints:
        mechanism="|".join(REFITS) or "$^",


rule make:
    input:
        summary=summary,
        plans=used_plans,
        files=read_files,
    output:
        "results/{preset}/{paper}/{experiment}/rows.parquet",
    log:
        "logs/{preset}/{paper}/{experiment}/make.log",
    benchmark:
        "benchmarks/results/{preset}/{paper}/{experiment}/make.tsv"
    priority: 2
    resources:
        mem_mb=3000,
        runtime=30,
    params:
        code=experiment_code,
        experiment=lambda wildcards: experiment(wildcards).reference,
        needed=needed_settings,
        # Snakemake does not compare the result of a function that uses the output with the result of the last run.
        settings=lambda wildcards, output: settings(wildcards),
        sweep=sweep,
        defaults=defaults,
        summary=lambda wildcards, input: flag("summary", input.summary),
        plans=lambda wildcards, input: flag("plan", input.plans),
    message:
        "{wildcards.preset}: {wildcards.paper}, {wildcards.experiment}: rows computed"
    shell:
        "unlearn pipeline make {params.experiment} --preset {wildcards.preset}"
        " --settings {params.settings:q} --sweep {params.sweep:q} {params.defaults} {params.summary} {params.plans}"
        " --output {output} 2>&1 | tee {log} | sed -u 1d"


rule certify:
    input:
        plan="results/{preset}/{paper}/{experiment}/plan.json",
        rows=job_files("rows"),
    output:
        directory("results/{preset}/{paper}/{experiment}/certificates"),
    log:
        "logs/{preset}/{paper}/{experiment}/certify.log",
    benchmark:
        "benchmarks/results/{preset}/{paper}/{experiment}/certify.tsv"
    priority: 2
    resources:
        mem_mb=500,
        runtime=10,
    params:
        code=code("certificate", "reproduction.layout"),
    message:
        "{wildcards.preset}: {wildcards.paper}, {wildcards.experiment}: certificates written and verified"
    shell:
        "unlearn pipeline certify --plan {input.plan} --output {output} 2>&1 | tee {log} | sed -u 1d"


rule collect:
    input:
        lambda wildcards: [
            f"results/{wildcards.preset}/{file}"
            for file in run_rows_of(wildcards.preset)
        ],
    output:
        "results/{preset}/records.parquet",
    log:
        "logs/{preset}/collect.log",
    benchmark:
        "benchmarks/results/{preset}/collect.tsv"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        code=code("reproduction.rows"),
    message:
        "{wildcards.preset}: rows of all runs joined"
    shell:
        "unlearn pipeline collect {input} --output {output} 2>&1 | tee {log} | sed -u 1d"


rule metrics:
    input:
        records="results/{preset}/records.parquet",
    output:
        "results/{preset}/metrics.json",
    log:
        "logs/{preset}/metrics.log",
    benchmark:
        "benchmarks/results/{preset}/metrics.tsv"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        code=code("reproduction.summaries"),
    message:
        "{wildcards.preset}: metrics of every sweep point"
    shell:
        "unlearn pipeline metrics --records {input.records} --output {output} 2>&1 | tee {log} | sed -u 1d"
