"""Bounds on the rounding errors of gradients in float64. The evaluated norm plus the bound is a true upper bound.

The unit roundoff is ``u = 2^-53``, and ``gamma_k = k u / (1 - k u)``. A sum or an inner product of ``k`` terms, in any
order, with or without fused operations, is off by at most ``gamma_k`` times the sum of its terms' absolute values
(Higham, Accuracy and Stability of Numerical Algorithms, sections 3.1 and 4.2). For numbers that are added in blocks of
``b``, ``k`` is ``b`` plus the number of blocks. This ``k`` is called the *chain*. Algorithms that multiply matrices
with fewer operations, such as Strassen's, are not covered. None of the BLAS libraries with which NumPy is built uses
them. Rows have norm at most ``r = 1 + 1.1e-6`` (`NORM_EXCESS`), because they are checked to 1e-6. The stored numbers of
rows and weights count as exact, because the objective is defined on them. The derivation is for the logistic loss with
``p = s(-y x.w)``; brackets contain the values for softmax.

*Gradient*, ``-(1/n) sum y p x + m w``. A score is off by ``gamma_d r |w|``. Hence ``p`` is off by a quarter [a half] of
this, plus the error of evaluating ``s``. ``1/(1 + exp(-z))`` needs one exponential, one sum and one quotient, whose
joint relative error is 4 ``u``. `COEFFICIENT_ERROR` is twice this error [``(2 K + 16) u`` in norm, as in
`accounting.core.rounding`]. A row's part of the sum is at most ``r`` [``sqrt(2) r``], so the sum over ``N`` rows is off
by ``gamma_chain`` times ``N r``. The division by ``n``, the product ``m w`` and the last sum each add a relative error
of one ``u``. Class weights of at most 1 multiply the coefficients. All bounds still hold, and the ``u`` of this product
is covered by the doubled error.

*Hessian*, ``(1/n) sum q x x' + m I`` with ``q = s(z) s(-z)``, evaluated as a sum over rows ``sqrt(q) x``. ``q`` is off
by `THIRD_DERIVATIVE` times the error of a score, because ``|q'| <= 1/(6 sqrt 3)``. The two sigmoids add a relative
error of 16 ``u``. The products (including a class weight), the square root, the scaling and the squaring increase this
relative error to 25 ``u``. A row's part has Frobenius norm at most ``r^2 / 4``, and Frobenius norms bound spectral
norms. So the sum is off by ``(gamma_chain + 25 u) N r^2 / 4 / n`` plus the effect of the scores' errors. A *downdate*
adds a block's rows to the matrix itself, in an order that the library chooses. So the chain of a downdate has one sum
per row and two more sums per block. The norm of the whole matrix is ``|H|_F <= r^2 / 4 + sqrt(d) m``.

*A Hessian of float32 products*: the rows ``sqrt(q) x`` of a block are converted to float32 and multiplied in float32.
The blocks' sums are added in float64. With the unit roundoff of float32, ``u = 2^-24``, a product of two rounded
numbers has a relative error of two ``u``, and a sum over ``b`` rows is off by ``gamma_b``. So float32 adds an error of
at most ``gamma_{b+4}`` times the sum of the terms' absolute values, and a row's part of this sum is at most ``r^2 / 4``
in Frobenius norm. Products of lower precision, which some libraries compute on request, are not covered.

*Ridge regression*, ``(1/n) sum (x.w - y) x + m w`` with targets of absolute value at most 1. A coefficient is at most
``r |w| + 1``. Its error is that of the score plus one ``u`` for the difference. The Hessian, ``X'X / n + m I``, does
not depend on scores, and ``r^2`` replaces ``r^2 / 4``.

*Sparse rows* have the same sums with fewer terms. A score is the sum over a row's stored entries, one after another,
and an entry of ``X'c`` is the sum over a column's stored entries. SciPy's products of CSR and CSC matrices are such
loops. Terms that are not stored are exact zeros, and adding an exact zero causes no rounding. So the largest number of
entries in a row replaces ``d``. In the chain, the largest number of entries in a column replaces the number of rows in
a block (`sparse_terms`). With at most `NARROW` columns, blocks of sparse rows are as large as blocks of dense rows. So
bounds in terms of ``d`` and `chain` also hold for sparse rows.

*A product* ``H v`` is off by at most ``gamma_d |H|_F |v|``, because taking absolute values of entries does not change a
Frobenius norm.

No bound relies on the accuracy of a matrix factor or of a solution computed from this factor. A step ``v`` may be any
computed vector, and its remainder ``g + H v`` is evaluated and bounded like all other quantities. Underflow adds an
error of at most the smallest normal number per product, even if a processor flushes to zero. All bounds are multiplied
by 1.01 to cover products of errors, and sums of bounds are multiplied by `OUTWARD` to cover their own rounding.
"""

import math
from typing import NamedTuple

from certified_unlearning.accounting.core.rounding import NORM_EXCESS, SMALLEST_NORMAL, UNIT_ROUNDOFF

UNIT = UNIT_ROUNDOFF["float64"]
LEAST = SMALLEST_NORMAL["float64"]
NARROW_UNIT = UNIT_ROUNDOFF["float32"]
OUTWARD = 1 + 2.0**-46
"""Factor that covers the rounding of a few dozen sums, products and roots of bounds. It exceeds 1 by 128 ``u``."""
ROW_NORM = 1 + NORM_EXCESS
"""``r``, the largest norm of a row."""
THIRD_DERIVATIVE = 1 / (6 * math.sqrt(3))
"""``sup |s''|`` of the logistic loss."""
COEFFICIENT_ERROR = 8 * UNIT
"""Relative error of an evaluated sigmoid."""
BLOCK_NUMBERS = 1 << 16
"""Number of entries in a block of rows. The rows of a block are multiplied at once, and a block of this size fits in a
processor's cache."""
NARROW = 1000
"""The largest number of columns at which sparse rows are multiplied in the same blocks as dense rows."""
SPARSE_ROWS = 4096
"""Least number of sparse rows that are multiplied at once, if there are more columns than `NARROW`."""
_INTERPLAY = 1.01


class Terms(NamedTuple):
    """The largest numbers of terms that are added one after another, for two kinds of sums.

    Attributes:
        score: Number of terms in the score of a row.
        total: Number of terms in an entry of a sum over rows.
    """

    score: int
    total: int


FEWEST_TERMS = Terms(1, 1)
"""Placeholder for sparse rows whose numbers of terms are not known yet."""


def block_rows(features: int) -> int:
    """Return the number of rows of a block, which has about `BLOCK_NUMBERS` entries and from 256 to 4096 rows."""
    return min(4096, max(256, BLOCK_NUMBERS // features))


def sparse_block_rows(records: int, features: int, entries: int) -> int:
    """Return the number of sparse rows of a block.

    If rows are wide, a block has so many rows that it contains, on average, at least one entry per column. The reason
    is that the sum over a block has a number for every column.

    Args:
        records: Number of rows.
        features: Number of columns.
        entries: Number of stored entries of all rows.
    """
    if features <= NARROW:
        return block_rows(features)
    return max(SPARSE_ROWS, math.ceil(features * records / max(1, entries)))


def sparse_terms(*, records: int, block: int, in_a_row: int, in_a_column: int) -> Terms:
    """Return the numbers of terms in products of blocks of sparse rows.

    Args:
        records: Number of rows.
        block: Number of rows of a block.
        in_a_row: Largest number of stored entries in a row.
        in_a_column: Largest number of stored entries in a column.
    """
    return Terms(in_a_row, min(in_a_column, block) + math.ceil(records / block) + 2)


def gamma(count: int) -> float:
    """Return ``gamma_k``, or infinity if ``k u`` is at least 1/2."""
    return _gamma(count, UNIT)


def _gamma(count: int, unit: float) -> float:
    return count * unit / (1 - count * unit) if count * unit < 0.5 else math.inf


def norm_above(evaluated: float, dimension: int) -> float:
    """Return a bound on the exact norm of ``dimension`` numbers, given their evaluated norm."""
    return (evaluated * (1 + gamma(dimension + 4)) + dimension * math.sqrt(LEAST)) * OUTWARD


def gradient_error(
    *,
    records: int,
    n: int,
    features: int,
    classes: int,
    weight_norm: float,
    strong_convexity: float,
    terms: Terms | None = None,
) -> float:
    """Return the largest distance of an evaluated gradient from the exact one, as the module's docstring derives it.

    Args:
        records: Number of summands, added in blocks of `block_rows`.
        n: Divisor of the sum.
        features: Number of columns of a row.
        classes: 2 for logistic regression, the number of classes for softmax regression, 1 for ridge regression.
        weight_norm: Bound on ``|w|``.
        strong_convexity: ``m`` of the regulariser; 0 for a sum over records without a regulariser.
        terms: Numbers of terms in the gradient's sums. If None, rows are dense.
    """
    terms = terms or Terms(features, chain(records, features))
    if classes == 1:
        longest = ROW_NORM * weight_norm + 1
        slope, coefficient_error = 1.0, 2 * UNIT * longest
    elif classes == 2:
        slope, coefficient_error, longest = 0.25, COEFFICIENT_ERROR, 1.0
    else:
        slope, coefficient_error, longest = 0.5, (2.0 * classes + 16) * UNIT, math.sqrt(2)
    mean = records / n
    scores = slope * gamma(terms.score) * ROW_NORM * weight_norm
    summed = (scores + coefficient_error) + gamma(terms.total) * longest
    regulariser = strong_convexity * weight_norm
    ends = 3 * UNIT * (mean * ROW_NORM * longest + regulariser)
    return _INTERPLAY * (mean * ROW_NORM * summed + ends) + _underflow(features * max(1, classes))


def curvature(classes: int) -> float:
    """Return the Frobenius norm of a record's largest contribution to the Hessian, for logistic or squared loss."""
    return ROW_NORM**2 if classes == 1 else ROW_NORM**2 / 4


def hessian_error(
    *,
    records: int,
    n: int,
    features: int,
    weight_norm: float,
    strong_convexity: float,
    classes: int = 2,
    downdated: bool = False,
    narrow: bool = False,
) -> float:
    """Return the largest error of an evaluated Hessian or downdate, in Frobenius norm.

    Args:
        records: Number of summands.
        n: Divisor of the sum.
        features: Number of columns of a row.
        weight_norm: Bound on ``|w|`` at the weights of the evaluation.
        strong_convexity: ``m``. It is needed for downdates, too, because they round the whole matrix.
        classes: 2 for the logistic loss, 1 for the squared loss.
        downdated: Whether the summands are subtracted from a Hessian, as in `downdate`.
        narrow: Whether rows are multiplied in float32, block by block.
    """
    mean = records / n
    scores = 0.0 if classes == 1 else THIRD_DERIVATIVE * gamma(features) * ROW_NORM**3 * weight_norm
    links = downdate_chain(records, features) if downdated else chain(records, features)
    summed = scores + (gamma(links) + 25 * UNIT) * curvature(classes)
    underflow = _underflow(features**2)
    if narrow:
        summed += _gamma(min(records, block_rows(features)) + 4, NARROW_UNIT) * curvature(classes)
        underflow += 8 * mean * features**2 * SMALLEST_NORMAL["float32"]
    ends = gamma(links if downdated else 4)
    ends *= hessian_norm(features=features, strong_convexity=strong_convexity, classes=classes)
    return _INTERPLAY * (mean * summed + ends) + underflow


def hessian_norm(*, features: int, strong_convexity: float, classes: int = 2) -> float:
    """Return a bound on the Frobenius norm of a Hessian: that of the data's part, `curvature`, plus that of ``m I``."""
    return (curvature(classes) + math.sqrt(features) * strong_convexity) * OUTWARD


def product_error(*, features: int, strong_convexity: float, norm: float, classes: int = 2) -> float:
    """Return the error of ``H x + y`` with a Hessian ``H``.

    A relative error of one ``u`` in ``y`` is not included.

    Args:
        features: Number of columns of a row, ``d``.
        strong_convexity: Strong convexity ``m``.
        norm: Norm of ``x``.
        classes: 2 for the logistic loss, 1 for the squared loss.
    """
    size = hessian_norm(features=features, strong_convexity=strong_convexity, classes=classes)
    return _INTERPLAY * gamma(features + 1) * size * norm + _underflow(features)


def score_move(evaluated: float, *, features: int, moved: float) -> float:
    """Return a bound, divided by ``r``, on the products of rows with a vector of differences.

    A product is off by ``gamma_d r`` times the vector's norm, and every difference has a relative error of one ``u``.

    Args:
        evaluated: The largest product, as evaluated.
        features: Number of columns of a row.
        moved: Bound on the vector's norm.
    """
    off = _INTERPLAY * (gamma(features) + 2 * UNIT) * ROW_NORM * moved + _underflow(features)
    return (evaluated + off) / ROW_NORM * OUTWARD


def chain(records: int, features: int) -> int:
    """Return the largest number of terms added one after another when blocks of rows are summed."""
    block = block_rows(features)
    return min(records, block) + math.ceil(records / block) + 2


def downdate_chain(records: int, features: int) -> int:
    """Return the largest number of terms added one after another when blocks of rows are added to a matrix."""
    return records + 2 * math.ceil(records / block_rows(features)) + 2


def _underflow(numbers: int) -> float:
    return 8 * numbers * LEAST
