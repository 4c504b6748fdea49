"""Certified SGD: it trains a network and, for each budget, a box of parameters that removals or additions could give.

If a prediction is constant over the box of a budget k, retraining would give the same prediction, whichever k records
of each batch were left out. So there is nothing to unlearn. Source: Wicker et al., *Certificates of Differential
Privacy and Unlearning for Gradient-Based Training*.
"""
