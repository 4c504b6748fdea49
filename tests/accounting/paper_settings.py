"""The data sets' constants as the paper uses them (langevin-unlearning, sections 5 and 7)."""

import dataclasses

from certified_unlearning.accounting import Problem, descent_step_size

EPSILONS = (0.05, 0.1, 0.5, 1, 2, 5)
MNIST_EIGENVALUE = 0.7308741769
CIFAR_EIGENVALUE = 0.692438


def binary(n: int, largest_eigenvalue: float = 1.0) -> Problem:
    """Binary logistic regression; the default eigenvalue gives Table 1's L."""
    smoothness = largest_eigenvalue / 4 + 1e-6 * n
    return Problem(n, 1e-6 * n, smoothness, 1, 1 / smoothness)


def for_descent(problem: Problem) -> Problem:
    return dataclasses.replace(
        problem,
        step_size=descent_step_size(strong_convexity=problem.strong_convexity, smoothness=problem.smoothness),
    )


MNIST = binary(11_982)
MNIST_SPECTRAL = binary(11_982, MNIST_EIGENVALUE)
CIFAR = binary(10_000)
CIFAR_SPECTRAL = binary(10_000, CIFAR_EIGENVALUE)
TEN_CLASSES = Problem(50_000, 0.05, 1.05, 2, 1 / 1.05)
ADULT = binary(29_304)
