"""Pairs of a sentence that earlier releases wrote in certificates, and its present wording.

Some pairs contain only a part of a sentence, because a number or a name stands beside it. `former` applies the pairs.
"""

FORMER = (
    # Several kinds.
    (
        "they were given as numbers: counted from the labels, they would tell of removed records",
        "they were given as numbers; weights that are computed from the labels would reveal something about removed "
        "records",
    ),
    (
        "it was given as numbers, to which targets were clipped: read off the targets, it would tell of removed "
        "records",
        "the range was given as numbers, and targets were clipped to it; a range that is computed from the targets "
        "would reveal something about removed records",
    ),
    (
        "it was given as numbers, and targets were clipped to it; a range that is computed from the targets would "
        "reveal something about removed records",
        "the range was given as numbers, and targets were clipped to it; a range that is computed from the targets "
        "would reveal something about removed records",
    ),
    ("projection on a ball", "a projection onto a ball does not loosen the bounds"),
    (
        "not needed: the radius enters none of the strongly convex bounds, and a projection loosens none",
        "a projection does not increase distances, and the bounds for strongly convex losses do not contain the radius",
    ),
    (
        "when the model directory was lost, and which backup was restored, depended neither on a model nor on how "
        "long a request took",
        "the time when the model directory was lost, and the choice of the restored backup, depended neither on a "
        "model nor on the duration of a request",
    ),
    (
        "no software can see it; restoring a backup because of a model is choosing among models",
        "no software can check this; somebody who restores a backup because of a model chooses among models",
    ),
    (
        "no software can check this; to restore a backup because of a model is to choose among models",
        "no software can check this; somebody who restores a backup because of a model chooses among models",
    ),
    (
        "nobody sees the backup that the model directory was restored from, or it was destroyed",
        "nobody sees the backup from which the model directory was restored, or this backup was destroyed",
    ),
    (
        "it holds an older state, which used records that were removed since",
        "it contains an older state, which was computed with records that have been removed since then",
    ),
    (
        "nothing to readers of releases that were lost: the model directory was restored from a backup without them, "
        "and no number here counts them",
        "the guarantee does not hold against readers of lost releases: the model directory was restored from a backup "
        "without these releases, and no number here includes them",
    ),
    (
        "the network's weights are taken to have been trained on other records",
        "the network's weights are assumed to have been trained on other records",
    ),
    (
        "the estimator sees its input only: means, scales, vocabularies or components that were computed from the "
        "records before are outside this guarantee, unless they are fixed or public; so is the list of classes, which "
        "is taken from the records",
        "the estimator sees only its input: the guarantee does not cover means, scales, vocabularies or components "
        "that were computed from the records beforehand, unless they are fixed or public; nor does it cover the list "
        "of classes, which is taken from the records",
    ),
    (
        "each record by itself, as declared; that columns, classes, categories and ranges were not chosen by these "
        "records is the declaration's word",
        "each record was preprocessed by itself, as declared; according to the declaration, columns, classes, "
        "categories and ranges were chosen independently of these records",
    ),
    (
        "each record by itself, as declared; that columns, categories and ranges were not chosen by these records is "
        "the declaration's word; the list of classes, and with it the number of weights, was taken from the records: "
        "it stays as it is after a removal, and it may show that a removed record existed",
        "each record was preprocessed by itself, as declared; according to the declaration, columns, categories and "
        "ranges were chosen independently of these records; the list of classes, and therefore the number of weights, "
        "was taken from the records, does not change after a removal, and may show that a removed record existed",
    ),
    (", but for the list of classes,", ", except for the list of classes,"),
    (
        "fixed features or scaling, then each record by its own norm",
        "features or scaling are fixed, and each record is then scaled by its own norm",
    ),
    (
        " columns by scikit-learn's HashingVectorizer, which keeps no vocabulary, and so many columns were not chosen "
        "by these records",
        " columns by scikit-learn's HashingVectorizer, which keeps no vocabulary; the number of columns was chosen "
        "independently of these records",
    ),
    (
        "medians, means and scales of the training part are taken for public constants",
        "medians, means and scales of the training part are assumed to be public constants",
    ),
    (
        "medians, means, scales and words of the training part are taken for public constants",
        "medians, means, scales and words of the training part are assumed to be public constants",
    ),
    (
        "it can be repeated from a seed: the noise can be subtracted by anybody who knows the seed, or who tries all "
        "seeds if they are numbers of 32 bits, and the noises of two models made with one seed cancel each other",
        "the noise was drawn from a seed: anybody who knows the seed can subtract the noise, and so can anybody who "
        "tries all seeds if they are 32-bit numbers; the noise cancels in the difference of two models that were made "
        "with the same seed",
    ),
    (
        "it can be repeated from a seed: whoever knows it can subtract the noise, as can whoever tries all seeds, "
        "where they are numbers of 32 bits, and two models made with one seed cancel each other's",
        "the noise was drawn from a seed: anybody who knows the seed can subtract the noise, and so can anybody who "
        "tries all seeds if they are 32-bit numbers; the noise cancels in the difference of two models that were made "
        "with the same seed",
    ),
    ("rounding is paid for", "the guarantee includes rounding errors"),
    (
        "products of matrices are taken to be made by sums of products, as all usual libraries do",
        "matrix products are assumed to be computed as sums of products, as all usual libraries compute them",
    ),
    # Noisy steps.
    ("; the model published last", "; the guarantee covers the model published last"),
    (
        "the l2 regulariser, which clipping leaves alone",
        "the l2 regulariser makes it strongly convex, and clipping does not change the regulariser",
    ),
    ("the step size is within the analysis' limit", "the step size is within the limit of the analysis"),
    (
        "the accountant, at planning and at verification",
        "the accountant checks it when a run is planned and when the certificate is verified",
    ),
    ("the theorems say nothing of adaptive requests", "the theorems do not cover adaptive requests"),
    (
        "its keys come from the operating system's entropy and are not kept",
        "the keys of the noise come from the operating system's entropy and are not kept",
    ),
    (
        "every row and every replacement, to 1e-6 (32-bit rounding)",
        "every row and every replacement was checked, up to 1e-6 (32-bit rounding)",
    ),
    (
        "every record has norm at most 1 and a target between -1 and 1, and weights are no longer than radius, so its "
        "data-loss gradient has norm at most lipschitz = radius + 1",
        "every record has norm at most 1 and a target between -1 and 1, and the norm of weights is at most radius, so "
        "a record's data-loss gradient has norm at most lipschitz = radius + 1",
    ),
    (
        "it bounds the gradients of the squared loss, is part of every step of both runs, and loosens no bound; the "
        "ball holds the minimiser of every data set of such records",
        "the projection bounds the gradients of the squared loss, is part of every step of both runs, and does not "
        "increase distances; the ball contains the minimiser for every data set of such records",
    ),
    (
        "step size and regularisation are constants, not recomputed after a removal; the normaliser is the number of "
        "records that are left, as adjacency remove has it",
        "step size and regularisation are constants and are not recomputed after a removal; the normaliser is the "
        "number of remaining records, as defined by the adjacency remove",
    ),
    (", and divides by that number", ", and divides by the number of remaining records"),
    (
        "step size, regularisation and normaliser are constants, not recomputed after a removal",
        "step size, regularisation and normaliser are constants and are not recomputed after a removal",
    ),
    (
        " with a pseudo-random generator; noise that rounding would swallow is refused",
        " with a pseudo-random generator; noise is refused if rounding would remove it",
    ),
    (
        "rounding, and the random numbers that no sampler of finite range gives, are paid for",
        "the guarantee includes rounding errors and the finite range of the noise sampler",
    ),
    ("epsilon counts that a step in ", "epsilon takes into account that a step in "),
    (
        " away from the exact one, in both runs; extra_delta counts random norms larger than that supposes, ",
        " away from the exact step, in both runs; this distance assumes upper limits on random norms, and the part of "
        "extra_delta that covers larger norms is ",
    ),
    (
        " away from the exact step, in both runs; extra_delta includes an addition for random norms larger than this "
        "assumes, ",
        " away from the exact step, in both runs; this distance assumes upper limits on random norms, and the part of "
        "extra_delta that covers larger norms is ",
    ),
    ("nobody concludes anything from the last bits of the ", "nobody infers anything from the last bits of the "),
    ("it is within ", "the noise is within "),
    (
        " (Euclidean norm) of exact Gaussian noise, made of a cipher's bits on a CPU, of PyTorch's generator's on a "
        "GPU; attacks on smaller differences (Mironov 2012) are not excluded",
        " (Euclidean norm) of exact Gaussian noise; its random bits come from a cipher on a CPU, and from PyTorch's "
        "generator on a GPU; attacks that use differences smaller than this distance (Mironov 2012) are not excluded",
    ),
    (
        " (Euclidean norm) of exact Gaussian noise; its random bits come from a cipher on a CPU, and from PyTorch's "
        "generator on a GPU; attacks that use smaller differences (Mironov 2012) are not excluded",
        " (Euclidean norm) of exact Gaussian noise; its random bits come from a cipher on a CPU, and from PyTorch's "
        "generator on a GPU; attacks that use differences smaller than this distance (Mironov 2012) are not excluded",
    ),
    (
        "computed from this data set, without a margin for removals: no guarantee",
        "it was computed from this data set without a margin for removals, so nothing is guaranteed",
    ),
    (
        "computed from this data set with a margin of (records removed) / n on the largest eigenvalue; that the step "
        "size, which follows from it, tells nothing of single records is taken for granted",
        "it was computed from this data set, with a margin of (records removed) / n on the largest eigenvalue; the "
        "step size follows from it, and is assumed to reveal nothing about single records",
    ),
    (
        " + strong_convexity holds for every data set of such records",
        " + strong_convexity is a bound for every data set of such records",
    ),
    (
        "the same steps in the same order, learning and every request's, from the same start, on data that lacked the "
        "removed records from the start",
        "the same steps of learning and of every request, in the same order and from the same start, on data that "
        "never contained the removed records",
    ),
    (
        "records were dealt into batches without looking at them, and keep their places",
        "records were dealt into batches without looking at their contents, and keep their places",
    ),
    (
        "dealt by a key of their own; a removed record becomes a row of zeros where it was",
        "a separate key, which does not depend on the records, determined the batches; a removed record "
        "becomes a row of zeros in its place",
    ),
    (
        "the theorem, stated for adding or removing a record, holds for this adjacency too",
        "the theorem, which is stated for adding or removing a record, also holds for this adjacency",
    ),
    (
        "the paper applies it unchanged, and so does this baseline",
        "the paper applies the theorem unchanged, and so does this baseline",
    ),
    (
        "a model retrained from the same start on the data after the removals, for as many steps in all, published "
        "with the same noise",
        "a model retrained from the same start on the data after the removals, for the same total number of steps, "
        "and published with the same noise",
    ),
    (
        "a retrained model that is published with the same noise, and continued, at the same times",
        "a retrained model that is published with the same noise at the same times, and continues from each published "
        "model",
    ),
    ("learning has reached its stationary law", "learning has reached its stationary distribution"),
    (
        "extra_delta pays for the distance that is left after learning_steps; more than delta is refused",
        "extra_delta includes the remaining distance after learning_steps; an extra_delta above delta is refused",
    ),
    (
        "the same learning run from the same start on the data after the removals, for as many steps in all",
        "the same learning run from the same start on the data after the removals, for the same total number of steps",
    ),
    # Weights with a certified residual.
    (
        "evaluated when data are read, bounded by the mechanism after every request",
        "the norm is evaluated when data are read, and bounded by the mechanism after every request",
    ),
    (
        "the gradient's norm over the strong convexity of that time: both fall as records are added. It is ",
        "the distance is bounded by the gradient's norm divided by the strong convexity at that time; both numbers "
        "decrease as records are added; ",
    ),
    (
        "the gradient's norm over the strong convexity; the gradient is evaluated at every release over all remaining "
        "records, whatever led to the weights",
        "the distance is bounded by the gradient's norm divided by the strong convexity; the gradient is evaluated at "
        "every release over all remaining records, however the weights were computed",
    ),
    (
        "the least of three bounds (the gradient's norm, its norm in the metric of the Hessian, and Newton's step from "
        "there), evaluated at readings and passes, bounded after every request",
        "the distance is at most the least of three bounds: one uses the gradient's norm, one uses the gradient's norm "
        "in the metric of the Hessian, and one uses the Newton step from the weights; this least bound is evaluated at "
        "readings and passes, and is itself bounded after every request",
    ),
    (
        "the distance is at most the least of three bounds (by the gradient's norm, by its norm in the metric of the "
        "Hessian, and by the Newton step from there), which is evaluated at readings and passes, and bounded after "
        "every request",
        "the distance is at most the least of three bounds: one uses the gradient's norm, one uses the gradient's norm "
        "in the metric of the Hessian, and one uses the Newton step from the weights; this least bound is evaluated at "
        "readings and passes, and is itself bounded after every request",
    ),
    (
        " (a removed record's loss is 0, the normaliser, which counts both, stays), plus the same Gaussian noise",
        " (a removed record's loss is 0, and the normaliser, which counts both, does not change), plus the same "
        "Gaussian noise",
    ),
    (
        "the l2 regulariser, whose strength follows from C and from how many records were ever in the model",
        "the l2 regulariser makes it strongly convex; its strength follows from C and from the number of records that "
        "were ever in the model",
    ),
    (
        "the l2 regulariser, whose strength is a constant that a removal does not change",
        "the l2 regulariser makes it strongly convex; its strength is a constant that a removal does not change",
    ),
    (
        "; and the public rows, which no removal takes away: between the exact minimiser and the weights they add "
        "public_curvature to strong_convexity, whatever the other records are. That was computed from the public rows "
        "and rounded down",
        "; the public rows are never removed; between the exact minimiser and the weights, they add public_curvature "
        "to strong_convexity, whatever the other records are; public_curvature was computed from the public rows and "
        "rounded down",
    ),
    (
        "; the public rows, which are never removed, add public_curvature to strong_convexity between the exact "
        "minimiser and the weights, whatever the other records are; public_curvature was computed from the public rows "
        "and rounded down",
        "; the public rows are never removed; between the exact minimiser and the weights, they add public_curvature "
        "to strong_convexity, whatever the other records are; public_curvature was computed from the public rows and "
        "rounded down",
    ),
    (
        "every row, to 1e-6, which the bounds count",
        "every row was checked, up to 1e-6, and the bounds include this tolerance",
    ),
    (
        "bounds of every sum and product in float64 are part of the gradient's bound",
        "the bound on the gradient includes bounds on the rounding of every sum and product in float64",
    ),
    ("no software can see it", "no software can check this"),
    (
        " (Euclidean norm) of exact Gaussian noise, made of the operating system's or a cipher's bits; attacks on "
        "smaller differences (Mironov 2012) are not excluded",
        " (Euclidean norm) of exact Gaussian noise; its random bits come from the operating system or from a cipher; "
        "attacks that use differences smaller than this distance (Mironov 2012) are not excluded",
    ),
    (
        " (Euclidean norm) of exact Gaussian noise; its random bits come from the operating system or from a cipher; "
        "attacks that use smaller differences (Mironov 2012) are not excluded",
        " (Euclidean norm) of exact Gaussian noise; its random bits come from the operating system or from a cipher; "
        "attacks that use differences smaller than this distance (Mironov 2012) are not excluded",
    ),
    (
        "the caller of fit says so; a private record among them stays in every model, and nothing is promised of it",
        "the caller of fit states that these rows are public in this sense; a private record among the public rows "
        "stays in every model, and the guarantee does not cover it",
    ),
    (
        "the caller of fit states this; a private record among them stays in every model, and the guarantee does not "
        "cover it",
        "the caller of fit states that these rows are public in this sense; a private record among the public rows "
        "stays in every model, and the guarantee does not cover it",
    ),
    (
        "nobody concludes anything from when data were read again",
        "nobody infers anything from the times at which data were read again",
    ),
    (
        "it follows from the sizes of requests alone, by a bound that holds for all data",
        "these times depend only on the sizes of requests, because the bound that determines them holds for all data",
    ),
    (
        "these times follow from the sizes of requests alone, by a bound that holds for all data",
        "these times depend only on the sizes of requests, because the bound that determines them holds for all data",
    ),
    (
        "how many passes over the rows a request needed, and that it needed no reading before its time, depends on "
        "the data",
        "the data determine how many passes over the rows a request needed, and whether it needed a reading earlier "
        "than planned (none did)",
    ),
    (
        "it depends on the data how many passes over the rows a request needed, and that it needed no reading earlier "
        "than planned",
        "the data determine how many passes over the rows a request needed, and whether it needed a reading earlier "
        "than planned (none did)",
    ),
    (
        "whether a request needed a pass over the rows, or no reading before its time, depends on the data",
        "the data determine whether a request needed a pass over the rows, and whether it needed a reading earlier "
        "than planned (none did)",
    ),
    (
        "it depends on the data whether a request needed a pass over the rows, and that it needed no reading earlier "
        "than planned",
        "the data determine whether a request needed a pass over the rows, and whether it needed a reading earlier "
        "than planned (none did)",
    ),
    (
        "a reading was not scheduled: that it was needed depends on the data",
        "a reading was not scheduled, and the need for it depends on the data",
    ),
    (
        "the number of records between readings is public, but that it was enough depends on the data",
        "the number of records between readings is public, but whether it was small enough depends on the data",
    ),
    (
        "(a removed record's loss is 0, the normaliser stays)",
        "(a removed record's loss is 0, and the normaliser does not change)",
    ),
    (
        "the added ones included (a removed record's loss is 0; the normaliser counts all records that were ever in "
        "the model; C stays)",
        "including added ones (a removed record's loss is 0, the normaliser counts all records that were ever in the "
        "model, and C does not change)",
    ),
    (
        "the objective is the sum of every class' logistic regression against the rest, and all classes' weights are "
        "one release",
        "the objective is the sum of the logistic regressions of each class against the rest, and the weights of all "
        "classes are one release",
    ),
    (
        "epsilon: who sees the model published last, requests fixed in advance; epsilon_all_releases: who sees all "
        "releases, the first one included, and may have chosen requests after seeing earlier ones, against the same "
        "interaction with exact refits",
        "epsilon holds for somebody who sees the model published last, if requests are fixed in advance; "
        "epsilon_all_releases holds for somebody who sees all releases, including the first one, and who may have "
        "chosen requests after seeing earlier releases; epsilon_all_releases compares this interaction with the same "
        "interaction with exact refits",
    ),
    (
        "epsilon: somebody who sees the model published last, if requests are fixed in advance; epsilon_all_releases: "
        "somebody who sees all releases, including the first one, and may have chosen requests after seeing earlier "
        "releases, compared with the same interaction with exact refits",
        "epsilon holds for somebody who sees the model published last, if requests are fixed in advance; "
        "epsilon_all_releases holds for somebody who sees all releases, including the first one, and who may have "
        "chosen requests after seeing earlier releases; epsilon_all_releases compares this interaction with the same "
        "interaction with exact refits",
    ),
    (
        "nothing towards the records that stay: the comparator is an exact minimiser with noise, no private training",
        "the guarantee does not protect the remaining records: the comparator is an exact minimiser with noise, and "
        "is not trained privately",
    ),
    (
        "nothing about what was published before a deletion: a kept copy is a model of the removed records",
        "the guarantee does not cover what was published before a deletion: a kept copy is a model of the removed "
        "records",
    ),
    (
        "nothing about what was published before a deletion: whoever kept it has a model of the removed records",
        "the guarantee does not cover what was published before a deletion: a kept copy is a model of the removed "
        "records",
    ),
    (
        "nothing about the secret state (weights without noise, matrix and factor), which depends on removed records "
        "until data are read again",
        "the guarantee does not cover the secret state (weights without noise, matrix and factor), which depends on "
        "removed records until the data are read again",
    ),
    (
        "nothing about the secret state (weights without noise, matrix and factor), which depends on removed records "
        "until the model",
        "the guarantee does not cover the secret state (weights without noise, matrix and factor), which depends on "
        "removed records until the model",
    ),
    (
        "nothing about the secret state (weights without noise, their gradient,",
        "the guarantee does not cover the secret state (weights without noise, their gradient,",
    ),
    (
        "nothing about the public rows: every model is learned from them, the comparator too, and they are never "
        "removed",
        "the guarantee does not cover the public rows: every model, including the comparator, is learned from them, "
        "and they are never removed",
    ),
    ("verifying arithmetic alone cannot see it", "a check of the certificate's arithmetic alone cannot show this"),
    # Exact unlearning.
    (
        "a run of the same algorithm with the same constants, from nothing, on the records as they are now: model and "
        "stored state together have the same law",
        "a run from scratch of the same algorithm with the same constants on the current records: model and stored "
        "state together have the same probability distribution",
    ),
    (
        "nothing where requests were chosen after seeing a model, a state, or how long a request took",
        "the guarantee does not hold if requests were chosen after seeing a model, a state, or the duration of a "
        "request",
    ),
    (
        "nothing about what was published before a deletion, nor about two states together: two snapshots around a "
        "request give the removed record away",
        "the guarantee covers neither anything published before a deletion, nor two states together: two snapshots, "
        "from before and after a request, reveal the removed record",
    ),
    (
        "requests are oblivious: chosen without looking at models, states, or the time of requests",
        "requests are oblivious: they were chosen without looking at models, states, or the duration of requests",
    ),
    (
        "no software can see it; a request that depends on a model voids the statement, with more noise the more so",
        "no software can check this; a request that depends on a model voids the guarantee, and more noise makes this "
        "failure of the guarantee worse",
    ),
    (
        "no software can check this; a request that depends on a model voids the guarantee, and more noise makes this "
        "worse",
        "no software can check this; a request that depends on a model voids the guarantee, and more noise makes this "
        "failure of the guarantee worse",
    ),
    (
        "no constant of the algorithm follows the records",
        "no constant of the algorithm depends on the contents of the records or changes with a removal",
    ),
    ("numbers are real numbers", "numbers are exact real numbers"),
    (
        "float64 is computed with: laws are equal up to its rounding, of random numbers of 53 bits as well",
        "the software computes in float64: distributions are equal up to its rounding, which includes the rounding of "
        "random numbers to 53 bits",
    ),
    (
        "it tells who was used when, and holds gradients without noise; what backups keep no software can see",
        "it shows which records were used when, and contains gradients without noise; no software can check what "
        "backups contain",
    ),
    (
        "steps, batch size, step size, noise and the regulariser's strength were fixed for the first records, by "
        "their number and by what was asked for, and no request changes them",
        "the number of steps, batch size, step size, noise and the regulariser's strength were fixed at the start, "
        "from the number of records and the caller's settings, and no request changes them",
    ),
    (
        "batches are uniform subsets without replacement, also after a request",
        "batches are uniform subsets, drawn without replacement, also after a request",
    ),
    (
        "a batch leaves at least one record out; members are replaced by uniform draws",
        "every batch leaves at least one record out, and members of a batch are replaced by uniform draws",
    ),
    ("nobody knows the randomness", "nobody knows the random numbers"),
    (
        "it can be repeated from a seed: somebody with the records who knows the seed, or tries all seeds of 32 bits, "
        "knows the state",
        "the random numbers were drawn from a seed: anybody who has the records, and knows the seed or tries all "
        "32-bit seeds, knows the state",
    ),
    (
        "its seeds come from the operating system's entropy, one for each request, and are overwritten",
        "the seeds come from the operating system's entropy, one for each request, and are overwritten",
    ),
    (
        "steps and noise were fixed before records were read, and no request changes them; ",
        "the number of steps and the noise were fixed before records were read, and no request changes them; ",
    ),
    (
        "it holds the records and sums without noise; what backups keep no software can see",
        "it contains the records, and sums without noise; no software can check what backups contain",
    ),
    (
        "the places where centres begin were given, and are taken to come from other knowledge",
        "the first centres were given, and are assumed to come from other knowledge",
    ),
    (
        "centres begin in random directions around a noisy mean, which is part of the run",
        "the first centres are in random directions around a noisy mean, which is part of the run",
    ),
    (
        "longer ones are refused or scaled down; only the bounds on computing again rest on it",
        "longer rows are refused or scaled down; of the statements in this certificate, only the bounds on "
        "recomputation depend on this limit",
    ),
    (
        "longer rows are refused or scaled down; only the bounds on recomputation depend on this",
        "longer rows are refused or scaled down; of the statements in this certificate, only the bounds on "
        "recomputation depend on this limit",
    ),
    (
        "it holds sums of what clients sent without noise; what backups keep no software can see",
        "it contains sums of the clients' updates without noise; no software can check what backups contain",
    ),
    (
        "rounds, a client's steps and their size, the clipped norm, the divisor of sums, noise and the regulariser's "
        "strength were fixed for the first clients, by their number and that of their rows and by what was asked for, "
        "and no request changes them",
        "the number of rounds, the number and size of a client's steps, the largest norm of an update, the divisor of "
        "sums, the noise and the regulariser's strength were fixed at the start, and no request changes them; they "
        "depend only on the numbers of clients and of their rows, and on the caller's settings",
    ),
    (
        "the number of rounds, the number and size of a client's steps, the largest norm of an update, the divisor of "
        "sums, the noise and the regulariser's strength were fixed at the start, from the numbers of clients and of "
        "their rows and the caller's settings, and no request changes them",
        "the number of rounds, the number and size of a client's steps, the largest norm of an update, the divisor of "
        "sums, the noise and the regulariser's strength were fixed at the start, and no request changes them; they "
        "depend only on the numbers of clients and of their rows, and on the caller's settings",
    ),
    (
        "what a client sends depends on the model and on its own rows alone",
        "a client's update depends only on the model and on the client's own rows",
    ),
    (
        "it descends from the model along the gradient of its rows' mean loss, without randomness, and its move is "
        "clipped",
        "from the model, a client takes gradient steps on the mean loss of its rows, without randomness, and the "
        "resulting update is clipped",
    ),
    (
        "it can be repeated from a seed: whoever knows it, or tries all seeds of 32 bits, and has the records, knows "
        "the state",
        "the random numbers were drawn from a seed: anybody who has the records, and knows the seed or tries all "
        "32-bit seeds, knows the state",
    ),
    # Certified predictions, answers of ensembles, and labels.
    (
        "the label of the ensemble that is trained from the same starts on the records as they are now: every record "
        "in the slice that was drawn for its number, in as many updates, with the same constants and type of numbers",
        "the label from the ensemble that is trained on the current records from the same starts; each record is in "
        "the slice that was drawn for the record's number; the number of updates, the constants and the floating-point "
        "type are the same",
    ),
    (
        "the label from the ensemble that is trained from the same starts on the current records, with every record in "
        "the slice that was drawn for its number, and with the same number of updates, constants and floating-point "
        "type",
        "the label from the ensemble that is trained on the current records from the same starts; each record is in "
        "the slice that was drawn for the record's number; the number of updates, the constants and the floating-point "
        "type are the same",
    ),
    (
        "nothing about parameters: until a shard is trained again they were learned with the records that have left "
        "it, and so were its boxes; both must stay secret",
        "the guarantee does not cover parameters: until a shard is trained again, its parameters and boxes depend on "
        "the records that were removed from it, so both must stay secret",
    ),
    (
        "nothing about inputs without an answer, and no differential privacy of the answers: which inputs have none "
        "depends on the records, those that were removed included, and leaks",
        "the guarantee does not cover inputs without an answer, and the answers are not differentially private: "
        "whether an input has an answer depends on the records, including removed records, and reveals something "
        "about them",
    ),
    (
        "nothing about probabilities, numbers of votes or of shards that abstain: labels only",
        "the guarantee does not cover probabilities, numbers of votes or numbers of shards that abstain, but only "
        "labels",
    ),
    (
        "nothing about which shard is trained again, and when: that tells in which shards removed records lay, and so "
        "does the time that a request takes; it depends on nothing that the records said",
        "the guarantee does not hide which shard is trained again, and when: this does not depend on the contents of "
        "records, but it shows which shards contained removed records, and so does the duration of a request",
    ),
    (
        "nothing where slices are drawn anew after a removal, or what was published before one was kept",
        "the guarantee does not hold if slices are drawn anew after a removal, or if somebody kept what was published "
        "before a removal",
    ),
    (
        "nothing towards the records that stay: learning is not private",
        "the guarantee does not protect the remaining records: learning is not private",
    ),
    (
        "an answer is given only where no assignment of the votes that are not known could change it",
        "an answer is given only if no assignment of the unknown votes could change it",
    ),
    (
        "the votes that shards may cast after training again are bounded, with bounds that are rounded outward",
        "the possible votes of a shard after it is trained again are bounded, with bounds that are rounded outward",
    ),
    (
        "recomputed from where the removed records lay; it goes on from the checkpoint before the first slice that "
        "lost one",
        "the list of shards that are trained again is recomputed from the places of the removed records; the training "
        "of such a shard continues from the checkpoint before the first slice that lost a record",
    ),
    (
        "this is recomputed from the places of the removed records; training continues from the checkpoint before the "
        "first slice that lost a record",
        "the list of shards that are trained again is recomputed from the places of the removed records; the training "
        "of such a shard continues from the checkpoint before the first slice that lost a record",
    ),
    (
        "boxes and checkpoints follow from the records by the constants named here",
        "boxes and checkpoints follow from the records and the constants named here",
    ),
    (
        "a certificate shows neither: somebody with the records can train again and compare",
        "a certificate shows neither boxes nor checkpoints: somebody with the records can train again and compare",
    ),
    (
        "constants, starts, slices and the moment of stopping were not chosen by the records",
        "constants, starts, slices and the time of stopping were chosen without looking at the records",
    ),
    (
        "starts and slices are drawn by number here; what was tried before, no software can see",
        "starts and slices were drawn using only the number of records at the start, and not their contents; no "
        "software can check whether other constants, starts, slices or times of stopping were tried before",
    ),
    (
        "starts and slices are drawn by the number of records at the start, and not by their contents; no software can "
        "check what was tried before",
        "starts and slices were drawn using only the number of records at the start, and not their contents; no "
        "software can check whether other constants, starts, slices or times of stopping were tried before",
    ),
    (
        "they were learned with the removed records; what backups keep no software can see",
        "they were learned with the removed records; no software can check what backups contain",
    ),
    (
        "single operations are rounded to nearest, and exponentials are right to 4 units in the last place",
        "single operations are rounded to nearest, and exponentials are correct to 4 units in the last place",
    ),
    (
        "bounds then hold for training in float64, in any order of sums",
        "if this is true, the bounds hold for training in float64, in any order of summation",
    ),
    (
        "nothing about predictions that are not certified: their label may change",
        "the guarantee does not cover predictions that are not certified: their labels may change",
    ),
    (
        "nothing about probabilities, parameters or explanations: labels only, of the inputs named here",
        "the guarantee does not cover probabilities, parameters or explanations, but only the labels of the inputs "
        "named here",
    ),
    (
        "no differential privacy of the answers: whether a prediction is certified depends on the records, and leaks; "
        "who answers certified inputs only tells by that which records there are",
        "the answers are not differentially private: whether a prediction is certified depends on the records, and "
        "reveals something about them; so a service that answers only certified inputs reveals something about which "
        "records exist",
    ),
    (
        "nothing where parameters or boxes were published: both were learned with the records",
        "the guarantee does not hold if parameters or boxes were published: both were learned with the records",
    ),
    (
        "nothing where batches are cut anew after a removal, or inputs were scaled, selected or stopped by the records",
        "the guarantee does not hold if batches are formed anew after a removal, if inputs were scaled or selected "
        "with the help of the records, or if the records determined when training stopped",
    ),
    (
        "the guarantee does not hold if batches are formed anew after a removal, if inputs were scaled or selected by "
        "means of the records, or if the records determined when training stopped",
        "the guarantee does not hold if batches are formed anew after a removal, if inputs were scaled or selected "
        "with the help of the records, or if the records determined when training stopped",
    ),
    ("without any k records of each batch, or fewer", "with any k or fewer records of each batch removed"),
    (
        "without any k records of each batch and with any k others in it, or fewer of both",
        "with any k or fewer records of each batch removed, and any k or fewer others added to it",
    ),
    (
        "with any k records of each batch replaced by any others, or fewer",
        "with any k or fewer records of each batch replaced by any others",
    ),
    (
        "with any k records of each batch removed or added, or fewer",
        "with any k or fewer records of each batch removed or added",
    ),
    (
        "the label of the same training (start, batches, list of classes, number of updates, constants and type of "
        "numbers) on the records ",
        "the label after the same training (with the same start, batches, list of classes, number of updates, "
        "constants and floating-point type) on the records ",
    ),
    (
        "public rows are in every data set that is compared with: nobody asks to remove one, and none holds what "
        "somebody may",
        "public rows are in every data set of the comparison: nobody asks to remove a public row, and no public row "
        "contains what somebody may ask to remove",
    ),
    (
        "the software refuses requests that name one; whose they are it cannot see",
        "the software refuses requests that name a public row, but it cannot check whose data the row contains",
    ),
    (" follow from the records by the constants named here", " follow from the records and the constants named here"),
    (", as far as its lines leave it", ", within the limits of its lines"),
    (
        "recomputed from the evidence, with bounds that are rounded outward",
        "the software recomputes this from the evidence, with bounds that are rounded outward",
    ),
    (
        "batches are fixed places: a removed record leaves its place empty, nothing moves up, and the number of "
        "updates stays",
        "batches consist of fixed places: the place of a removed record stays empty, no record moves up, and the "
        "number of updates does not change",
    ),
    (
        "the software retrains so; a retraining that cuts batches anew may give another label",
        "the software retrains in this way; a retraining that forms batches anew may give another label",
    ),
    (
        "constants, start, batches and the moment of stopping were not chosen by the records",
        "constants, start, batches and the time of stopping were chosen without looking at the records",
    ),
    (
        "start and batches are drawn by number here; what was tried before, no software can see",
        "start and batches were drawn using only the number of records at the start, and not their contents; no "
        "software can check whether other constants, starts, batches or times of stopping were tried before",
    ),
    (
        "start and batches are drawn by the number of records at the start, and not by their contents; no software can "
        "check what was tried before",
        "start and batches were drawn using only the number of records at the start, and not their contents; no "
        "software can check whether other constants, starts, batches or times of stopping were tried before",
    ),
    (
        "single operations are rounded to nearest, exponentials are right to 4 units in the last place, and no record "
        "that is added is so large that training on it overflows",
        "single operations are rounded to nearest, exponentials are correct to 4 units in the last place, and no "
        "added record is so large that training on it overflows",
    ),
    (
        "bounds then hold in real numbers and for training in floats of the same type, in any order of sums",
        "if this is true, the bounds hold for training in exact arithmetic, and also for training in floating-point "
        "numbers of the same type, whatever the order of summation",
    ),
    (
        "if this is true, the bounds hold in real numbers, and for training in floating-point numbers of the same "
        "type, in any order of summation",
        "if this is true, the bounds hold for training in exact arithmetic, and also for training in floating-point "
        "numbers of the same type, whatever the order of summation",
    ),
    (
        "the labels published after the same training (start, places, list of classes, number of updates, constants) "
        "with one record of one batch replaced by any other",
        "the labels published after the same training, but with one record of one batch replaced by any other; the "
        "start, the places, the list of classes, the number of updates and the constants are the same",
    ),
    (
        "the labels published after the same training (with the same start, places, list of classes, number of updates "
        "and constants), but with one record of one batch replaced by any other",
        "the labels published after the same training, but with one record of one batch replaced by any other; the "
        "start, the places, the list of classes, the number of updates and the constants are the same",
    ),
    (
        "the labels published after the same training (start, places, list of classes, number of updates, constants) "
        "with one record added to one batch, or removed from it",
        "the labels published after the same training, but with one record added to one batch or removed from it; the "
        "start, the places, the list of classes, the number of updates and the constants are the same",
    ),
    (
        "the labels published after the same training (with the same start, places, list of classes, number of updates "
        "and constants), but with one record added to one batch or removed from it",
        "the labels published after the same training, but with one record added to one batch or removed from it; the "
        "start, the places, the list of classes, the number of updates and the constants are the same",
    ),
    (
        "inputs, and how many of them are asked for, were not chosen by the records",
        "the inputs and their number were chosen without looking at the records",
    ),
    (
        "nothing about parameters, boxes, radii, probabilities, or which labels are certified: they must stay secret",
        "the guarantee does not cover parameters, boxes, radii, probabilities, or which labels are certified: these "
        "must stay secret",
    ),
    (
        "nothing about what was published besides, and more for every label: epsilon and delta add up",
        "the guarantee does not cover anything else that was published: epsilon and delta add up, and every label "
        "adds to them",
    ),
    (
        "nothing about inputs that were chosen by the records, nor about the time that an answer takes",
        "the guarantee covers neither inputs that were chosen with the help of the records, nor the duration of an "
        "answer",
    ),
    (
        "the guarantee covers neither inputs that were chosen by means of the records, nor the duration of an answer",
        "the guarantee covers neither inputs that were chosen with the help of the records, nor the duration of an "
        "answer",
    ),
    (
        "nothing where training was refused: that bounds overflowed or a class was missing may depend on the records",
        "the guarantee does not hold if training was refused: whether bounds overflowed or a class was missing may "
        "depend on the records",
    ),
    (
        "the law of every label is (epsilon, delta)-private for neighbouring radii",
        "the distribution of every label is (epsilon, delta)-private for neighbouring radii",
    ),
    (
        "computed in exact fractions from the very probabilities that are drawn from",
        "this is computed in exact fractions from the same probabilities with which labels are drawn",
    ),
    ("data sets are neighbours (", "neighbouring data sets ("),
    (
        ") by one record in one batch; places, start, constants and classes are public, and not chosen by the records",
        ") differ in one record of one batch; places, start, constants and classes are public, and were chosen "
        "without looking at the records",
    ),
    (
        "the software draws places by number; batches that are cut anew have other neighbours",
        "places were drawn using only the number of records at the start, and not their contents; if batches are "
        "formed anew, other data sets are neighbours",
    ),
    (
        "certified radii of neighbours differ by at most one",
        "certified radii of neighbouring data sets differ by at most one",
    ),
    (
        "proved for bounds in real numbers; bounds that are rounded outward could break it where a label is certified "
        "or not by some units in the last place",
        "this is proved for bounds in real numbers; bounds that are rounded outward could violate it for a label "
        "whose certification depends on some units in the last place",
    ),
    (
        "a certificate shows neither: whoever holds the records trains again and compares",
        "a certificate shows neither boxes nor checkpoints: somebody with the records can train again and compare",
    ),
    ("whoever holds both trains again and compares", "somebody with both can train again and compare"),
    (
        "the software draws places by number; whoever cuts batches anew has other neighbours",
        "places were drawn using only the number of records at the start, and not their contents; if batches are "
        "formed anew, other data sets are neighbours",
    ),
    (
        "places are drawn by the number of records at the start, and not by their contents; if batches are formed "
        "anew, other data sets are neighbours",
        "places were drawn using only the number of records at the start, and not their contents; if batches are "
        "formed anew, other data sets are neighbours",
    ),
    # Private learning.
    ("radius, strength, steps", "the radius, the strength of the regulariser, the number and size of steps"),
    ("no step takes two paths farther apart", "no step moves two paths farther apart"),
    (
        "the loss is convex, and no step is longer than 2 / H: other plans are refused, for noise on the end of a "
        "phase would not be enough",
        "the loss is convex, and no step size is larger than 2 / H; other plans are refused, because for them, noise "
        "at the end of a phase would not be enough",
    ),
    (
        "bounds of sums and products in float64 are part of the sensitivity",
        "the sensitivity includes bounds on the rounding of sums and products in float64",
    ),
    (
        "the caller gave its key, and states that it came from the operating system's entropy and was not kept",
        "the caller gave the key of the noise, and states that it came from the operating system's entropy and was "
        "not kept",
    ),
    (
        "their mu add up in squares, and pure epsilons of selections add up",
        "the squares of their mu add up, and so do pure epsilons of selections",
    ),
    (
        "which model is returned tells nothing more of the records",
        "the choice of the returned model reveals nothing more about the records",
    ),
    (
        ": that follows from chance and from what is covered anyway",
        "; this choice depends only on chance and on values that the guarantee covers anyway",
    ),
    (
        "every record enters every batch by itself and by chance",
        "every record is drawn into every batch independently and at random",
    ),
    (
        "each is drawn anew for each batch with the stated probability, to 53 random bits",
        "each record is drawn anew for each batch with the stated probability, to 53 random bits",
    ),
    (
        "batches follow from the key of the noise; neither they, nor their sizes, nor how long a step took, may be "
        "published",
        "batches follow from the key of the noise; batches, their sizes and the duration of steps must not be "
        "published",
    ),
    ("dp-accounting's epsilon is none too small", "the epsilon by dp-accounting is not too small"),
    (
        "it rounds the loss of privacy up, bin by bin; what its own float64 rounds is taken off delta as far as was "
        "measured, and has no proven bound",
        "dp-accounting rounds the privacy loss up, bin by bin; to cover its own rounding errors in float64, more than "
        "the largest measured error is subtracted from delta, but no bound on these errors is proven",
    ),
    (
        "dp-accounting rounds the privacy loss up, bin by bin; its own rounding errors in float64 are subtracted from "
        "delta as far as they were measured, and have no proven bound",
        "dp-accounting rounds the privacy loss up, bin by bin; to cover its own rounding errors in float64, more than "
        "the largest measured error is subtracted from delta, but no bound on these errors is proven",
    ),
    ("their losses of privacy add up", "their privacy losses add up"),
    (
        "every gradient of a record was clipped, on which alone epsilon rests",
        "every gradient of a record was clipped; of all bounds on records, epsilon needs only this one",
    ),
    (
        "what float64 rounds in sums of gradients tells nothing",
        "rounding errors of sums of gradients in float64 reveal nothing",
    ),
    (
        "it is not part of how far one record moves a sum",
        "the sensitivity of a sum does not include these rounding errors",
    ),
    (
        "they were split by position, so that learning and selecting read different ones",
        "they were split by position, so that learning and selection read different records",
    ),
    (
        "no gradient, and no difference of two, is longer than was planned for",
        "no gradient, and no difference of two gradients, is longer than planned",
    ),
    (
        "the loss has a bounded slope and is smooth, and rows keep to their norm: then gradients of a record are "
        "bounded whatever the weights are, and their differences by the weights' distance",
        "the loss has a bounded slope and is smooth, and rows are within their norm; so a record's gradients are "
        "bounded for all weights, and the difference of two gradients is bounded by means of the weights' distance",
    ),
    (
        "a share of what one record moves is set aside for what float64 rounds in gradients, and a run in which it "
        "could be more ends with an error",
        "a share of the sensitivity is reserved for the rounding of gradients in float64, and a run in which rounding "
        "could exceed this share ends with an error",
    ),
    ("or all iterates that it was drawn from", "or all iterates from which the model was drawn"),
    (
        "it is any iterate but the start, with the same probability, drawn beforehand",
        "the model is any iterate except the start, drawn beforehand with equal probabilities",
    ),
    (
        "or the points and noisy gradients of all nodes of its trees",
        "or the points and noisy gradients of all nodes of the trees",
    ),
    (
        "it is the first leaf whose noisy gradient is short, or any leaf with the same chance",
        "the model is the first leaf whose noisy gradient is short, or a leaf drawn with equal probabilities",
    ),
    (
        "which record stood in any one place: the law of the model hardly changes when one record is replaced by any "
        "other; how many there are is public",
        "for each single place in the data set, which record was in this place; this is hidden because the "
        "distribution of the model hardly changes when one record is replaced by any other; the number of records is "
        "public",
    ),
    (
        "which record was in any one place: the distribution of the model hardly changes when one record is replaced "
        "by any other; the number of records is public",
        "for each single place in the data set, which record was in this place; this is hidden because the "
        "distribution of the model hardly changes when one record is replaced by any other; the number of records is "
        "public",
    ),
    (
        "whether any one record was there: the law of the model hardly changes when one record is added or left out, "
        "where sums are divided by the same public n, and the place of a record that is left out stays empty, as a "
        "row of zeros",
        "whether any one record was present: the distribution of the model hardly changes when one record is added or "
        "left out; in both cases, sums are divided by the same public n, and the place of a record that is left out "
        "stays empty, as a row of zeros",
    ),
    (
        "the same algorithm with the same constants, run on the records with the deleted ones replaced by any others; "
        "under add-remove not that, but with their places left empty: towards that, doing nothing satisfies the "
        "epsilons of `deletions`",
        "the same algorithm with the same constants, run on the records with the deleted ones replaced by any others; "
        "under add-remove, the guarantee does not cover replacements, and the comparator is a run in which the places "
        "of the deleted records are empty; compared with the comparator, the unchanged model satisfies the epsilons of "
        "`deletions`",
    ),
    (
        "under add-remove, this is not covered, and the comparator has empty places instead of the deleted ones; "
        "compared with the comparator, the unchanged model satisfies the epsilons of `deletions`",
        "under add-remove, the guarantee does not cover replacements, and the comparator is a run in which the places "
        "of the deleted records are empty; compared with the comparator, the unchanged model satisfies the epsilons of "
        "`deletions`",
    ),
    (
        "disjoint parts: each record is read in at most one of them, by its position",
        "disjoint parts: each record is read in at most one part, which depends on its position",
    ),
    (
        "they were read by position, each in one part alone, so that every part may spend all of epsilon",
        "each record was read in only one part, which depends on its position, so every part may use the whole epsilon",
    ),
    (
        "nothing about a model retrained with another n, or by another algorithm",
        "the guarantee does not cover a comparison with a model that is retrained with another n, or by another "
        "algorithm",
    ),
    (
        "nothing about several models learned from the same records together: ",
        "the guarantee does not cover several models together that were learned from the same records: ",
    ),
    (
        "nothing about deletions that were chosen after seeing the model, beyond what holds for every record at once",
        "the guarantee does not cover deletions that were chosen after seeing the model; for such deletions, only "
        "statements that hold for every record at once are valid",
    ),
    (
        "the guarantee does not cover deletions that were chosen after seeing the model, beyond what holds for every "
        "record at once",
        "the guarantee does not cover deletions that were chosen after seeing the model; for such deletions, only "
        "statements that hold for every record at once are valid",
    ),
    (
        "nothing about what the population has in common: what can be learned without a record may be learned",
        "the guarantee does not hide what the population has in common: anything that can be learned without a record "
        "may be learned",
    ),
    (
        "learning ended, and nobody concludes anything from that",
        "learning ended without an error, and nobody infers anything from that",
    ),
    (
        "an error, such as that of records of one class only, or of a solver that did not get near enough, tells of "
        "the records",
        "an error reveals something about the records, for example that they have only one class, or that a solver "
        "did not come close enough to the minimiser",
    ),
    (
        "a row that is too long was scaled down, a target clipped, each by itself",
        "every row that was too long was scaled down, and every target was clipped, each by itself",
    ),
    ("; rows after a random projection once more", "; rows were scaled down once more after a random projection"),
    ("every record keeps to its bounds", "every record is within its bounds"),
    (
        ", norm and number of records do not depend on the records",
        ", the largest norm and the number of records do not depend on the records",
    ),
    (
        "they were given, or follow from what was given and from the number of records: read off the records, they "
        "would tell of them",
        "they were given, or follow from given values and the number of records; values that are computed from the "
        "records would reveal something about them",
    ),
    (
        "the order of records does not depend on what they are",
        "the order of the records does not depend on their contents",
    ),
    (
        "every step goes on from a sum with exactly Gaussian noise",
        "every step starts from a sum with exactly Gaussian noise",
    ),
    (
        "it goes on from what was stored, which is within noise_resolution of that; what this adds to how far one "
        "record moves the next release is not counted",
        "it starts from the stored sum, which differs from the exact one by at most noise_resolution; this can "
        "increase the effect of one record on the next release, and epsilon does not include the increase",
    ),
    (
        "it starts from the stored sum, which is within noise_resolution of that; how much this increases the effect "
        "of one record on the next release is not included",
        "it starts from the stored sum, which differs from the exact one by at most noise_resolution; this can "
        "increase the effect of one record on the next release, and epsilon does not include the increase",
    ),
    (
        "it is within noise_resolution of exact Gaussian noise, made of the operating system's or a cipher's bits; "
        "attacks on smaller differences (Mironov 2012) are not excluded, nor those on how long learning took",
        "the noise is within noise_resolution of exact Gaussian noise; its random bits come from the operating system "
        "or from a cipher; attacks that use differences smaller than noise_resolution (Mironov 2012) or the duration "
        "of learning are not excluded",
    ),
    (
        "it is within noise_resolution of exact Gaussian noise; its random bits come from the operating system or from "
        "a cipher; attacks that use smaller differences (Mironov 2012) or the duration of learning are not excluded",
        "the noise is within noise_resolution of exact Gaussian noise; its random bits come from the operating system "
        "or from a cipher; attacks that use differences smaller than noise_resolution (Mironov 2012) or the duration "
        "of learning are not excluded",
    ),
    (
        "its key was given by whoever learned, who says that it came from",
        "the caller gave the key of the noise, and states that it came from",
    ),
    (
        "Poisson batches, which are secret: each record is in each with probability ",
        "Poisson batches, which are secret: each record is in each batch with probability ",
    ),
    (", by itself", ", independently of all others"),
)
