"""The base classes of the settings of the ledger's mechanisms.

No module of this folder has heavy imports, because the command line makes its options from them whenever it starts.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from certified_unlearning.accounting.core.checks import require_positive
from certified_unlearning.accounting.core.losses import ClassWeights, regularisation_of
from certified_unlearning.accounting.core.scale import QUICK_CONDITION
from certified_unlearning.errors import ParameterError
from certified_unlearning.vocabulary import DELTA_HELP, Delta

BatchSize = int | Literal["auto"] | None
"""Number of records in a mini-batch. None means all records; ``auto`` lets the number of records decide."""
TargetRange = tuple[float, float] | None
"""The declared range of the label if it is a number to predict, else None."""


class Words(NamedTuple):
    """The plan as a line to print, and, if necessary, a warning that the operator reads before learning begins."""

    line: str
    warning: str | None = None


class Settings(BaseModel, ABC):
    """Settings of a mechanism at `init`: each field is an option of the command line, and its description is the help.

    The types of the fields decide how the command line reads values. The plan checks the values, because whether a
    value is valid may depend on the others.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    weighs_classes: ClassVar[bool] = False
    """Whether plans of the mechanism accept class weights."""
    takes_text: ClassVar[bool] = False
    """Whether plans of the mechanism accept the sparse rows that result from hashing columns of text."""
    records_are_clients: ClassVar[bool] = False
    """Whether all rows of an identifier together count as one client."""

    @property
    def has_intercept(self) -> bool:
        """Whether rows ``x`` become ``(x, 1) / sqrt(2)``, which gives the model an intercept."""
        return False

    def check(self, mechanism: str, device: str) -> None:
        """Check values before the records are read; raise `ParameterError` if a value is invalid for all records."""

    def check_regression(self, mechanism: str) -> None:
        """Raise `ParameterError` unless the mechanism can learn to predict numbers with these settings."""
        raise ParameterError(
            f"{mechanism} predicts classes only; for --regression leave --mechanism out, or name another one"
        )

    @abstractmethod
    def plan(
        self,
        mechanism: str,
        *,
        n: int,
        features: int,
        classes: int,
        weights: ClassWeights,
        target_range: TargetRange = None,
        sparse: bool = False,
        clients: int = 0,
    ) -> Any:
        """Return the plan, which does not change afterwards.

        Args:
            mechanism: The mechanism's name.
            n: Number of records.
            features: Number of columns of a row, including the intercept's.
            classes: Number of classes; 1 if the label is a number to predict.
            weights: Weights of the classes' losses. There are no weights unless `weighs_classes` is true for the
                mechanism.
            target_range: The declared range of the label; None for classification. Only mechanisms that pass
                `check_regression` get a range.
            sparse: Whether rows are sparse, as rows of text are. They may be sparse only if `takes_text` is true for
                the mechanism.
            clients: Number of identifiers. It is given only if `records_are_clients` is true for the mechanism.

        Raises:
            ParameterError: A value is invalid.
            AssumptionError: An assumption of the analysis does not hold.
            InfeasibleError: The target cannot be met.
        """

    @classmethod
    def score_noise(cls, plan: Any) -> float:
        """Return an upper bound on the standard deviation of the noise in the score of a row of norm 1.

        Only mechanisms that pass `check_regression` have such a bound.
        """
        raise NotImplementedError

    @abstractmethod
    def words(self, plan: Any, weights: ClassWeights) -> Words:
        """Return the plan in words.

        Args:
            plan: The result of `plan`.
            weights: Weights of the classes' losses, as in `plan`.
        """


def optional(description: str) -> Any:
    """Return a field whose default is None, which makes the plan choose the usual value."""
    return Field(None, description=description)


def inverse_strength_field(usual: str) -> Any:
    """Return the field ``C``. ``usual`` is the text that states the default value in the field's help."""
    strength = "Inverse strength of the regulariser, as in scikit-learn; the intercept is regularised, too"
    return optional(f"{strength}. Default: {usual}.")


class LinearSettings(Settings):
    """Settings of mechanisms that learn linear models with scikit-learn's regulariser.

    The objective is ``C sum_i loss_i + ||(coef, intercept)||^2 / 2``.
    """

    C: float | None = inverse_strength_field("100 / n")
    intercept: bool = Field(True, description="Fit an intercept.")

    @property
    def has_intercept(self) -> bool:
        """Whether there is an intercept; see `Settings.has_intercept`."""
        return self.intercept

    def check(self, mechanism: str, device: str) -> None:
        """See `Settings.check`."""
        if self.C is not None:
            require_positive(C=self.C)

    def inverse_strength(self, n: int, weights: ClassWeights) -> float:
        """Return ``C`` for ``n`` records: the given value, or else the usual value."""
        return QUICK_CONDITION / (n * weights.largest) if self.C is None else self.C

    def strong_convexity(self, n: int, weights: ClassWeights) -> float:
        """Return ``lambda``, the strong convexity of the mean loss of ``n`` rows whose weights are at most 1."""
        C = self.inverse_strength(n, weights) * weights.largest
        return n * regularisation_of(C=C, n=n, intercept=self.intercept)

    def _about_strength(self, n: int, weights: ClassWeights, C: float | None = None) -> str:
        C = self.inverse_strength(n, weights) if C is None else C
        if weights.shares is None:
            return f"C = {C:.4g}, C n = {C * n:,.0f}"
        largest = weights.largest
        return f"C = {C:.4g}, largest weight of a class {largest:g}, C n times this weight = {C * n * largest:,.0f}"


class TargetSettings(LinearSettings):
    """Settings of mechanisms that have a target epsilon."""

    epsilon: float | None = optional("Target epsilon after every removal, such as 1; required.")
    delta: Delta = Field("auto", description=f"Failure probability of the guarantee: {DELTA_HELP}.")

    def check(self, mechanism: str, device: str) -> None:
        """See `Settings.check`."""
        super().check(mechanism, device)
        if self.epsilon is None:
            raise ParameterError(
                "epsilon is missing: the target after every removal, such as 1; exact mechanisms have none"
            )
        require_positive(epsilon=self.epsilon)


def require_no_cuda(mechanism: str, device: str) -> None:
    """Raise `ParameterError` if the device is ``cuda``, for mechanisms that compute only on the CPU."""
    if device == "cuda":
        raise ParameterError(f"device must be left out: {mechanism} computes on the CPU, got 'cuda'")
