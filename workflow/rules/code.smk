# Digests of the code that jobs run, as parameters of rules: a change of the code reruns the jobs that use it.

from pathlib import Path


def code(*modules, files=()):
    """Return a digest of the modules that a rule's command runs; a change of the digest reruns the rule."""
    return digest(*(f"{PACKAGE}.{each}" for each in modules), files=tuple(files))


def data_set(name):
    """Return the data set with that name; None for a table of the user's own."""
    if name in PARAMETERS.own_data:
        return None
    return find(name, data_sets(PARAMETERS.known))


def data_code(name):
    """Return a digest of the code that fetches and prepares a data set."""
    chosen = data_set(name)
    if chosen is None:
        return code("data.tables.declared")
    return digest(
        chosen.make.__module__, f"{PACKAGE}.data.fetch", f"{PACKAGE}.data.prepared"
    )


def experiment_code(wildcards):
    """Return a digest of the code that makes an experiment's plan or rows."""
    return digest(
        module_of(experiment(wildcards).reference), f"{PACKAGE}.reproduction.rows"
    )


def mechanism_code(wildcards):
    """Return a digest of the code that runs a mechanism."""
    reference = declared.mechanism_reference(MECHANISM_BY_NAME[wildcards.mechanism])
    return digest(module_of(reference), f"{PACKAGE}.reproduction.jobs")


def papers_code():
    """Return the modules that declare all papers, for jobs that concern all of them."""
    return [
        f"{PACKAGE}.papers.all",
        *(
            module_of(each.reference)
            for paper in PARAMETERS.known
            for each in paper.experiments
        ),
    ]


def tracking_code(wildcards):
    """Return a digest of the code that declares an experiment and logs its rows."""
    return digest(
        module_of(experiment(wildcards).reference), f"{PACKAGE}.reproduction.tracking"
    )


def drawing_code(wildcards):
    """Return a digest of the code that declares and draws an experiment, or makes its table."""
    shown = experiment(wildcards)
    own = [each for each in (shown.reference, shown.draw, shown.page) if each]
    machinery = ["rows", "summaries", "tabulation"]
    if shown.draw:
        machinery.append("figures.drawing")
    return digest(
        *map(module_of, own), *(f"{PACKAGE}.reproduction.{each}" for each in machinery)
    )


def package_files(package, pattern):
    """Return the files of a package that are not modules."""
    return sorted(
        (Path(workflow.basedir) / "src" / package.replace(".", "/")).glob(pattern)
    )


def claims_code(wildcards):
    """Return a digest of the code that judges the claims, and of the claims."""
    known = PARAMETERS.known
    return digest(
        f"{PACKAGE}.reproduction.claims.findings",
        *papers_code(),
        *(each for paper in known for each in paper.measures),
        *(module_of(paper.findings) for paper in known if paper.findings),
        files=tuple(paper.claims for paper in known if paper.claims is not None),
    )


def headline_code(wildcards):
    """Return a digest of the code that counts verdicts and computes the papers' key numbers."""
    return digest(
        f"{PACKAGE}.reproduction.claims.verdicts",
        *map(module_of, key_numbers()),
    )


def page_code(wildcards):
    """Return a digest of the code that makes the page, and of its templates."""
    references = [
        reference
        for paper in PARAMETERS.papers_of(wildcards.name)
        for reference in (
            paper.headline,
            *(each.page for each in paper.experiments),
            *(each.setting for each in paper.experiments),
        )
        if reference
    ]
    return digest(
        f"{PACKAGE}.reproduction.report",
        *papers_code(),
        *map(module_of, references),
        files=tuple(package_files(f"{PACKAGE}.reproduction.report", "templates/*")),
    )
