"""Bounds on rounding errors of gradients in float64, which make "evaluated norm + bound" a true upper bound.

Unit roundoff ``u = 2^-53`` and ``gamma_k = k u / (1 - k u)``: a sum or an inner product of ``k`` terms, in any order,
with or without fused operations, is off by at most ``gamma_k`` times the sum of its terms' sizes (Higham, Accuracy
and Stability of Numerical Algorithms, sections 3.1 and 4.2). Numbers added in blocks of ``b`` count ``b`` and the
number of blocks: that is the *chain*. Products of matrices by fewer operations (Strassen) are not covered; no BLAS
that NumPy is built with uses them. Rows have norm at most ``r = 1 + 1.1e-6`` (`NORM_EXCESS`: they are checked to
1e-6). The stored numbers of rows and weights count as exact: the objective is defined on them. Derivation, for the
logistic loss with ``p = s(-y x.w)`` (softmax in brackets):

*Gradient*, ``-(1/n) sum y p x + m w``. A score is off by ``gamma_d r |w|``, hence ``p`` by a quarter (a half) of that,
and by the evaluation of ``s`` itself, `COEFFICIENT_ERROR`: ``1/(1 + exp(-z))`` takes one exponential, a sum and a
quotient, 4 ``u`` relative; twice that is counted (softmax: ``(2 K + 16) u`` in norm, as in `accounting.core.rounding`).
A row's part of the sum is at most ``r`` (``sqrt(2) r``), so the sum of ``N`` is off by ``gamma_chain`` times ``N r``.
Division by ``n``, ``m w`` and the last sum are one relative ``u`` each. Weights of classes, at most 1, multiply
coefficients: what they bound stays bounded, and their one ``u`` is within what is counted twice.

*Hessian*, ``(1/n) sum q x x' + m I`` with ``q = s(z) s(-z)``, evaluated as a sum over rows ``sqrt(q) x``: ``q`` is off
by `THIRD_DERIVATIVE` times what a score is, as ``|q'| <= 1/(6 sqrt 3)``, and by 16 ``u`` relative of two sigmoids,
which with the products (a class' weight included), root, scaling and squaring makes 25. A row's part has Frobenius norm
at most ``r^2 / 4``, and Frobenius norms bound spectral ones; so the sum is off by ``(gamma_chain + 25 u) N r^2 / 4 /
n`` and what the scores cost. A *downdate* adds a block's rows to the matrix itself, in an order that is the library's,
so that matrix and rows alike go through as many sums as there are rows, and blocks twice more: that is its chain. For
all of it ``|H|_F <= r^2 / 4 + sqrt(d) m``.

*A Hessian of float32 products*: the rows ``sqrt(q) x`` of a block become float32 and are multiplied in it; the blocks'
sums are added in float64. With the unit of float32, ``2^-24``, a product of two rounded numbers is off by two ``u``
relative, and a sum over ``b`` rows by ``gamma_b``. So this adds at most ``gamma_{b+4}`` times the sum of the terms'
sizes, of which a row has at most ``r^2 / 4`` in Frobenius norm. Products in fewer bits, which some libraries make if
they are asked to, are not covered.

*Ridge regression*, ``(1/n) sum (x.w - y) x + m w`` with targets of size at most 1: a coefficient is at most ``r |w| +
1``, off by what the score is and by one ``u`` of the difference; the Hessian, ``X'X / n + m I``, has no scores, and
``r^2`` takes the place of ``r^2 / 4``.

*Sparse rows* make the same sums with fewer terms: a score is the sum of a row's stored entries, one after another, and
an entry of ``X'c`` that of a column's. SciPy's products of CSR and CSC matrices are such loops; terms that are not
stored are exact zeros, which no sum rounds. So ``d`` becomes the most entries of a row, and in the chain the rows of a
block become the most entries of a column (`sparse_terms`). Up to `NARROW` columns the blocks are those of dense rows:
what is bounded by ``d`` and `chain` is bounded for sparse rows, too.

*A product* ``H v`` is off by ``gamma_d |H|_F |v|``: the same entries with absolute values have the same norm.

A factor of a matrix and a solution by it are never trusted: a step ``v`` is the numbers that came out, and what they
leave, ``g + H v``, is evaluated and bounded like everything else. Underflow costs at most the least normal number per
product, even if a processor flushes to zero. All bounds are multiplied by 1.01 for what errors do to each other, and
sums of bounds by `OUTWARD` for their own rounding.
"""

import math
from typing import NamedTuple

from certified_unlearning.accounting.core.rounding import NORM_EXCESS, SMALLEST_NORMAL, UNIT_ROUNDOFF

UNIT = UNIT_ROUNDOFF["float64"]
LEAST = SMALLEST_NORMAL["float64"]
NARROW_UNIT = UNIT_ROUNDOFF["float32"]
OUTWARD = 1 + 2.0**-46
"""Factor that covers the rounding of a few dozen sums, products and roots of bounds: 128 units each way."""
ROW_NORM = 1 + NORM_EXCESS
"""``r``: the largest norm of a row."""
THIRD_DERIVATIVE = 1 / (6 * math.sqrt(3))
"""``sup |s''|``, of the logistic loss."""
COEFFICIENT_ERROR = 8 * UNIT
"""Relative error of an evaluated sigmoid."""
BLOCK_NUMBERS = 1 << 16
"""Number of entries of rows that are multiplied at once: as many as fit in a processor's cache."""
NARROW = 1000
"""Up to this number of columns, sparse rows are multiplied in the same blocks as dense ones."""
SPARSE_ROWS = 4096
"""Least number of sparse rows with more columns that are multiplied at once."""
_INTERPLAY = 1.01


class Terms(NamedTuple):
    """The largest numbers of terms that are added one after another.

    Attributes:
        score: Number of terms in the score of a row.
        total: Number of terms in an entry of a sum over rows.
    """

    score: int
    total: int


FEWEST_TERMS = Terms(1, 1)
"""Placeholder for terms of sparse rows that are not known yet."""


def block_rows(features: int) -> int:
    """Return the number of rows of a block: about `BLOCK_NUMBERS` entries, 256 to 4096 rows."""
    return min(4096, max(256, BLOCK_NUMBERS // features))


def sparse_block_rows(records: int, features: int, entries: int) -> int:
    """Return the number of sparse rows of a block.

    Blocks of wide rows have about as many entries as there are columns, or more: the sum over a block has a number for
    every column.

    Args:
        records: Number of rows.
        features: Columns of a row.
        entries: Stored entries of all rows.
    """
    if features <= NARROW:
        return block_rows(features)
    return max(SPARSE_ROWS, math.ceil(features * records / max(1, entries)))


def sparse_terms(*, records: int, block: int, in_a_row: int, in_a_column: int) -> Terms:
    """Return the numbers of terms in products of blocks of sparse rows.

    Args:
        records: Number of rows.
        block: Rows of a block.
        in_a_row: The most stored entries of a row.
        in_a_column: The most stored entries of a column.
    """
    return Terms(in_a_row, min(in_a_column, block) + math.ceil(records / block) + 2)


def gamma(count: int) -> float:
    """Return ``gamma_k``; infinite from ``k u = 1/2`` on."""
    return _gamma(count, UNIT)


def _gamma(count: int, unit: float) -> float:
    return count * unit / (1 - count * unit) if count * unit < 0.5 else math.inf


def norm_above(evaluated: float, dimension: int) -> float:
    """Return a bound on the norm of ``dimension`` numbers whose evaluated norm is this."""
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
    """Return the largest distance of an evaluated gradient from the exact one; see the module's docstring.

    Args:
        records: Number of summands, added in blocks of `block_rows`.
        n: Divisor of the sum.
        features: Number of columns of a row.
        classes: 2, or the number of scores of softmax regression; 1 for ridge regression.
        weight_norm: A bound on ``|w|``.
        strong_convexity: ``m`` of a regulariser in the gradient; 0 for a sum over some records only.
        terms: Number of terms in its sums; None: as for dense rows.
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
    """Return a record's largest contribution to the Hessian, in Frobenius norm, for the logistic or squared loss."""
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
    """Return the largest error, in Frobenius norm, of an evaluated Hessian or downdate.

    Args:
        records: Number of summands.
        n: Divisor of the sum.
        features: Number of columns of a row.
        weight_norm: A bound on ``|w|`` where it is evaluated.
        strong_convexity: ``m``; with downdates too, for the rounding of what they change.
        classes: 2 for the logistic loss, 1 for the squared one.
        downdated: Whether the summands are taken out of a Hessian, as `downdate` does.
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
    """Return a bound on the Frobenius norm of a Hessian: the trace, `curvature`, and ``m I``."""
    return (curvature(classes) + math.sqrt(features) * strong_convexity) * OUTWARD


def product_error(*, features: int, strong_convexity: float, norm: float, classes: int = 2) -> float:
    """Return the error of a Hessian times a vector of this norm plus another vector, except that vector's ``u``.

    Args:
        features: ``d``.
        strong_convexity: ``m``.
        norm: Norm of the vector.
        classes: 2 for the logistic loss, 1 for the squared one.
    """
    size = hessian_norm(features=features, strong_convexity=strong_convexity, classes=classes)
    return _INTERPLAY * gamma(features + 1) * size * norm + _underflow(features)


def score_move(evaluated: float, *, features: int, moved: float) -> float:
    """Return a bound, over ``r``, on rows' products with a vector of differences, from the largest evaluated one.

    A product is off by ``gamma_d r`` times the vector's norm, and every difference by one ``u`` relative.

    Args:
        evaluated: The largest product as evaluated.
        features: Columns of a row.
        moved: A bound on the vector's norm.
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
