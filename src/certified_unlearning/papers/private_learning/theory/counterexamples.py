"""Instances on which statements of chapters 2 and 3 fail, computed exactly."""

import math

import numpy as np


def lemma_25_deviation(*, n: int, d: int) -> float:
    """Return the expected difference of population and empirical gradients on the instance of E30.

    Rows are ``(e_0 + e_i) / sqrt(2)`` with ``i`` uniform over ``d`` places. The slope on a row is 1 if any of the ``n``
    records has the same ``i``, and otherwise -1. The first coordinates of the two gradients differ by ``sqrt(2)`` times
    the share of places ``i`` that no record has. The squares of the other coordinates' differences sum to at most ``(1
    / n + 1 / d) / 2``; this sum is left out.
    """
    return math.sqrt(2) * math.exp(n * math.log1p(-1 / d))


def lemma_25_bound(*, n: int, d: int, beta: float) -> float:
    """Return Lemma 25's bound on the difference of population and empirical gradients.

    The bound is computed with ``G = X = H = 1`` and for weights of norm ``sqrt(2 d)``.
    """
    size = math.sqrt(2 * d)
    return 4 * (math.log(2 * n**1.5 * size) + math.sqrt(math.log(1 / beta))) / math.sqrt(n)


def padded_projection_distance(*, columns: int, features: int, seed: int) -> float:
    """Return ``|I - [Phi; 0]|`` for a random projection, which Theorem 21's proof bounds by about ``1 / sqrt(k)``."""
    matrix = np.zeros((features, features))
    matrix[:columns] = np.random.default_rng(seed).normal(size=(columns, features)) / math.sqrt(columns)
    return float(np.linalg.norm(np.eye(features) - matrix, ord=2))


def one_pass_distance(*, records: int, step_size: float, smoothness: float) -> float:
    """Return the distance between the final weights of two passes, divided by ``2 eta G``.

    The passes differ only in their first records, which have slopes 1 and -1. The losses have one coordinate. They are
    quadratic with curvature ``smoothness`` near the weights, so every further record multiplies the distance by
    ``|1 - eta H|``.
    """
    return abs(1 - step_size * smoothness) ** (records - 1)
