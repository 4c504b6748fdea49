# Everything that is shown: figures with their numbers, tables, verdicts on claims, and one page with all of it.


localrules:
    draw,
    tabulate,
    claims,
    headline,
    page,
    parameter_table,


TABLES = [name for (_, name), (_, each) in EXPERIMENTS.items() if each.draw is None]
DRAWN = [name for (_, name), (_, each) in EXPERIMENTS.items() if each.draw is not None]


rule draw:
    input:
        rows=job_files("rows"),
    output:
        png=report(
            "results/{preset}/figures/{paper}/{experiment}.png",
            caption="../report/exhibit.rst",
            category="Figures",
            subcategory="{paper}",
            labels={"figure": "{experiment}", "format": "PNG"},
        ),
        pdf="results/{preset}/figures/{paper}/{experiment}.pdf",
        svg="results/{preset}/figures/{paper}/{experiment}.svg",
        numbers=report(
            "results/{preset}/plots/{paper}/{experiment}.csv",
            caption="../report/numbers.rst",
            category="Numbers",
            subcategory="{paper}",
            labels={"figure": "{experiment}", "format": "CSV"},
        ),
    log:
        "logs/{preset}/{paper}/{experiment}/draw.log",
    benchmark:
        "benchmarks/results/{preset}/{paper}/{experiment}/draw.tsv"
    wildcard_constraints:
        experiment="|".join(DRAWN) or "$^",
    priority: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        code=drawing_code,
        caption=caption,
        experiment=lambda wildcards: experiment(wildcards).reference,
        style=PARAMETERS.figures.model_dump_json(),
        rows=lambda wildcards, input: flag("rows", input.rows),
        stem=lambda wildcards, output: output.png.removesuffix(".png"),
    message:
        "{wildcards.preset}: {wildcards.paper}, {wildcards.experiment}: figure drawn"
    shell:
        "unlearn pipeline draw {params.experiment} {params.rows} --style {params.style:q}"
        " --figure {params.stem} --numbers {output.numbers} 2>&1 | tee {log} | sed -u 1d"


rule tabulate:
    input:
        rows=job_files("rows"),
    output:
        numbers=report(
            "results/{preset}/plots/{paper}/{experiment}.csv",
            caption="../report/exhibit.rst",
            category="Tables",
            subcategory="{paper}",
            labels={"table": "{experiment}", "format": "CSV"},
        ),
        page="results/{preset}/{paper}/{experiment}/table.md",
    log:
        "logs/{preset}/{paper}/{experiment}/tabulate.log",
    benchmark:
        "benchmarks/results/{preset}/{paper}/{experiment}/tabulate.tsv"
    wildcard_constraints:
        experiment="|".join(TABLES) or "$^",
    priority: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        code=drawing_code,
        caption=caption,
        experiment=lambda wildcards: experiment(wildcards).reference,
        rows=lambda wildcards, input: flag("rows", input.rows),
    message:
        "{wildcards.preset}: {wildcards.paper}, {wildcards.experiment}: table laid out"
    shell:
        "unlearn pipeline draw {params.experiment} {params.rows}"
        " --numbers {output.numbers} --page {output.page} 2>&1 | tee {log} | sed -u 1d"


rule parameter_table:
    output:
        report(
            "results/{preset}/parameters.html",
            caption="../report/parameters.rst",
            category="Parameters",
            labels={"preset": "{preset}"},
        ),
    log:
        "logs/{preset}/parameters.log",
    benchmark:
        "benchmarks/results/{preset}/parameters.tsv"
    resources:
        mem_mb=500,
        runtime=10,
    params:
        code=code("files"),
        preset=lambda wildcards: json.dumps(parameters.as_written(preset(wildcards))),
    message:
        "{wildcards.preset}: table of parameters"
    shell:
        "unlearn pipeline parameters {wildcards.preset} --values {params.preset:q} --output {output} 2>&1 | tee {log} | sed -u 1d"


rule claims:
    input:
        data=member_files(lambda member: ["data.json"]),
        plans=member_files(plans_of),
        rows=member_files(run_rows_of),
        tables=member_files(tables_of),
    output:
        claims="results/{name}/claims.json",
        findings="results/{name}/findings.json",
    log:
        "logs/{name}/claims.log",
    benchmark:
        "benchmarks/results/{name}/claims.tsv"
    priority: 2
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        code=claims_code,
        members=members,
        others=others(),
    message:
        "{wildcards.name}: a verdict on every claim, and the most important findings"
    shell:
        "unlearn pipeline claims {params.members} --output {output.claims} --findings {output.findings} {params.others} 2>&1 | tee {log} | sed -u 1d"


rule headline:
    input:
        records=f"results/{PARAMETERS.preset}/records.parquet",
        claims=f"results/{PARAMETERS.preset}/claims.json",
    output:
        HEADLINE,
    log:
        "logs/headline.log",
    benchmark:
        "benchmarks/results/headline.tsv"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        code=headline_code,
        numbers=lambda wildcards: flag("numbers", key_numbers()),
    message:
        "a dozen numbers of the active preset"
    shell:
        "unlearn pipeline headline --records {input.records} --claims {input.claims} {params.numbers}"
        " --output {output} 2>&1 | tee {log} | sed -u 1d"


rule page:
    input:
        claims="results/{name}/claims.json",
        findings="results/{name}/findings.json",
        data=member_files(lambda member: ["data.json"]),
        plans=member_files(plans_of),
        records=member_files(lambda member: ["records.parquet"]),
        tables=member_files(tables_of),
        parameters=member_files(lambda member: ["parameters.html"]),
        certificates=member_files(certificates_of),
        figures=member_files(figures_of),
        numbers=member_files(numbers_of),
    output:
        "results/{name}/report.html",
    log:
        "logs/{name}/page.log",
    benchmark:
        "benchmarks/results/{name}/page.tsv"
    priority: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        code=page_code,
        members=members,
        others=others(),
    message:
        "{wildcards.name}: report"
    shell:
        "unlearn pipeline report {wildcards.name} {params.members} --output {output} {params.others} 2>&1 | tee {log} | sed -u 1d"
