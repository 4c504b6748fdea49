"""The table of claims: what a paper says, checked against its own formulas and against our runs.

A claim (`model`, written down in YAML) names a measure (`registry`; each paper has its own) and the relation that its
numbers should have to the paper's (`relations`). `verdicts.evaluate` gives each a verdict: ``reproduced``,
``contradicted`` with both numbers, or ``not run`` with what is missing. None of them is written by hand. A
contradiction has a `severity`, which follows from the measured gap; misprints are marked as such.

A claim belongs to the paper, to its authors' code, or to this project. The three kinds are counted separately
(`verdicts.tallies`).

There are three kinds of measures. Most evaluate the paper's formulas with its constants and need no results (except for
the spectral smoothness). Others read accuracies, steps and data sets from the results of our runs. Self-checks belong
to this project and test whether our own numbers are sound; a reproduced self-check says nothing about the paper's
findings.
"""
