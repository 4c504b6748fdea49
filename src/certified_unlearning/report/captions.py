"""What the page says of each figure and table, in the order in which they are shown."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Caption:
    """The words of one figure.

    Attributes:
        source: Where the papers have it.
        title: What it shows, in a line.
        text: How to read it.
        description: What one would see, for those who cannot.
        drawn_by: The module that draws it, under ``src/certified_unlearning/figures``.
        rules: The workflow's rules that make it, from its numbers to its file.
        sweep: What its numbers are read from, under the preset's results.
    """

    source: str
    title: str
    text: str
    description: str
    drawn_by: str
    rules: str
    sweep: str


_PAPER = "Langevin unlearning"
_DYNAMICS = "Differential Privacy Dynamics"
_SPREAD = (
    "Lines: mean over trials. Shaded: one sample standard deviation over trials either way, within [0, 1]. All trials "
    "share one split and the same removed records; noiseless retraining has one value."
)
_SIMULATED = "learn, unlearn, retrain, figure"
_COMPARED = "learn, unlearn, retrain, descend, figure"


def _simulated(name: str, module: str, rules: str, source: str, title: str, text: str, description: str) -> Caption:
    return Caption(source, title, text, description, module, rules, f"records/{name}-*.parquet")


CAPTIONS = {
    "fig3a": _simulated(
        "fig3a",
        "fig3a.py",
        _COMPARED,
        f"{_PAPER}, Fig. 3a",
        "Test accuracy after one record was removed, against the target epsilon",
        "Langevin unlearning takes the stated number of steps K with the least noise that meets the target, by each "
        "accountant’s reckoning: lsi is the paper’s, lsi-tight the same without slack, shifted is exact on quadratic "
        "losses and so needs the least noise. Descent-to-Delete takes I steps from its secret, noiseless state and "
        "publishes with the noise that its Theorem 9 asks for (printed, applied to replacement as the paper does) or "
        "with the noise that its distances need (tightened). The broad pale lines are retraining with each "
        "accountant’s noise, drawn under Langevin unlearning because the two coincide; the thin black line is "
        f"noiseless retraining; the tightest Langevin line is repeated beside Descent-to-Delete. {_SPREAD} The secret "
        "states of Descent-to-Delete are one learning run with independent publications.",
        "Three panels of lines, test accuracy against target epsilon: Langevin unlearning by each accountant, "
        "Descent-to-Delete as printed, and Descent-to-Delete tightened, each beside retraining.",
    ),
    "fig3b": _simulated(
        "fig3b",
        "fig3b.py",
        _COMPARED,
        f"{_PAPER}, Fig. 3b",
        "Accumulated unlearning steps, and accuracy, while records are removed request by request",
        "All at one epsilon. Langevin unlearning takes S records a request, with the least number of steps that each "
        "accountant’s sequential analysis allows; Descent-to-Delete without secret state takes one record a request, "
        "with the steps of its Theorem 28 (printed) or, at the same noise, with the least that an exact reckoning "
        "allows against a retrained model that is published and continued at the same times (tightened). The "
        "retraining levels were trained once, after all removals. Step axis: linear from 0 to 1, logarithmic above. "
        f"{_SPREAD}",
        "Left, accumulated steps against records removed, rising for every method; right, test accuracy against "
        "records removed, one small panel for each method.",
    ),
    "smoothness": Caption(
        f"{_PAPER}, Fig. 3b",
        "Unlearning steps of a stream of requests under each smoothness rule",
        "The same requests, planned with L from the bound that holds for every data set (1/4 + lambda; more than two "
        "classes: 1 + lambda), from the spectrum of this data set, and from the spectrum with a margin for the records "
        "that are removed. The spectral L without margin gives the step counts that the paper prints; it is no "
        "guarantee, because removals may raise the spectrum. The axis of steps is linear, as in the paper. Nothing is "
        "simulated.",
        "One panel for each smoothness rule, with lines of accumulated unlearning steps against records removed.",
        "smoothness.py",
        "smoothness, bound_figure",
        "bounds/smoothness.parquet",
    ),
    "fig3c": _simulated(
        "fig3c",
        "fig3c.py",
        _SIMULATED,
        f"{_PAPER}, Fig. 3c",
        "A group of records removed at once, for several noise scales sigma",
        "At one epsilon: the least number of unlearning steps K by each accountant, the epsilon before any unlearning "
        f"step at the same delta, and test accuracy after unlearning and after retraining. {_SPREAD}",
        "Panels against sigma: unlearning steps and initial epsilon fall as sigma grows, and so does test accuracy.",
    ),
    "fig4": _simulated(
        "fig4",
        "fig4.py",
        _SIMULATED,
        f"{_PAPER}, Fig. 4",
        "The least number of unlearning steps K by each accountant, against the target epsilon",
        "For groups of S records removed at once, with the test accuracy after unlearning. Retraining (broad grey: "
        "with noise) does not depend on epsilon, so it is a level. Step axis: linear from 0 to 1, logarithmic above. "
        f"{_SPREAD}",
        "Left, unlearning steps against target epsilon, falling for every group size and accountant; right, test "
        "accuracy against target epsilon, nearly level.",
    ),
    "fig5a": _simulated(
        "fig5a",
        "fig5a.py",
        _SIMULATED,
        f"{_PAPER}, Fig. 5a",
        "Test accuracy against the number of records removed at once",
        "At one noise scale, with the least number of unlearning steps that meets the target epsilon by each "
        "accountant; one panel for each epsilon. Retraining does not depend on epsilon and is the same in all panels. "
        f"{_SPREAD}",
        "Lines of test accuracy against records removed at once, by each accountant, beside retraining.",
    ),
    "recuperation": Caption(
        "Not in the papers",
        "Privacy recuperation: epsilon against unlearning steps, by every accountant",
        "For the same noise and the same records removed at once. All are upper bounds against retraining; exact on "
        "quadratics is the true value for quadratic losses that differ as much as allowed, so no accountant can go "
        "below it without further assumptions. The epsilon axis ends at 0.008; smaller values leave the panel at the "
        "bottom. Nothing is simulated.",
        "Falling lines of epsilon against unlearning steps; lsi is the slowest, shifted meets the exact value.",
        "recuperation.py",
        "recuperation, bound_figure",
        "bounds/recuperation.parquet",
    ),
    "dynamics1": Caption(
        f"{_DYNAMICS}, Fig. 1",
        "Rényi divergence of noisy gradient descent against its steps, when only the last iterate is published",
        "Colour: the order alpha; marker: the strong convexity lambda. Solid: Corollary 1, which saturates; dashed: "
        "composition, which grows with every step. Depends on no data set.",
        "Solid lines that level off, and dashed straight lines that do not, against steps.",
        "dynamics.py",
        "dynamics, bound_figure",
        "bounds/dynamics1.parquet",
    ),
    "dynamics2": Caption(
        f"{_DYNAMICS}, Fig. 2",
        "Upper and lower bounds of Rényi divergence on quadratic losses, against steps",
        "Curvature 1. The upper bound (Corollary 2), the lower bound (Theorem 3), composition (long dashes), and the "
        "exact divergence (dotted) between them; one panel for each order alpha. Depends on no data set.",
        "Three panels against steps: the exact divergence lies between a lower and an upper bound that level off.",
        "dynamics.py",
        "dynamics, bound_figure",
        "bounds/dynamics2.parquet",
    ),
    "deletion": Caption(
        "Forget Unlearning, Section 3, Theorems 3.1 to 4.5",
        "What leaks to whom: the advantage of attacks on a deleted record, by mechanism",
        "The advantage in telling which of two values a deleted record had, from releases after its deletion: how much "
        "more often the attack says so under the one than under the other, over the stated number of independent "
        "interactions each. In small print its exact 95 % confidence interval (two Clopper-Pearson intervals, "
        "Bonferroni). A triangle: significantly more than the certificate that the mechanism is published with "
        "promises (those of mechanisms that learn by gradient descent are for requests fixed in advance, Langevin "
        "unlearning’s by shifted interpolation). Empty: the attack does not apply. Mechanisms that learn by gradient "
        "descent do so on linear losses of one coordinate, with releases of one variance. Depends on no data "
        "set.",
        "A matrix of mechanisms by attacks: nearly everything leaks where requests depend on what was published, next "
        "to nothing where they are fixed, and nothing from the constant model.",
        "deletion.py",
        "deletion, deletion_figure",
        "deletion/attacks.parquet",
    ),
}
"""Figure -> its words."""

PAPER_NUMBERS = {("fig3a", "adult"): f"{_PAPER}, Fig. 5b"}
"""(Figure, data set) -> where the papers have it, where that depends on the data set."""

TABLES = {
    "table1": "Table 1: constants, by the rule for the smoothness L",
    "table2": "Table 2: noise of Descent-to-Delete with secret state, at each epsilon",
    "table3": "Table 3: least sigma of Langevin unlearning, at each epsilon",
}
"""Table of the paper -> what it holds."""


def caption_of(name: str) -> Caption:
    """Return the words of a figure; one that this page does not know is shown under its file's name."""
    unknown = Caption("Not in the papers", name, "No caption has been written for it.", name, "?", "figure", "records")
    return CAPTIONS.get(name, unknown)
