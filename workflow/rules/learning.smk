# Learning: one job an experiment, all its noise scales and trials at once.


rule learn:
    input:
        plan="results/{preset}/plans/{experiment}.json",
        data="results/{preset}/data.safetensors",
        code=ENGINE_CODE,
    output:
        "results/{preset}/models/{experiment}.safetensors",
    log:
        "logs/{preset}/learn-{experiment}.log",
    benchmark:
        "benchmarks/results/{preset}/learn-{experiment}.tsv"
    threads: threads
    resources:
        gpu=gpu,
        mem_mb=2000,
        runtime=240,
    shell:
        "unlearn pipeline learn --plan {input.plan} --data {input.data} --output {output} 2>&1 | tee {log}"
