"""Exact unlearning by total variation: how often an edit causes recomputation, and how much noise the methods require.

Source: Ullah, Statistical Learning via Stochastic Optimization under Data Privacy Considerations (dissertation, Johns
Hopkins University, 2024), chapters 4 and 5; theorem numbers are the dissertation's. The exactness of a method does not
depend on these numbers. They state its cost (probabilities of recomputation) and its accuracy (excess risks, without
constants and logarithms). Results marked *derived* are not printed in the dissertation.

`distances` computes the total variation between Gaussians. `subsampling`, `recomputation` and `tree` compute the
probabilities of a recomputation: the printed ones and the actual ones. `erm` and `one_pass` compute the parameters of
chapters 4 and 5. `planning` computes the least noise for a target probability. Formulas that only claims need are in
`papers.tv_stability.theory`.
"""
