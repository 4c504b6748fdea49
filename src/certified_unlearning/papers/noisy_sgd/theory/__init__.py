"""Bounds on noisy SGD by distances of laws (Chien, Wang, Chen, Li, NeurIPS 2024), and what they are compared with.

Setting: the records are dealt into ``l = n/b`` batches of ``b`` that are visited in turn, and a step is
``x <- Proj_R(x - eta grad f_B(x) + sqrt(2 eta) sigma N(0, I))``. Losses are smooth, ``m``-strongly convex or convex, so
a step brings two points nearer by ``c`` (``1 - eta m`` for steps that are not too long); each record's gradient has
norm ``M`` at most. One record is replaced in its place. Learning takes ``T`` epochs, unlearning ``k`` steps (``K l`` in
``K`` epochs); it is compared with as many steps in the same order on the other data.

We had the paper's abstract and its published code, not its text. Formulas were derived anew, each with its derivation;
the paper's is the argument: how far apart learning can be at its end, then the noise of unlearning that hides it.
"""
