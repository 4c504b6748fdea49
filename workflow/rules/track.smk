# MLflow: the store is created once, before jobs run in parallel. Then each experiment is logged by one job. Both
# rules run only where Snakemake runs, because a SQLite file loses runs silently if several nodes write to it.


localrules:
    track_store,
    track,


rule track_store:
    output:
        "results/{preset}/tracking/store.json",
    log:
        "logs/{preset}/track-store.log",
    benchmark:
        "benchmarks/results/{preset}/track-store.tsv"
    params:
        code=code("reproduction.tracking.store"),
        # A different store gives different results. The address itself is not used, because it may contain a password.
        store=content_key(os.environ.get("MLFLOW_TRACKING_URI", "")),
        figures=figure_views,
    message:
        "{wildcards.preset}: MLflow store opened"
    shell:
        "unlearn pipeline track-store {wildcards.preset} {params.figures} --output {output} 2>&1 | tee {log} | sed -u 1d"


rule track:
    input:
        store="results/{preset}/tracking/store.json",
        rows=job_files("rows"),
        files=tracked_files,
    output:
        "results/{preset}/tracking/{paper}-{experiment}.json",
    log:
        "logs/{preset}/{paper}/{experiment}/track.log",
    benchmark:
        "benchmarks/results/{preset}/{paper}/{experiment}/track.tsv"
    resources:
        mem_mb=1500,
        runtime=10,
    params:
        code=tracking_code,
        experiment=lambda wildcards: experiment(wildcards).reference,
    message:
        "{wildcards.preset}: {wildcards.paper}, {wildcards.experiment}: runs logged to MLflow"
    shell:
        "unlearn pipeline track {params.experiment} --paper {wildcards.paper} --preset {wildcards.preset}"
        " --store {input.store} --output {output} 2>&1 | tee {log} | sed -u 1d"
