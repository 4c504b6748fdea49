"""Shared vocabulary as types: the possible words are listed here and explained where they are used."""

from typing import Literal

Adjacency = Literal["replace", "zero-out", "remove"]
"""Adjacency relations, by the data after a removal (`accounting.core.problem`)."""
PipelineAdjacency = Literal["replace", "zero-out"]
"""The relations of the pipeline's objectives, which keep the normaliser."""
Smoothness = Literal["bound", "spectral", "spectral-with-margin"]
"""Where the smoothness constant comes from (`accounting.core.losses`)."""
NamedDelta = Literal["auto", "1/n"]
Delta = float | NamedDelta
"""Delta of a target: a number, or what follows from the number of records (`accounting.core.checks.required_delta`)."""
DELTA_HELP = "auto, which is min(1e-6, 1 / (10 n)), 1/n, or a number strictly between 0 and 1"
"""The same, for the command line."""
DType = Literal["float32", "float64"]
"""The type of weights and rows, coarsest first."""
Guarantee = Literal["upper bound", "exact", "as published", "heuristic", "none"]
"""Kinds of guarantee. `as published` applies a theorem outside its statement; with `none` there is no epsilon."""
NoiseSource = Literal["seed", "system entropy"]
"""Where the noise comes from: a seed that can be repeated, or the operating system's entropy, which is not kept."""
ClassesFrom = Literal["declaration", "records"]
"""Where the list of classes comes from: a declaration, or the labels of the records."""

Reading = Literal["none", "pass", "scheduled", "unscheduled", "addition"]
"""How a version that is compared with an exact refit read the remaining records: not at all; to correct the weights,
without learning anew; or to learn anew, as planned, earlier, or to add records."""
ExactMechanism = Literal["subsample-gd", "noisy-sgd", "accelerated-noisy-sgd", "quantized-sgd"]
"""Methods of descent that forget exactly, by how their steps are made stable (`mechanisms.exact.plan`)."""
Relation = Literal["replace-one", "add-remove"]
"""Neighbouring relations of data sets, for an epsilon of differential privacy (`accounting.private.releases`)."""

NetworkLoss = Literal["cross-entropy", "binary-cross-entropy", "squared"]
"""Losses whose derivatives are bounded over boxes of parameters (`engine.intervals.losses`)."""
Clipping = Literal["none", "clamp", "l2"]
"""How single gradients are clipped: not at all, entry by entry, by their Euclidean norm."""
IntervalProduct = Literal["exact", "rump"]
"""How products of intervals are bounded: exactly where a factor has a known sign, or by midpoints and radii."""
Differences = Literal["updated", "relaxed", "joint"]
"""How differences of logits are bounded: by the last layer, additionally by lines through all hidden layers, and
additionally through the last update of training; ``joint`` is the first alone, ``updated`` is all."""
Changes = Literal["removals", "additions and removals", "substitutions", "additions or removals"]
"""What may happen to every batch of a neighbour (`engine.abstract_training.neighbourhoods`)."""
