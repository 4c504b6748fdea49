# MLflow: the store is made once, before jobs fan out; each experiment is then logged in one go.


localrules:
    track_store,


rule track_store:
    input:
        code=TRACKING_CODE,
    output:
        "results/{preset}/tracking/store.json",
    log:
        "logs/{preset}/track-store.log",
    benchmark:
        "benchmarks/results/{preset}/track-store.tsv"
    params:
        # Another store is another result; the address itself may hold a password.
        store=content_key(os.environ.get("MLFLOW_TRACKING_URI", "")),
    shell:
        "unlearn pipeline track-store {wildcards.preset} --output {output} 2>&1 | tee {log}"


rule track:
    input:
        store="results/{preset}/tracking/store.json",
        plan="results/{preset}/plans/{experiment}.json",
        records=job_tables("records"),
        curves=job_tables("curves"),
        certificates="results/{preset}/certificates/{experiment}",
        figure="results/{preset}/figures/{experiment}.png",
        code=TRACKING_CODE,
    output:
        "results/{preset}/tracking/{experiment}.json",
    log:
        "logs/{preset}/track-{experiment}.log",
    benchmark:
        "benchmarks/results/{preset}/track-{experiment}.tsv"
    resources:
        mem_mb=1500,
        runtime=10,
    shell:
        "unlearn pipeline track {wildcards.experiment} --results results/{wildcards.preset}"
        " --store {input.store} --output {output} 2>&1 | tee {log}"
