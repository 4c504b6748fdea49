"""Data deletion as Forget Unlearning defines it: interactions with adaptive requesters, and attacks.

=====================  ====================================================================================
`interaction`          Algorithm 1 with its rules enforced: service, requester, published models
`linear_losses`        every mechanism that learns by gradient descent, on linear losses of one coordinate
`encoding`             encode-then-delete, and its control with fixed requests
`constructions`        sums, medians and counting, and the attacks on them
`counterexamples`      services that break Theorems 4.1 and 4.3 as printed
`advantage`            measured advantages with exact confidence bounds; `measurement` runs attacks
`cases`, `*_cases`     each attack on each mechanism, with its theory
=====================  ====================================================================================

The paper's mechanism is `mechanisms.noisy_gradient_deletion`. The modules `papers.forget_unlearning.attacks` and
`papers.forget_unlearning.risk` make the tables.
"""
