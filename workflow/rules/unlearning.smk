# Unlearning: every request of an experiment, in sequence or as a batch.


rule unlearn:
    input:
        plan="results/{preset}/plans/{experiment}.json",
        data="results/{preset}/data.safetensors",
        learned="results/{preset}/models/{experiment}.safetensors",
        code=ENGINE_CODE,
    output:
        records="results/{preset}/records/{experiment}-langevin.parquet",
        curves="results/{preset}/curves/{experiment}-langevin.parquet",
    log:
        "logs/{preset}/unlearn-{experiment}.log",
    benchmark:
        "benchmarks/results/{preset}/unlearn-{experiment}.tsv"
    threads: threads
    resources:
        gpu=gpu,
        mem_mb=2000,
        runtime=480,
    shell:
        "unlearn pipeline unlearn --plan {input.plan} --data {input.data} --learned {input.learned}"
        " --records {output.records} --curves {output.curves} 2>&1 | tee {log}"
