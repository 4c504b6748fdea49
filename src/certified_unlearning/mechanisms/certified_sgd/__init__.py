"""Certified SGD: a network is trained together with a box of parameters for each budget.

The box contains all parameters to which the budget's removals or additions could lead. If a prediction is constant over
the box of a budget k, retraining would give the same prediction, whichever k records of each batch were left out. So
there is nothing to unlearn. Source: Wicker et al., *Certificates of Differential Privacy and Unlearning for
Gradient-Based Training*.
"""
