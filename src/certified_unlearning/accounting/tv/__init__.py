"""Exact unlearning by total variation: how often an edit makes a run be computed again, and what noise that asks for.

Source: Ullah, Statistical Learning via Stochastic Optimization under Data Privacy Considerations (dissertation, Johns
Hopkins University, 2024), chapters 4 and 5; theorem numbers are the dissertation's. That a method unlearns exactly
rests on none of these numbers: they say what it costs (recompute probabilities) and how accurate it is (excess risks,
whose constants and logarithms are dropped). What is marked *derived* is not printed there.

`distances` between laws; `subsampling`, `recomputation` and `tree`: probabilities of computing again, as printed and as
they are; `erm` and `one_pass`: the parameters of chapters 4 and 5; `planning`: the least noise for a wanted
probability. What only claims compare is in `papers.tv_stability.theory`.
"""
