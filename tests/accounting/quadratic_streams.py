"""Request streams on quadratic losses, where every law is Gaussian: the oracle of the accountants' upper bounds."""

from hypothesis import strategies as st

from certified_unlearning.accounting import Problem


def exact_stream_renyi(alpha, problem, *, sigma, records_per_request, steps):
    """The Rényi divergence of unlearned from retrained model on ``(m/2) ||x - d||^2``, followed step by step.

    Learning is stationary, N(mean of the data, v). A request moves that mean by sensitivity / m, every time in the
    same direction; each step shrinks the model's distance from it. The variance stays v: it is the fixed point.
    """
    contraction = 1 - problem.step_size * problem.strong_convexity
    variance = 2 * problem.step_size * sigma**2 / (1 - contraction**2)
    distance = 0.0
    for number, count in enumerate(steps):
        sensitivity = problem.sensitivity(records_per_request, removed_before=number * records_per_request)
        distance += sensitivity / problem.strong_convexity
        for _ in range(count):
            distance *= contraction
    return alpha * distance**2 / (2 * variance)


@st.composite
def problems(draw):
    smoothness = 10 ** draw(st.floats(-2, 2))
    return Problem(
        n=draw(st.integers(200, 100_000)),
        strong_convexity=smoothness * 10 ** draw(st.floats(-4, 0)),
        smoothness=smoothness,
        lipschitz=10 ** draw(st.floats(-2, 2)),
        step_size=draw(st.floats(0.01, 1)) / smoothness,
        adjacency=draw(st.sampled_from(["replace", "zero-out", "remove"])),
    )


ORDERS = st.floats(-3, 4).map(lambda exponent: 1 + 10**exponent)
SIGMAS = st.floats(-3, 2).map(lambda exponent: 10**exponent)
RECORDS = st.integers(1, 20)
STEPS = st.lists(st.integers(0, 300), min_size=1, max_size=5)
