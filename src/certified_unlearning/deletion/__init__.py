"""Data deletion as Forget Unlearning defines it: the mechanism, interactions with adaptive requesters, and attacks.

=====================  ====================================================================================
`mechanism`            `NoisyGradientDeletion`: noisy gradient descent that learns and deletes, on `dynamics`
`interaction`          Algorithm 1 with its rules enforced: curator, requester, what is published
`curators`             every mechanism that learns by gradient descent, on linear losses of one coordinate
`encoding`             encode-then-delete, and its control with fixed requests
`constructions`        sums, medians and counting, and the attacks on them
`counterexamples`      what breaks Theorems 4.1 and 4.3 as printed
`advantage`            measured advantages with exact confidence bounds; `measurement`: attacks run
`cases`, `*_cases`     each attack on each mechanism, with its theory
`experiment`, `risk`   the tables of the experiment `deletion`; `parameters`: its settings
=====================  ====================================================================================
"""
