"""Shared vocabulary as types. The possible words are listed here, and explained in the named modules."""

from typing import Literal

Adjacency = Literal["replace", "zero-out", "remove"]
"""Adjacency relations: ways in which a removal changes the data (`accounting.core.problem`)."""
PipelineAdjacency = Literal["replace", "zero-out"]
"""Adjacency relations of the pipeline's objectives. Both relations keep the normaliser."""
Smoothness = Literal["bound", "spectral", "spectral-with-margin"]
"""The source of the smoothness constant (`accounting.core.losses`)."""
NamedDelta = Literal["auto", "1/n"]
Delta = float | NamedDelta
"""Delta of a target: a number, or a rule that uses the number of records (`accounting.core.checks.required_delta`)."""
DELTA_HELP = "auto (the smaller of 1e-6 and 1 / (10 n)), 1/n, or a number strictly between 0 and 1"
"""Help text for the command line that lists the possible values of delta."""
DType = Literal["float32", "float64"]
"""Types of the numbers in weights and rows, from the coarsest to the finest."""
Guarantee = Literal["upper bound", "exact", "as published", "heuristic", "none"]
"""Kinds of guarantee. `as published` applies a theorem outside its statement; with `none` there is no epsilon."""
NoiseSource = Literal["seed", "system entropy"]
"""The source of the noise: a seed that can be repeated, or the operating system's entropy, which is not kept."""
ClassesFrom = Literal["declaration", "records"]
"""The source of the list of classes: a declaration, or the labels of the records."""

Reading = Literal["none", "pass", "scheduled", "unscheduled", "addition"]
"""The way in which the remaining records were read for a version that is compared with an exact refit. ``none``: not at
all. ``pass``: in a pass that corrects the weights. Otherwise the version was learned anew: at a planned moment
(``scheduled``), earlier (``unscheduled``), or because records were added (``addition``)."""
ExactMechanism = Literal["subsample-gd", "noisy-sgd", "accelerated-noisy-sgd", "quantized-sgd"]
"""Methods of descent that unlearn exactly, named after the source of their stability (`mechanisms.exact.plan`)."""
Relation = Literal["replace-one", "add-remove"]
"""Neighbouring relations of data sets, for an epsilon of differential privacy (`accounting.private.releases`)."""

NetworkLoss = Literal["cross-entropy", "binary-cross-entropy", "squared"]
"""Losses whose derivatives are bounded over boxes of parameters (`engine.intervals.losses`)."""
Clipping = Literal["none", "clamp", "l2"]
"""How single gradients are clipped: not at all, entry by entry, or by their Euclidean norm."""
IntervalProduct = Literal["exact", "rump"]
"""How products of intervals are bounded: exactly, if a factor has a known sign, or by midpoints and radii."""
Differences = Literal["updated", "relaxed", "joint"]
"""How differences of logits are bounded. ``joint`` uses the last layer. ``relaxed`` adds lines through all hidden
layers. ``updated`` also adds the last update of training."""
Changes = Literal["removals", "additions and removals", "substitutions", "additions or removals"]
"""The changes that may happen to each batch of a neighbouring data set (`engine.abstract_training.neighbourhoods`)."""
