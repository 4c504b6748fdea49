"""The declarations of the experiments on exact unlearning; the code that they run is imported only when they run."""

import pandas as pd
import pyarrow as pa

from certified_unlearning.papers.tv_stability.sweeps import Deletions, Edits, ExactRates
from certified_unlearning.reproduction.experiment import Caption, Experiment, Inputs
from certified_unlearning.reproduction.rows import column, columns

_HERE = "certified_unlearning.papers.tv_stability"

DELETION_ROWS = pa.schema(
    [
        *columns("text", "point", "experiment", "data", "system"),
        column("guarantee", "text", "constant"),
        column("epsilon", "number", "point"),
        *columns("whole", "constant", "n", "d"),
        *columns("whole", "point", "steps", "batch_size"),
        *columns("number", "point", "step_size", "noise", "radius"),
        *columns("whole", "point", "shards", "slices"),
        *columns("whole", "constant", "trials", "seed"),
        *columns(
            "number", "measure", "validation_accuracy", "accuracy", "accuracy_error", "gradients", "gradients_error"
        ),
        column("learning_gradients", "number", "constant"),
        column("recompute_probability", "number", "measure"),
        column("recompute_bound", "number", "constant"),
        column("seconds", "number", "cost"),
    ]
)
"""The columns of the table, which has one row for each data set, system and setting of its constants.

``gradients`` is the cost of deleting one record, as a mean over records. It counts single-record gradients, including
those that tests need. Errors are standard errors of means over trials. ``recompute_bound`` is a bound on
``recompute_probability`` that holds for every data set. For mini-batches, the bound is ``1 - (1 - m/n)^T``; for noisy
sums, it is the bound for gradients of norm at most 1, or at most 2 for projected rows. ``validation_accuracy`` is
measured in separate runs, which learn five sixths of the training records and are tested on the last sixth. Settings
are chosen by validation accuracy. ``noise`` is sigma (of a mean gradient, or of a sum of gradients), or the spacing of
the grid; 0 if there is no noise. One pass has as many steps as there are records; ``radius`` is the radius of
Frank-Wolfe's ball. ``epsilon`` is 0 for exact systems. ``seconds`` is the time that all trials of the row took.
"""

EDIT_ROWS = pa.schema(
    [
        column("experiment", "text", "point"),
        column("data", "text", "constant"),
        column("sigma", "number", "point"),
        *columns("whole", "constant", "n", "d", "edits", "steps", "batch_size"),
        column("step_size", "number", "constant"),
        *columns("whole", "constant", "trials", "seed"),
        *columns(
            "number", "measure", "learned_accuracy", "accuracy", "accuracy_std", "unstable_edits", "unstable_edits_std"
        ),
        column("expected_without_noise", "number", "constant"),
        *columns("number", "measure", "iterations_run_again", "iterations_run_again_std", "gradients"),
        *columns("number", "cost", "seconds", "learning_seconds"),
    ]
)
"""The columns of the table, which has one row for each sigma.

The values are means and standard deviations over trials, measured after the whole stream.

``unstable_edits`` counts the edits that caused a recomputation, and ``iterations_run_again`` counts the recomputed
iterations. ``expected_without_noise`` is the sum of ``1 - (1 - m/n)^T`` over the stream. ``seconds`` is the time of all
edits of all trials, and ``learning_seconds`` is the time of learning.
"""


RATE_ROWS = pa.schema(
    [
        *columns("text", "point", "experiment", "part", "method"),
        *columns("whole", "point", "n", "features"),
        column("rho", "number", "point"),
        column("trial", "whole", "trial"),
        *columns("whole", "constant", "seed", "steps"),
        column("rate", "number", "constant"),
        column("error", "number", "measure"),
        column("seconds", "number", "cost"),
    ]
)
"""The columns of the table, which has one row for each part, method, setting and trial.

``error`` is the excess empirical risk for chapter 4's learners except Theorem 48's, and the excess population risk for
all other learners. ``rate`` is the theorem's rate for the excess risk, without constants and logarithms. ``seconds`` is
the time of the setting divided by the number of its trials.
"""


def make_deletions(inputs: Inputs) -> pd.DataFrame:
    """Measure every system on its grid. Raises the same errors as `deletions.deletions_table`."""
    from certified_unlearning.papers.tv_stability.deletions import deletions_table

    return deletions_table(inputs.sweep)


def make_edits(inputs: Inputs) -> pd.DataFrame:
    """Run the stream of edits for every sigma. Raises the same errors as `edits.edits_table`."""
    from certified_unlearning.papers.tv_stability.edits import edits_table

    return edits_table(inputs.sweep)


def make_rates(inputs: Inputs) -> pd.DataFrame:
    """Run every learner at the parameters of its theorem. Raises the same errors as `rates.table.rates_table`."""
    from certified_unlearning.papers.tv_stability.rates.table import rates_table

    return rates_table(inputs.sweep)


DELETIONS = Experiment(
    name="deletions",
    source="",
    sweep=Deletions,
    rows=DELETION_ROWS,
    make=make_deletions,
    needs_data=False,
    draw=f"{_HERE}.figures:draw_deletions",
    caption=Caption(
        "Test accuracy against the gradients of a deletion: exact systems, retraining, and Langevin unlearning",
        "Each system runs on a grid of its constants. The figure shows a setting if it is better on validation records "
        "than all cheaper settings of its system. Test accuracy and costs are from other runs. Bars are two standard "
        "errors of the mean over runs. Costs count single-record gradients, including those that tests need, and are "
        "means over the choice of the deleted record. Retraining is plain SGD on the same grid. Left: mini-batches. "
        "Middle: noisy sums, over all records or in one pass. Right: the systems for comparison. Settings further up "
        "and to the left are better. Langevin unlearning is not exact: its points have epsilon above 0. The figure "
        "does not depend on the preset’s data set.",
        "Lines of accuracy against gradients, logarithmic, in three panels: noisy and quantized SGD are furthest to "
        "the left, then sub-sample-GD; dual averaging needs about a sixth of a pass, and full batches and Langevin "
        "unlearning need far more than one pass.",
    ),
)
EDITS = Experiment(
    name="edits",
    source="Figs. C-2, C-3",
    sweep=Edits,
    rows=EDIT_ROWS,
    make=make_edits,
    needs_data=False,
    tracked=True,
    draw=f"{_HERE}.figures:draw_edits",
    caption=Caption(
        "A stream of deletions and insertions: edits that cause a recomputation, and test accuracy, against the noise",
        "Softmax or logistic regression by noisy mini-batch SGD is edited exactly, and the edits come in random order. "
        "Left: the number of edits that recomputed a part of the run, and the recomputed iterations, in units of a "
        "whole run. Right: test accuracy after the stream. The dotted lines on the left are the expected values "
        "without noise. Bars are two standard deviations over runs. The figure does not depend on the preset’s data "
        "set.",
        "Both counts fall as sigma grows, and the count of iterations falls faster; accuracy falls slowly at first, "
        "then quickly.",
    ),
)
EXACT_RATES = Experiment(
    name="exact_rates",
    source="Theorems 22, 26 to 29, 44, 45, 48",
    sweep=ExactRates,
    rows=RATE_ROWS,
    make=make_rates,
    needs_data=False,
    draw=f"{_HERE}.rates.figure:draw_rates",
    caption=Caption(
        "Excess risk of exact learners at their theorems’ parameters, with fitted slopes",
        "The records are synthetic, with one nonzero entry each, so the best models are known. The upper panels show "
        "learners on mini-batches: the excess empirical risk, or the excess population risk for Theorem 48. The lower "
        "panels show the excess population risk of learners in one pass over the records. The noise of a pass is so "
        "large that each edit causes a recomputation with probability at most ρ. The horizontal axes are the number of "
        "records, ρ, or the number of columns; all but ten columns are zero. Stable noisy SGD learns from only one "
        "sixteenth of the records. Points are means over trials, and bars are 95 % bootstrap intervals. The legends "
        "show slopes fitted on logarithmic axes, with their intervals in parentheses and the slopes of the theorems in "
        "square brackets. The figure does not depend on the preset’s data set.",
        "The lines fall as the number of records or ρ grows, with slopes that are about as steep as stated, or "
        "steeper. The lines rise as the number of columns grows, with slopes that are as stated, or smaller.",
    ),
)
