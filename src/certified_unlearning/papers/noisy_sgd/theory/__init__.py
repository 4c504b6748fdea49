"""Distance-based bounds on noisy SGD (Chien, Wang, Chen, Li, NeurIPS 2024), and values for comparison.

Setting: the records are divided into ``l = n/b`` batches of ``b`` records, which are visited in turn. A step is ``x <-
Proj_R(x - eta grad f_B(x) + sqrt(2 eta) sigma N(0, I))``. Losses are smooth, and ``m``-strongly convex or convex, so a
step contracts the distance of two points by ``c`` (``1 - eta m`` if steps are not too long). Each record's gradient has
norm at most ``M``. One record is replaced by another one, which takes its place. Learning takes ``T`` epochs, and
unlearning takes ``k`` steps (``K l`` in ``K`` epochs). Unlearning is compared with a run that has the new record
instead of the old record from the beginning. Both runs have the same number of steps, in the same order.

We had the paper's abstract and its published code, but not its text. The formulas were therefore derived anew, and the
derivation of each is given. The argument is the paper's: a bound on the distance of two learned models, which the noise
of unlearning then hides.
"""
