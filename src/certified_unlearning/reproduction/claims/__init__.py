"""The table of claims: statements of papers, compared with the papers' own formulas and with our runs.

A claim is an entry of a YAML file (`model`). It names a measure (`registry`; each paper has its own measures), and the
relation that the measured numbers should have to the claimed numbers (`relations`). `verdicts.evaluate` gives each
claim a verdict: ``reproduced``; ``contradicted``, with both numbers; or ``not run``, with what is missing. No verdict
is written by hand. A contradiction has a `severity`, which is computed from the measured gap. Misprints are marked in
the table.

The owner of a claim is the paper, its authors' code, or this project. Claims of the three owners are counted separately
(`verdicts.tallies`).

There are three kinds of measures. Most measures evaluate the paper's formulas with its constants. These measures need
no results (except for the spectral smoothness). Other measures read accuracies, steps and data sets from the results of
our runs. Self-checks belong to this project, and test whether our own numbers are sound. A reproduced self-check says
nothing about the paper's findings.
"""
