"""The table of claims: what a paper says, checked against its own formulas and against our runs.

A claim (`model`, written down in YAML) names a measure (`registry`; each paper has its own) and the relation that its
numbers should have to the paper's (`relations`). `verdicts.evaluate` gives each a verdict: ``reproduced``,
``contradicted`` with both numbers, or ``not run`` with what is missing. None of them is written by hand. A
contradiction has a `severity`, from the measured gap; a misprint is marked as one.

A claim is the paper's own, of its authors' code, or ours. The three are counted apart (`verdicts.tallies`).

What is measured is of three kinds. Most measures evaluate the paper's formulas under its constants and need no results
(the spectral smoothness does). Others read accuracies, steps and data sets from the results of our runs. Self-checks,
which are ours, find out whether our own numbers are sound; that they are reproduced says nothing of what the paper
found.
"""
