"""Logistic, softmax and ridge regression in float64, for solvers with a certified stopping rule.

The rounding errors of all results have known bounds (`accounting.residual.rounding`).

The objective is ``f(w) = (1/n) sum_i loss(x_i, y_i, w) + (m/2) |w|^2`` over rows of norm at most 1. Removed records
leave rows of zeros (adjacency `zero-out`), which have no gradient. Rows are read in blocks, so no other array of their
size is created. Rows may be sparse (`objectives.sparse`); their blocks are multiplied like arrays.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk, ssyrk
from scipy.sparse import csr_array, issparse
from scipy.special import expit

from certified_unlearning.accounting.core.losses import scores_per_record
from certified_unlearning.accounting.residual.rounding import Terms, block_rows, chain
from certified_unlearning.engine.compiled import gradient as compiled
from certified_unlearning.engine.compiled import softmax as compiled_softmax
from certified_unlearning.engine.objectives import sparse
from certified_unlearning.errors import ParameterError

Array = NDArray[np.float64]
Rows = Any
"""An array, or a sparse matrix; SciPy has no types for the latter."""
Product = Callable[[Array], Array]
"""A symmetric matrix, as a function that multiplies vectors by it."""
NARROW_ERROR = 1e-6
"""Upper bound on the error of float32 products, divided by the trace of the matrix."""


@dataclass(frozen=True)
class Regression:
    """A regularised loss of linear scores.

    Attributes:
        rows: Rows, shape ``(records, d)``. Dense rows are float32; they may be in a file, and they are not converted as
            a whole. Sparse rows are float64.
        labels: Labels, shape ``(records,)``: -1.0 or 1.0 for two classes, the class's number for more classes, targets
            for ridge regression.
        n: Divisor of the sum.
        strong_convexity: Strong convexity ``m``.
        classes: Number of classes, at least 2; 1 for ridge regression.
        class_weights: Factors by which the losses of records are multiplied, one for each class, at most 1; None if all
            are 1.
    """

    rows: Rows
    labels: NDArray[Any]
    n: int
    strong_convexity: float
    classes: int
    class_weights: tuple[float, ...] | None = None

    def sample(self, every: int) -> Self:
        """Return the regression on a sample that contains one of every ``every`` records."""
        rows, labels = self.rows[::every], self.labels[::every]
        if not issparse(rows):
            rows = np.ascontiguousarray(rows, np.float64)
        return replace(self, rows=rows, labels=labels, n=len(labels))

    def blocks(self) -> Iterator[tuple[Any, NDArray[Any]]]:
        """Yield rows and labels, block by block; rows of another type are converted to float64 one block at a time."""
        if issparse(self.rows):
            yield from self._sparse_blocks
            return
        for some in _blocks_of(*self.rows.shape):
            yield np.asarray(self.rows[some], np.float64), self.labels[some]

    @functools.cached_property
    def _sparse_blocks(self) -> list[tuple[csr_array, NDArray[Any]]]:
        return [(block, self.labels[some]) for some, block in sparse.blocks(self.rows)]

    @functools.cached_property
    def terms(self) -> Terms:
        """Largest number of terms in a row's score, and largest number of terms in a sum over the rows of `blocks`."""
        records, features = self.rows.shape
        return sparse.terms(self.rows) if issparse(self.rows) else Terms(features, chain(records, features))

    @property
    def dimension(self) -> int:
        """Number of weights."""
        return int(self.rows.shape[1]) * scores_per_record(self.classes)


@dataclass(frozen=True)
class LogisticRegression64(Regression):
    """Logistic regression; weights have shape ``(d,)``.

    Attributes:
        positive: The class that is separated from all other classes, if labels are the numbers of three classes or
            more; None if labels are -1.0 and 1.0. In both cases, a record has the class weight of its own class.
    """

    positive: int | None = None

    def value(self, weights: Array) -> float:
        """Return ``f(w)``."""
        losses = sum(
            float(weighted(np.logaddexp(0.0, -_signs(y, self.positive) * (x @ weights)), y, self.class_weights).sum())
            for x, y in self.blocks()
        )
        return losses / self.n + self.strong_convexity / 2 * float(weights @ weights)

    def gradient(self, weights: Array) -> Array:
        """Return the gradient, shape ``(d,)``."""
        if compiled.takes(self.rows, self.labels):
            size = block_rows(self.rows.shape[1])
            total = compiled.logistic_gradient(
                self.rows, self.labels, weights, block=size, class_weights=self.class_weights
            )
        elif self.positive is not None:
            only: Array = gradients(self, weights[None], [self.positive])[0]
            return only
        else:
            total = np.zeros_like(weights)
            for x, y in self.blocks():
                total += x.T @ _coefficients(x @ weights, y, self.class_weights)
        return total / self.n + self.strong_convexity * weights

    def gradient_and_farthest(self, weights: Array, since: Array) -> tuple[Array, float]:
        """Return the gradient, and the largest difference between a row's score at ``weights`` and at ``since``.

        Args:
            weights: Weights, shape ``(d,)``.
            since: Weights from which the change of a score is measured, shape ``(d,)``. In this method, labels must be
                -1 and 1.
        """
        way = weights - since
        if compiled.takes(self.rows, self.labels):
            size = block_rows(self.rows.shape[1])
            total, farthest = compiled.gradient_and_farthest(
                self.rows, self.labels, weights, way, block=size, class_weights=self.class_weights
            )
        else:
            both, total, farthest = np.stack([weights, way], axis=1), np.zeros_like(weights), 0.0
            for x, y in self.blocks():
                scores, moves = (x @ both).T
                total += x.T @ _coefficients(scores, y, self.class_weights)
                farthest = max(farthest, float(np.abs(moves).max()))
        return total / self.n + self.strong_convexity * weights, farthest

    def gradient_and_hessian(self, weights: Array, *, narrow: bool = False) -> tuple[Array, Array]:
        """Return the gradient and the Hessian, shape ``(d, d)`` in Fortran order; only its lower half is set.

        Args:
            weights: Weights, shape ``(d,)``.
            narrow: Whether the Hessian's products are computed in float32, if rows are dense; this halves the time.
        """
        total, d = np.zeros_like(weights), len(weights)
        hessian = np.zeros((d, d), order="F")
        for x, y in self.blocks():
            scores = x @ weights
            total += x.T @ _coefficients(scores, y, self.class_weights, self.positive)
            scaled = _scaled_rows(x, scores, y, self.class_weights)
            hessian += _squared(scaled, narrow=narrow)  # The block is added as a whole, as `chain` assumes.
        hessian /= self.n
        hessian[np.diag_indices(d)] += self.strong_convexity
        return total / self.n + self.strong_convexity * weights, hessian

    def hessian_at(self, weights: Array) -> Product:
        """Return a function that multiplies vectors by the Hessian at ``weights``."""
        curvatures = [weighted(_curvatures(x @ weights), y, self.class_weights) for x, y in self.blocks()]

        def product(vector: Array) -> Array:
            total = np.zeros_like(vector)
            for (x, _), known in zip(self.blocks(), curvatures, strict=True):
                total += x.T @ (known * (x @ vector))
            return total / self.n + self.strong_convexity * vector

        return product


class SoftmaxRegression64(Regression):
    """Softmax regression; weights have shape ``(classes d,)``, class by class."""

    def value(self, weights: Array) -> float:
        """Return ``f(w)``."""
        by_class, losses = weights.reshape(self.classes, -1), 0.0
        for x, y in self.blocks():
            scores = x @ by_class.T
            largest = scores.max(axis=1)
            logs = np.log(np.exp(scores - largest[:, None]).sum(axis=1)) + largest
            # A row of zeros has a constant loss, which does not affect the gradient.
            losses += float(weighted(logs - scores[np.arange(len(y)), y], y, self.class_weights).sum())
        return losses / self.n + self.strong_convexity / 2 * float(weights @ weights)

    def gradient(self, weights: Array) -> Array:
        """Return the gradient, shape ``(classes d,)``."""
        by_class = weights.reshape(self.classes, -1)
        if compiled_softmax.takes(self.rows, self.labels):
            size = block_rows(self.rows.shape[1])
            total = compiled_softmax.softmax_gradient(
                self.rows, self.labels, by_class, block=size, class_weights=self.class_weights
            )
        else:
            total = np.zeros_like(by_class)
            for x, y in self.blocks():
                probabilities = _softmax(x @ by_class.T)
                probabilities[np.arange(len(y)), y] -= 1
                total += weighted(probabilities.T, y, self.class_weights) @ x
        return total.ravel() / self.n + self.strong_convexity * weights

    def hessian_at(self, weights: Array) -> Product:
        """Return a function that multiplies vectors by the Hessian at ``weights``."""
        by_class = weights.reshape(self.classes, -1)
        known = [_softmax(x @ by_class.T) for x, _ in self.blocks()]

        def product(vector: Array) -> Array:
            of_class = vector.reshape(self.classes, -1)
            total = np.zeros_like(of_class)
            for (x, y), probabilities in zip(self.blocks(), known, strict=True):
                products = probabilities * (x @ of_class.T)
                products -= probabilities * products.sum(axis=1, keepdims=True)
                total += weighted(products.T, y, self.class_weights) @ x
            return total.ravel() / self.n + self.strong_convexity * vector

        return product

    def mean_curvature(self, weights: Array) -> Array:
        """Return ``(1/n) sum omega x x' + m I`` as the lower half of a ``(d, d)`` array in Fortran order.

        Here, ``omega = (1 - sum p^2) / (classes - 1)``. It is the mean of those ``classes - 1`` eigenvalues of a
        record's curvature ``diag(p) - p p'`` that need not be 0. The result only guides solvers, so float32 rows are
        multiplied in float32.
        """
        by_class, d = weights.reshape(self.classes, -1), self.rows.shape[1]
        total, size = np.zeros((d, d), order="F"), max(block_rows(d), 2 * d)
        syrk = ssyrk if self.rows.dtype == np.float32 else dsyrk
        for first in range(0, len(self.labels), size):
            x, y = self.rows[first : first + size], self.labels[first : first + size]
            probabilities = _softmax(x @ by_class.T.astype(x.dtype))
            omega = (1 - (probabilities * probabilities).sum(axis=1)) / (self.classes - 1)
            roots = np.sqrt(np.maximum(weighted(omega, y, self.class_weights), 0)).astype(x.dtype)
            total += syrk(1.0, (x * roots[:, None]).T, lower=1)
        total /= self.n
        # The error of float32 products is added, because the matrix will be factored.
        total[np.diag_indices(d)] += self.strong_convexity + NARROW_ERROR * float(np.trace(total))
        return total


class RidgeRegression64(Regression):
    """Ridge regression, with the loss ``(x.w - y)^2 / 2``; weights have shape ``(d,)``."""

    def value(self, weights: Array) -> float:
        """Return ``f(w)``."""
        losses = sum(float(((x @ weights - y) ** 2).sum()) / 2 for x, y in self.blocks())
        return losses / self.n + self.strong_convexity / 2 * float(weights @ weights)

    def gradient(self, weights: Array) -> Array:
        """Return the gradient, shape ``(d,)``."""
        total = np.zeros_like(weights)
        for x, y in self.blocks():
            total += x.T @ (x @ weights - y)
        return total / self.n + self.strong_convexity * weights

    def gradient_and_hessian(self, weights: Array, *, narrow: bool = False) -> tuple[Array, Array]:
        """Return the gradient and the Hessian, shape ``(d, d)`` in Fortran order; only its lower half is set.

        The arguments are those of `LogisticRegression64`.
        """
        total, d = np.zeros_like(weights), len(weights)
        hessian = np.zeros((d, d), order="F")
        for x, y in self.blocks():
            total += x.T @ (x @ weights - y)
            hessian += _squared(x, narrow=narrow)  # The block is added as a whole, as `chain` assumes.
        hessian /= self.n
        hessian[np.diag_indices(d)] += self.strong_convexity
        return total / self.n + self.strong_convexity * weights, hessian

    def hessian_at(self, weights: Array) -> Product:
        """Return a function that multiplies vectors by the Hessian, which is the same for all ``weights``."""

        def product(vector: Array) -> Array:
            total = np.zeros_like(vector)
            for x, _ in self.blocks():
                total += x.T @ (x @ vector)
            return total / self.n + self.strong_convexity * vector

        return product


def gradients(objective: Regression, weights: Array, positives: Sequence[int]) -> Array:
    """Return the gradients for some classes against all others, in one pass; shape ``(len(positives), d)``.

    Args:
        objective: The regression; its labels are the numbers of three or more classes.
        weights: Weights of each of these classes, shape ``(len(positives), d)``.
        positives: Numbers of the classes for which gradients are computed.
    """
    if compiled.takes(objective.rows, objective.labels, np.int64):
        total = compiled.class_gradients(
            objective.rows,
            objective.labels,
            weights,
            positives,
            block=block_rows(objective.rows.shape[1]),
            class_weights=objective.class_weights,
        )
    else:
        total = np.zeros_like(weights)
        for x, y in objective.blocks():
            total += (x.T @ _coefficients_by_class(x @ weights.T, y, positives, objective.class_weights)).T
    return total / objective.n + objective.strong_convexity * weights


def removed_gradients(
    rows: Array, numbers: NDArray[Any], weights: Array, n: int, class_weights: tuple[float, ...] | None
) -> Array:
    """Return `removed_gradient` for every class against all others, shape ``(classes, d)``.

    Args:
        rows: Rows of the removed records.
        numbers: Class of each of these records, as a number.
        weights: Weights of every class, shape ``(classes, d)``.
        n: Divisor of the sums.
        class_weights: Weight of every class; None if all are 1.
    """
    ghat, every = np.zeros_like(weights), range(len(weights))
    for some in _blocks_of(len(rows), rows.shape[1]):
        coefficients = _coefficients_by_class(rows[some] @ weights.T, numbers[some], every, class_weights)
        ghat -= coefficients.T @ rows[some]
    return ghat / n


def removed_gradient(
    rows: Array,
    labels: NDArray[Any],
    weights: Array,
    n: int,
    class_weights: tuple[float, ...] | None = None,
    *,
    squared: bool = False,
) -> Array:
    """Return ``ghat``, the change of the gradient when these records are removed, shape ``(d,)``.

    The gradient is that of ridge regression if ``squared``, and otherwise that of logistic regression.
    """
    ghat = np.zeros_like(weights)
    # Rows are processed in blocks that are added as a whole, as `accounting.residual.rounding.chain` assumes.
    for some in _blocks_of(len(rows), rows.shape[1]):
        scores = rows[some] @ weights
        coefficients = scores - labels[some] if squared else _coefficients(scores, labels[some], class_weights)
        ghat -= rows[some].T @ coefficients
    return ghat / n


def curved_rows(rows: Array, labels: NDArray[Any], at: Array, class_weights: tuple[float, ...] | None = None) -> Array:
    """Return rows ``sqrt(s'(x.w)) x``.

    The outer products of the returned rows with themselves, added up and divided by ``n``, are the records' part of a
    Hessian.

    Args:
        rows: Rows of the records, shape ``(records, d)``.
        labels: Labels of the records, which determine their class weights.
        at: Weights at which the Hessian is computed, shape ``(d,)``.
        class_weights: Factors by which the losses of records are multiplied, one for each class; None if all are 1.
    """
    return root_curvatures(rows, labels, at, class_weights)[:, None] * rows


def root_curvatures(
    rows: Array, labels: NDArray[Any], at: Array, class_weights: tuple[float, ...] | None = None
) -> Array:
    """Return ``sqrt(s'(x.w))``, the factors by which `curved_rows` multiplies rows.

    Args:
        rows: Rows of the records, shape ``(records, d)``.
        labels: Labels of the records, which determine their class weights.
        at: Weights, shape ``(d,)``; or weights for every class against all others, shape ``(classes, d)``.
        class_weights: Factors by which the losses of records are multiplied, one for each class; None if all are 1.

    Returns:
        The factors, shape ``(records,)`` or ``(classes, records)``.
    """
    roots: Array = np.sqrt(weighted(_curvatures(rows @ at.T).T, labels, class_weights))
    return roots


def downdate(matrix: Array, curved: Array, n: int) -> None:
    """Subtract the contribution of some records from the lower half of a Hessian, in place.

    Args:
        matrix: The Hessian, shape ``(d, d)``, in Fortran order.
        curved: `curved_rows` of these records; for ridge regression, their rows.
        n: Divisor of the sums.

    Raises:
        ParameterError: The matrix cannot be changed in place.
    """
    # Without this check, SciPy's wrapper would write to read-only memory.
    if not matrix.flags.writeable:
        raise ParameterError("a matrix to downdate must not be read-only; copy it first")
    for some in _blocks_of(*curved.shape):
        # The Hessian is changed in place, because a separate matrix for the records' part costs three times as much at
        # a thousand columns.
        if dsyrk(-1.0 / n, curved[some], 1.0, matrix, trans=1, lower=1, overwrite_c=1) is not matrix:
            raise ParameterError("a matrix to downdate must be float64 and in Fortran order")


def _blocks_of(records: int, features: int) -> Iterator[slice]:
    size = block_rows(features)
    return (slice(first, first + size) for first in range(0, records, size))


def _scaled_rows(rows: Any, scores: Array, labels: NDArray[Any], class_weights: tuple[float, ...] | None = None) -> Any:
    """Return ``sqrt(s(z) s(-z)) x`` for rows ``x`` with scores ``z``: the Hessian is the sum of their squares."""
    factors = np.sqrt(weighted(_curvatures(scores), labels, class_weights))
    return sparse.multiplied(rows, factors) if issparse(rows) else rows * factors[:, None]


def _squared(rows: Any, *, narrow: bool = False) -> Array:
    """Return ``X'X``; at least its lower half is set. If ``narrow``, products of dense rows are computed in float32."""
    if issparse(rows):
        return (rows.T @ rows).toarray()  # type: ignore[no-any-return]
    if narrow:
        return ssyrk(1.0, rows.astype(np.float32).T, lower=1)  # type: ignore[no-any-return]
    return dsyrk(1.0, rows.T, lower=1)  # type: ignore[no-any-return]


def weighted(values: Array, labels: NDArray[Any], class_weights: tuple[float, ...] | None) -> Array:
    """Return values multiplied by the weights of the records' classes; the last axis is that of the records."""
    if class_weights is None:
        return values
    numbers = (labels > 0).astype(np.int64) if len(class_weights) == 2 else labels
    product: Array = values * np.array(class_weights)[numbers]
    return product


def _coefficients(
    scores: Array, labels: NDArray[Any], class_weights: tuple[float, ...] | None, positive: int | None = None
) -> Array:
    """Return the derivative of each record's loss with respect to its score."""
    signs = _signs(labels, positive)
    return weighted(-signs * expit(-signs * scores), labels, class_weights)


def _coefficients_by_class(
    scores: Array, numbers: NDArray[Any], positives: Sequence[int], class_weights: tuple[float, ...] | None
) -> Array:
    """Return the derivatives of records' losses with respect to some classes' scores, shape ``(records, classes)``."""
    signs = np.where(numbers[:, None] == np.asarray(positives), 1.0, -1.0)
    return weighted((-signs * expit(-signs * scores)).T, numbers, class_weights).T


def _signs(labels: NDArray[Any], positive: int | None) -> NDArray[Any]:
    """Return labels as -1 and 1; if ``positive`` is a class, its number becomes 1, and all other numbers become -1."""
    return labels if positive is None else np.where(labels == positive, 1.0, -1.0)


def _curvatures(scores: Array) -> Array:
    curvatures: Array = expit(scores) * expit(-scores)
    return curvatures


def _softmax(scores: Array) -> Array:
    exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
    probabilities: Array = exponentials / exponentials.sum(axis=1, keepdims=True)
    return probabilities
