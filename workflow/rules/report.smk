# Verdicts on what the paper claims, and one page that shows everything.


localrules:
    claims,
    page,


rule claims:
    input:
        data=member_files("data.json"),
        plans=member_files(*expand("plans/{experiment}.json", experiment=EXPERIMENTS)),
        records=member_files("records.parquet"),
        deletion=member_files("deletion/attacks.parquet", "deletion/risk.parquet"),
        code=[
            *PLANNING_CODE,
            *code(
                "claims/*.py",
                "claims/*.yaml",
                "deletion/advantage.py",
                "deletion/names.py",
                "results.py",
                "summaries.py",
            ),
        ],
    output:
        "results/{name}/claims.json",
    log:
        "logs/{name}/claims.log",
    benchmark:
        "benchmarks/results/{name}/claims.tsv"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        members=members,
    shell:
        "unlearn pipeline claims {params.members} --output {output} 2>&1 | tee {log}"


rule page:
    input:
        claims="results/{name}/claims.json",
        data=member_files("data.json"),
        plans=member_files(*expand("plans/{experiment}.json", experiment=EXPERIMENTS)),
        records=member_files("records.parquet"),
        parameters=member_files("parameters.html"),
        certificates=member_files(
            *expand("certificates/{experiment}", experiment=EXPERIMENTS)
        ),
        figures=member_files(
            *expand("figures/{figure}.png", figure=[*EXPERIMENTS, *BOUNDS, "deletion"])
        ),
        tables=member_files(
            "plots/accountants.csv",
            *expand("plots/table{number}.csv", number=[1, 2, 3]),
        ),
        code=[
            *PLANNING_CODE,
            *code(
                "certificate/*.py",
                "report/*.py",
                "report/templates/*",
                "results.py",
                "rounding.py",
                "summaries.py",
            ),
        ],
    output:
        "results/{name}/report.html",
    log:
        "logs/{name}/page.log",
    benchmark:
        "benchmarks/results/{name}/page.tsv"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        members=members,
    shell:
        "unlearn pipeline report {wildcards.name} {params.members} --output {output} 2>&1 | tee {log}"
