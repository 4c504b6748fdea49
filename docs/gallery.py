"""Write the gallery, the page of the examples, and the documents' pictures: `make pictures`.

The gallery (`gallery.md`) is written from the captions that experiments declare, and its pictures are drawn from the
results of the preset `digits`. The code of the tutorial and of the examples draws their pictures, and the page of the
examples is written from the examples' docstrings. All pages and pictures are committed, because many readers see the
documents without building them. The pictures are SVG files of about ten kilobytes each.
"""

import ast
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import chdir, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from tests.docs.code_blocks import run_page

from certified_unlearning.files import write_text
from certified_unlearning.papers import parameters
from certified_unlearning.reproduction import declared
from certified_unlearning.reproduction.experiment import Experiment
from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures.drawing import shown
from certified_unlearning.reproduction.figures.style import theme
from certified_unlearning.reproduction.layout import Layout
from certified_unlearning.reproduction.paper import Paper
from certified_unlearning.reproduction.rows import concatenate

PRESET = "digits"
DOCS = Path(__file__).parent
_HEAD = f"""# Gallery

This page shows every figure of the pipeline, as the preset `{PRESET}` draws it. Below each figure is the command that
makes the figure and everything that it needs. `make reproduce` makes all figures. For another data set, choose another
[preset](howto/presets.md). The same captions are in `results/<preset>/report.html`, together with files of each
figure and of the numbers that it shows.

A line is labelled with the name of its bound and, in brackets, the [accountant](accountants.md): *paper’s bound
(lsi)*, *our bound (shifted)*, and for Descent-to-Delete *its theorem (printed)*. ε and δ are the numbers of the
guarantee. σ is the scale of the noise, and S is the number of records of a request. K is the number of unlearning steps
of Langevin unlearning, and I is the number of unlearning steps of Descent-to-Delete. X1 to X16 are parts of the
experiments on private learning.

The preset `{PRESET}` has data and regularisation that differ from those of the papers. [Fig. 3a on
MNIST](howto/langevin-fig3a.md) is a figure with the paper's own data and constants.

<!-- Written by gallery.py, as the pictures are: `make pictures`. -->
"""


EXAMPLES = (
    "remove_customers",
    "cost_of_a_request",
    "three_classes",
    "exact_removals",
    "audit_warm_start",
    "deletions_covered",
)
"""The examples in the order of their page, which is the order in which a newcomer needs them."""
_EXAMPLES_HEAD = """# Examples

Each example is a program of about fifty lines that draws one picture. It needs no network, and takes a few seconds.
Its data come with scikit-learn, or are made in the program. To run an example, install the drawing libraries with `pip
install ".[workflow]"` in a clone, and call, for example, `python docs/examples/remove_customers.py`. The picture is
written to the current directory. Some models have a `random_state`, so that the picture can be repeated. Leave it out
of a model that you publish. Two examples compare processor times, which differ a little from machine to machine.

<!-- Written by gallery.py, as the pictures are: `make pictures`. -->
"""


def drawn(papers: Sequence[Paper]) -> Iterator[tuple[Paper, Experiment]]:
    """Yield the experiments that have a figure, with their papers."""
    for paper in papers:
        for experiment in paper.experiments:
            if experiment.shown and experiment.draw is not None:
                yield paper, experiment


def picture(paper: Paper, experiment: Experiment) -> str:
    """Return the path of a figure's picture in the gallery, relative to the documents."""
    return f"pictures/{paper.name}-{experiment.name}.svg"


def page(papers: Sequence[Paper]) -> str:
    """Return the gallery as Markdown: each figure with its caption and its command, paper after paper."""
    parts, last = [_HEAD], None
    for paper, each in drawn(papers):
        if paper is not last:
            parts.append(f"## {paper.title}\n")
            last = paper
        target = f"results/{PRESET}/figures/{paper.name}/{each.name}.png"
        parts.append(
            f"### {each.title}\n\n"
            f"![{each.caption.description}]({picture(paper, each)})\n\n"
            f"{each.caption.text}\n\n"
            f"```sh\nsnakemake --cores all {target} --config preset={PRESET}\n```\n"
        )
    return "\n".join(parts)


def draw(paper: Paper, experiment: Experiment, style: FigureStyle, path: Path) -> None:
    """Draw a figure from the preset's rows as SVG; the same rows give the same bytes.

    Raises:
        DataError: The results have no rows for this figure.
    """
    layout = Layout(Path("results"), PRESET)
    files = [layout.run_rows(paper.name, experiment.name, each) for each in experiment.mechanisms]
    rows = concatenate(files or [layout.rows(paper.name, experiment.name)], experiment.rows)
    save(declared.function(experiment.draw or "")(shown(experiment, rows), style), style, path)


def draw_tutorial(directory: Path) -> None:
    """Run the tutorial, and keep the pictures that it saves as ``tutorial-<name>.svg``."""
    with TemporaryDirectory() as scratch, chdir(scratch), mpl.rc_context(_LETTERS):
        run_page(DOCS / "tutorial.md", Path(scratch))
        for saved in sorted(Path(scratch).glob("*.svg")):
            write_text(directory / f"tutorial-{saved.name}", slim(saved.read_text(encoding="utf-8")))


def example(name: str) -> Path:
    """Return the program of an example."""
    return DOCS / "examples" / f"{name}.py"


def examples_page() -> str:
    """Return the page of the examples as Markdown: each with its title, its sentences, its picture and its code."""
    parts = [_EXAMPLES_HEAD]
    for name in EXAMPLES:
        words = ast.get_docstring(ast.parse(example(name).read_text(encoding="utf-8"))) or ""
        title, _, text = words.partition("\n\n")
        title = title.removesuffix(".")
        parts.append(
            f"## {title}\n\n{text}\n\n![{title}](../pictures/examples/{name}.svg)\n\n"
            f"The program is [{name}.py]({name}.py):\n\n```{{literalinclude}} {name}.py\n:language: python\n```\n"
        )
    return "\n".join(parts)


def run_example(name: str, code: str, directory: Path) -> str:
    """Run an example in a scratch directory, and keep the picture that it saves.

    Args:
        name: Name of the example.
        code: Code of the example. Tests pass code that is changed to run faster.
        directory: Directory of the picture.

    Returns:
        The output of the example.
    """
    printed = io.StringIO()
    with TemporaryDirectory() as scratch, chdir(scratch), mpl.rc_context(_LETTERS), redirect_stdout(printed):
        exec(compile(code, str(example(name)), "exec"), {"__name__": "__main__"})
        plt.close("all")
        written = Path(f"{name}.svg").read_text(encoding="utf-8")
    write_text(directory / f"{name}.svg", slim(written))
    return printed.getvalue()


def save(figure: Figure, style: FigureStyle, path: Path) -> None:
    """Write a figure as a small SVG."""
    written = io.StringIO()
    with theme(style), mpl.rc_context(_LETTERS):
        figure.savefig(written, format="svg")
    write_text(path, slim(written.getvalue()))


_LETTERS = {"svg.hashsalt": "certified-unlearning", "svg.fonttype": "none"}
"""Text stays text, so files are small and searchable, and git compares them by lines. Ids of parts are not random."""


def slim(svg: str) -> str:
    """Return a figure without its date, with each style written only one time, and coordinates with two decimals.

    Nobody can see a hundredth of a point. A reader without DejaVu Sans sees Verdana, whose letters are as wide.
    """
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = svg.replace("font-family: 'DejaVu Sans';", "font-family: 'DejaVu Sans', Verdana, sans-serif;")
    styles = list(dict.fromkeys(re.findall(r' style="([^"]*)"', svg)))
    svg = re.sub(r' style="([^"]*)"', lambda found: f' class="s{styles.index(found[1])}"', svg)
    svg = re.sub(r"<[^>]*>", lambda tag: re.sub(r"-?\d+\.\d{3,}", _rounded, tag[0]), svg)
    classes = "\n".join(f".s{number} {{{each}}}" for number, each in enumerate(styles))
    return re.sub(r"\s*\n\s*", "\n", svg.replace("</style>", f"\n{classes}\n</style>", 1))


def _rounded(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def draw_examples() -> None:
    """Write the page of the examples and their pictures; no result of a preset is needed."""
    write_text(DOCS / "examples" / "index.md", examples_page())
    for name in EXAMPLES:
        print(f"{name}\n{run_example(name, example(name).read_text(encoding='utf-8'), DOCS / 'pictures' / 'examples')}")


def main() -> None:
    """Write the page and the pictures."""
    known = parameters.load()
    for paper, experiment in drawn(known.known):
        path = DOCS / picture(paper, experiment)
        draw(paper, experiment, known.figures, path)
        print(f"{path.relative_to(DOCS.parent)}: {path.stat().st_size / 1000:.0f} kB")
    write_text(DOCS / "gallery.md", page(known.known))
    draw_tutorial(DOCS / "pictures")
    draw_examples()


if __name__ == "__main__":
    main()
