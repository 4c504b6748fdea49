"""Certified SGD: a network, and for each budget a box of all parameters that removals or additions could have led to.

A prediction that is constant over the box of a budget is the one that retraining without any k records of each batch
would give, so there is nothing to unlearn. Source: Wicker et al., *Certificates of Differential Privacy and Unlearning
for Gradient-Based Training*.
"""
