# What Langevin unlearning is compared with: retraining from scratch, and Descent-to-Delete.


rule retrain:
    input:
        plan="results/{preset}/plans/{experiment}.json",
        data="results/{preset}/data.safetensors",
        code=ENGINE_CODE,
    output:
        records="results/{preset}/records/{experiment}-retraining.parquet",
        curves="results/{preset}/curves/{experiment}-retraining.parquet",
    log:
        "logs/{preset}/retrain-{experiment}.log",
    benchmark:
        "benchmarks/results/{preset}/retrain-{experiment}.tsv"
    threads: threads
    resources:
        gpu=gpu,
        mem_mb=2000,
        runtime=240,
    shell:
        "unlearn pipeline retrain --plan {input.plan} --data {input.data}"
        " --records {output.records} --curves {output.curves} 2>&1 | tee {log}"


rule descend:
    input:
        plan="results/{preset}/plans/{experiment}.json",
        data="results/{preset}/data.safetensors",
        code=ENGINE_CODE,
    output:
        records="results/{preset}/records/{experiment}-descent-to-delete.parquet",
        curves="results/{preset}/curves/{experiment}-descent-to-delete.parquet",
    log:
        "logs/{preset}/descend-{experiment}.log",
    benchmark:
        "benchmarks/results/{preset}/descend-{experiment}.tsv"
    threads: threads
    resources:
        gpu=gpu,
        mem_mb=2000,
        runtime=240,
    shell:
        "unlearn pipeline descend --plan {input.plan} --data {input.data}"
        " --records {output.records} --curves {output.curves} 2>&1 | tee {log}"
