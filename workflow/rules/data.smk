# Raw files, fetched and checked, or a table of the user's own; then labelled rows of norm at most 1.


# A node of a cluster may have no access to the internet, and reading and scaling rows takes only seconds.
localrules:
    fetch,
    prepare,


WITH_FEATURES = [
    name for name, each in PARAMETERS.presets.items() if each.settings.features
]


rule fetch:
    output:
        manifest="data/manifests/{dataset}.json",
    log:
        "logs/fetch/{dataset}.log",
    benchmark:
        "benchmarks/results/fetch/{dataset}.tsv"
    priority: 2
    retries: 2
    resources:
        mem_mb=1000,
        runtime=60,
    params:
        code=lambda wildcards: data_code(wildcards.dataset),
        others=lambda wildcards: others_of(wildcards.dataset),
    message:
        "The raw files of {wildcards.dataset}: found or fetched, and checked"
    shell:
        "unlearn data fetch {wildcards.dataset} --manifest {output.manifest} {params.others} 2>&1 | tee {log} | sed -u 1d"


rule prepare:
    input:
        source=data_source,
    output:
        data="results/{preset}/data.safetensors",
        summary="results/{preset}/data.json",
    log:
        "logs/{preset}/prepare.log",
    benchmark:
        "benchmarks/results/{preset}/prepare.tsv"
    wildcard_constraints:
        preset="|".join(sorted({*PARAMETERS.presets} - {*WITH_FEATURES})) or "$^",
    priority: 2
    resources:
        mem_mb=2500,
        runtime=120,
    params:
        code=lambda wildcards: data_code(preset(wildcards).settings.dataset),
        dataset=lambda wildcards: preset(wildcards).settings.dataset,
        seed=lambda wildcards: preset(wildcards).settings.seed,
        features=features,
        table=table,
        others=lambda wildcards: others_of(preset(wildcards).settings.dataset),
    message:
        "{wildcards.preset}: data set {params.dataset}, rows of norm at most 1, split"
    shell:
        "unlearn data prepare {params.dataset} {params.features} {params.table} --seed {params.seed}"
        " --output {output.data} --summary {output.summary} {params.others} 2>&1 | tee {log} | sed -u 1d"


# Computing features of images takes minutes, or an hour with a network.
use rule prepare as extract with:
    wildcard_constraints:
        preset="|".join(WITH_FEATURES) or "$^",
