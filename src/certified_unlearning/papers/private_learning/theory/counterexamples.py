"""Instances on which statements of chapters 2 and 3 fail, computed exactly."""

import math

import numpy as np


def lemma_25_deviation(*, n: int, d: int) -> float:
    """Return how far gradients of population and records are apart, expected, on the instance of E30.

    Rows are ``(e_0 + e_i) / sqrt(2)`` with ``i`` uniform on ``d`` places, slopes 1 where ``i`` is among the records and
    -1 elsewhere. The first coordinate differs by ``sqrt(2)`` times the share that no record has; the others, by
    squares, by at most ``(1 / n + 1 / d) / 2``, which is left out.
    """
    return math.sqrt(2) * math.exp(n * math.log1p(-1 / d))


def lemma_25_bound(*, n: int, d: int, beta: float) -> float:
    """Return what Lemma 25 states of it, with ``G = X = H = 1`` and weights of norm ``sqrt(2 d)``."""
    size = math.sqrt(2 * d)
    return 4 * (math.log(2 * n**1.5 * size) + math.sqrt(math.log(1 / beta))) / math.sqrt(n)


def padded_projection_distance(*, columns: int, features: int, seed: int) -> float:
    """Return ``|I - [Phi; 0]|`` for a random projection: Theorem 21's proof bounds it by about ``1 / sqrt(k)``."""
    matrix = np.zeros((features, features))
    matrix[:columns] = np.random.default_rng(seed).normal(size=(columns, features)) / math.sqrt(columns)
    return float(np.linalg.norm(np.eye(features) - matrix, ord=2))


def one_pass_distance(*, records: int, step_size: float, smoothness: float) -> float:
    """Return how far apart two passes of one coordinate end whose first record differs, divided by ``2 eta G``.

    Losses are quadratic with this curvature near the weights and slopes 1 and -1 of the records that differ, so the
    distance is multiplied by ``|1 - eta H|`` for every further record.
    """
    return abs(1 - step_size * smoothness) ** (records - 1)
