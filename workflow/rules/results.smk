# All records in one table, the metrics that DVC compares, the certificates.


rule collect:
    input:
        records=job_tables("records", EXPERIMENTS),
        code=code("results.py"),
    output:
        "results/{preset}/records.parquet",
    log:
        "logs/{preset}/collect.log",
    benchmark:
        "benchmarks/results/{preset}/collect.tsv"
    resources:
        mem_mb=1000,
        runtime=10,
    shell:
        "unlearn pipeline collect {input.records} --output {output} 2>&1 | tee {log}"


rule metrics:
    input:
        records="results/{preset}/records.parquet",
        code=code("results.py", "summaries.py"),
    output:
        "results/{preset}/metrics.json",
    log:
        "logs/{preset}/metrics.log",
    benchmark:
        "benchmarks/results/{preset}/metrics.tsv"
    resources:
        mem_mb=1000,
        runtime=10,
    shell:
        "unlearn pipeline metrics --records {input.records} --output {output} 2>&1 | tee {log}"


rule certify:
    input:
        plan="results/{preset}/plans/{experiment}.json",
        records=job_tables("records"),
        code=[*PLANNING_CODE, *code("certificate/*.py")],
    output:
        directory("results/{preset}/certificates/{experiment}"),
    log:
        "logs/{preset}/certify-{experiment}.log",
    benchmark:
        "benchmarks/results/{preset}/certify-{experiment}.tsv"
    resources:
        mem_mb=500,
        runtime=10,
    shell:
        "unlearn pipeline certify --plan {input.plan} --output {output} 2>&1 | tee {log}"
