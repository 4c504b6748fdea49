"""Exact unlearning by total variation: how often an edit causes recomputation, and the noise that this requires.

Source: Ullah, Statistical Learning via Stochastic Optimization under Data Privacy Considerations (dissertation, Johns
Hopkins University, 2024), chapters 4 and 5; theorem numbers are the dissertation's. Exactness of a method does not
depend on these numbers: they state its cost (recompute probabilities) and its accuracy (excess risks, without constants
and logarithms). Results marked *derived* are not printed there.

`distances` between laws; `subsampling`, `recomputation` and `tree`: probabilities of a recomputation, printed and
actual; `erm` and `one_pass`: the parameters of chapters 4 and 5; `planning`: the least noise for a target probability.
Formulas that only claims compare are in `papers.tv_stability.theory`.
"""
