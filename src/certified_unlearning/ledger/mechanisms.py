"""The mechanisms that a model directory can have: one record each, in one table.

A record names the settings that `init` takes, of which the command line makes options. Settings make the plan, which
`model.json` holds, and say in words what was planned. The method is what carries the plan out.

Free of heavy imports: the command line reads this table whenever it starts.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from certified_unlearning.accounting import ACCOUNTANTS
from certified_unlearning.accounting.core.checks import require_positive
from certified_unlearning.accounting.core.losses import ClassWeights, regularisation_of
from certified_unlearning.accounting.core.scale import QUICK_CONDITION, score_noise
from certified_unlearning.errors import AssumptionError, ParameterError
from certified_unlearning.text import counted, rounded_up
from certified_unlearning.vocabulary import DELTA_HELP, Delta, DType

if TYPE_CHECKING:
    from certified_unlearning.ledger.method import Method
    from certified_unlearning.mechanisms.certified_sgd.ensemble_plan import EnsemblePlan
    from certified_unlearning.mechanisms.exact.plan import ExactPlan
    from certified_unlearning.mechanisms.exact.queries.federated_plan import FederatedPlan
    from certified_unlearning.mechanisms.learners.langevin import LangevinLearner
    from certified_unlearning.mechanisms.learners.minibatch import MiniBatchLearner
    from certified_unlearning.mechanisms.refit_plan import RefitPlan

BatchSize = int | Literal["auto"] | None
"""Records of a mini-batch; None for all of them, ``auto`` for as many as the number of records advises."""
_MOST_POWERS = 9
"""So many powers of ten of the usual ``C`` are tried, where numbers are predicted."""
TargetRange = tuple[float, float] | None
SLOW = 3
"""From how many times the advised ``C n`` on `init` warns."""
LOUD = 0.4
"""Above which standard deviation of the noise in a score of federated averaging on `init` warns."""


class Words(NamedTuple):
    """What is planned, and what the operator should think of before learning begins, if anything."""

    line: str
    warning: str | None = None


class Settings(BaseModel, ABC):
    """What can be asked of a mechanism at `init`: each field is an option of the command line.

    Its description is the help. Types say what the command line reads. The plan checks values, for it knows how they go
    together.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    weighs_classes: ClassVar[bool] = False
    """Whether its plans take weights of classes."""
    takes_text: ClassVar[bool] = False
    """Whether its plans take sparse rows, which text becomes."""
    records_are_clients: ClassVar[bool] = False
    """Whether an identifier, with all its rows, is what is learned from as one."""

    @property
    def has_intercept(self) -> bool:
        """Whether rows ``x`` become ``(x, 1) / sqrt(2)``, which gives the model an intercept."""
        return False

    def check(self, mechanism: str, device: str) -> None:
        """Raise `ParameterError` for what is wrong whatever the records are: before they are read."""

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
        """Return the plan, which is fixed from then on.

        Args:
            mechanism: The mechanism's name.
            n: Number of records.
            features: Columns of a row, the intercept's included.
            classes: Number of classes; 1 where the label is a number to predict.
            weights: Weights of the classes' losses; none but for one that `weighs_classes`.
            target_range: The declared range of the label; None of classes. Only mechanisms that pass
                `check_regression` take one.
            sparse: Whether rows are sparse, as those of text; only for one that `takes_text`.
            clients: Number of identifiers; only for one whose `records_are_clients`.

        Raises:
            ParameterError: A value is invalid.
            AssumptionError: An assumption of the analysis does not hold.
            InfeasibleError: The target cannot be met.
        """

    @classmethod
    def score_noise(cls, plan: Any) -> float:
        """Return a standard deviation that the noise in a score of a row of norm 1 has at most.

        It is asked of mechanisms that pass `check_regression`.
        """
        raise NotImplementedError

    @abstractmethod
    def words(self, plan: Any, weights: ClassWeights) -> Words:
        """Return what is planned for such weights of classes, in words."""


def _optional(description: str) -> Any:
    """Return a field that is None where the plan shall take what is usual."""
    return Field(None, description=description)


def _inverse_strength(usual: str) -> Any:
    """Return the field ``C``, with its usual value in words."""
    strength = "Inverse strength of the regulariser, as in scikit-learn; the intercept is regularised, too"
    return _optional(f"{strength}. Default: {usual}.")


class LinearSettings(Settings):
    """Settings of mechanisms that learn linear models with scikit-learn's regulariser.

    The objective is ``C sum_i loss_i + ||(coef, intercept)||^2 / 2``.
    """

    C: float | None = _inverse_strength("100 / n")
    intercept: bool = Field(True, description="Fit an intercept.")

    @property
    def has_intercept(self) -> bool:
        """Whether rows ``x`` become ``(x, 1) / sqrt(2)``."""
        return self.intercept

    def check(self, mechanism: str, device: str) -> None:
        """See `Settings.check`."""
        if self.C is not None:
            require_positive(C=self.C)

    def inverse_strength(self, n: int, weights: ClassWeights) -> float:
        """Return ``C``."""
        return QUICK_CONDITION / (n * weights.largest) if self.C is None else self.C

    def strong_convexity(self, n: int, weights: ClassWeights) -> float:
        """Return ``lambda`` of the mean loss of ``n`` rows, each of which counts for at most 1."""
        C = self.inverse_strength(n, weights) * weights.largest
        return n * regularisation_of(C=C, n=n, intercept=self.intercept)

    def _about_strength(self, n: int, weights: ClassWeights, C: float | None = None) -> str:
        C = self.inverse_strength(n, weights) if C is None else C
        if weights.shares is None:
            return f"C = {C:.4g}, C n = {C * n:,.0f}"
        largest = weights.largest
        return f"C = {C:.4g}, largest weight of a class {largest:g}, C n times it = {C * n * largest:,.0f}"


class TargetSettings(LinearSettings):
    """Settings of mechanisms that keep an epsilon."""

    epsilon: float | None = _optional("Target epsilon after every removal, such as 1; required.")
    delta: Delta = Field("auto", description=f"Failure probability of the guarantee: {DELTA_HELP}.")

    def check(self, mechanism: str, device: str) -> None:
        """See `Settings.check`."""
        super().check(mechanism, device)
        if self.epsilon is None:
            raise ParameterError(
                "epsilon is missing: the target after every removal, such as 1; exact mechanisms have none"
            )
        require_positive(epsilon=self.epsilon)


class LangevinSettings(TargetSettings):
    """Settings of noisy steps on all rows or on mini-batches; see `LangevinLearner.plan`."""

    weighs_classes: ClassVar[bool] = True

    C: float | None = _inverse_strength(
        "100 / n, divided by the largest weight of a class. At C n of 30 to 100 removals are short and noise is small"
    )
    sigma: float | None = _optional("Noise scale. Default: the least that suffices for --steps and --records.")
    steps: int | None = _optional("Steps that remove --records records; not together with --sigma.")
    records: int = Field(1, description="Records that --steps steps can remove at once.")
    accountant: str = Field(
        "shifted", description=f"Accountant, the analysis that computes epsilon: {', '.join(ACCOUNTANTS)}."
    )
    batch_size: BatchSize = Field(
        "auto",
        description="Records that a step reads. auto: a mini-batch if there are enough records; all: all records.",
    )
    dtype: DType = Field("float32", description="Type of the weights. float64 rounds less, and takes longer.")

    def check_regression(self, mechanism: str) -> None:
        """See `Settings.check_regression`."""
        if self.batch_size not in ("auto", None):
            raise ParameterError(
                "batch_size must be auto or all with --regression, whose steps read all records, got "
                f"{self.batch_size!r}"
            )

    def plan(self, mechanism: str, *, weights: ClassWeights, **numbers: Any) -> "LangevinLearner | MiniBatchLearner":
        """See `Settings.plan`."""
        from certified_unlearning.mechanisms.learners.minibatch import plan_learner

        asked = dict(self) | {"C": self.inverse_strength(numbers["n"], weights) * weights.largest}
        return plan_learner(adjacency="zero-out", class_weights=weights.shares, **asked, **numbers)

    @classmethod
    def score_noise(cls, plan: "LangevinLearner | MiniBatchLearner") -> float:
        """See `Settings.score_noise`."""
        return score_noise(plan.exact_problem, sigma=plan.sigma)

    def words(self, plan: "LangevinLearner | MiniBatchLearner", weights: ClassWeights) -> Words:
        """Return how long learning takes, and a warning where that is long."""
        C, steps = self.inverse_strength(plan.n, weights), counted(plan.learning_steps, "step")
        of = f" of {counted(plan.cycle.batch_size, 'record')}" if plan.cycle is not None else ""
        line = f"{self._about_strength(plan.n, weights)}: learning takes {steps}{of}"
        condition = C * plan.n * weights.largest
        if condition <= SLOW * QUICK_CONDITION:
            return Words(line)
        weighed = "" if weights.shares is None else f" times the largest weight of a class, {weights.largest:g},"
        divided = "" if weights.shares is None else f" / {weights.largest:g}"
        return Words(
            line,
            f"with C = {C:.4g}, C n{weighed} is {condition:,.0f} and learning takes {steps}; "
            f"C = {QUICK_CONDITION / plan.n / weights.largest:.4g} ({QUICK_CONDITION} / n{divided}) would be quick",
        )


class RefitSettings(TargetSettings):
    """Settings of Newton removal and certified refits; see `RefitPlan.make`."""

    weighs_classes: ClassVar[bool] = True
    takes_text: ClassVar[bool] = True

    C: float | None = _inverse_strength(
        "1. With --regression, 1 / C is Ridge's alpha, and many records get a smaller C"
    )
    sigma: float | None = _optional("Standard deviation of the noise on published weights. Default: 0.001.")
    records_between_reads: int | None = _optional(
        "Removed records after which all data are read again. Default: planned."
    )
    strict_timing: bool = Field(
        False,
        description="Let counts alone decide when data are read again, so that the time does not depend on records.",
    )

    def inverse_strength(self, n: int, weights: ClassWeights) -> float:
        """Return ``C``."""
        return 1.0 if self.C is None else self.C

    def check_regression(self, mechanism: str) -> None:
        """See `Settings.check_regression`."""
        if self.strict_timing:
            raise ParameterError(
                "strict_timing must be left out with --regression: no bound is known that lets counts alone decide"
            )

    def plan(
        self, mechanism: str, *, weights: ClassWeights, target_range: TargetRange = None, **numbers: Any
    ) -> "RefitPlan":
        """See `Settings.plan`."""
        from certified_unlearning.mechanisms.refit_plan import USUAL_SIGMA, RefitPlan

        def planned(strength: float) -> RefitPlan:
            assert self.epsilon is not None
            return RefitPlan.make(
                **numbers,
                class_weights=weights.shares,
                strong_convexity=strength * self.strong_convexity(numbers["n"], weights),
                epsilon=self.epsilon,
                delta=self.delta,
                sigma=USUAL_SIGMA if self.sigma is None else self.sigma,
                strict=self.strict_timing,
                records_between_reads=self.records_between_reads,
            )

        if target_range is None or self.C is not None:
            return planned(1)
        # Bounds on rounding grow with the weights that numbers may need, so many records need a smaller C.
        for power in range(_MOST_POWERS):
            try:
                return planned(10.0**power)
            except AssumptionError:
                continue
        return planned(10.0**_MOST_POWERS)

    @classmethod
    def score_noise(cls, plan: "RefitPlan") -> float:
        """See `Settings.score_noise`."""
        return plan.sigma

    def words(self, plan: "RefitPlan", weights: ClassWeights) -> Words:
        """Return how often data are read again."""
        reads = plan.records_between_reads
        often = f"after {counted(reads, 'removed record')} at the latest" if reads else "for every request"
        strength = self.strong_convexity(plan.n, weights) / plan.strong_convexity
        C = strength * self.inverse_strength(plan.n, weights)
        again = "every request passes over the rows, and the model is learned anew" if plan.passes_always else None
        return Words(f"{self._about_strength(plan.n, weights, C)}: {again or 'data are read again'} {often}")


def _require_no_cuda(mechanism: str, device: str) -> None:
    if device == "cuda":
        raise ParameterError(f"device must be left out: {mechanism} computes on the CPU, got 'cuda'")


class ExactSettings(LinearSettings):
    """Settings of descents that forget exactly; see `ExactPlan.make`."""

    steps: int | None = _optional("Steps of learning, all of which are kept. Default: 256.")
    batch_size: BatchSize = Field(
        "auto", description="Records that a step reads. auto: 8, or a quarter if there are few records."
    )
    step_size: float | None = _optional("Step size, for rows of norm 1. Default: 8.")
    radius: float | None = _optional("Radius of a ball that models stay in. Default: none.")

    def check(self, mechanism: str, device: str) -> None:
        """See `Settings.check`."""
        super().check(mechanism, device)
        _require_no_cuda(mechanism, device)
        if self.batch_size is None:
            raise ParameterError(f"batch_size must be a number or 'auto': a batch of {mechanism} leaves a record out")

    def plan(self, mechanism: str, *, weights: ClassWeights, **numbers: Any) -> "ExactPlan":
        """See `Settings.plan`."""
        from certified_unlearning.mechanisms.exact.plan import ExactPlan

        asked: dict[str, Any] = {name: value for name, value in self if name not in LinearSettings.model_fields}
        asked |= {"mechanism": mechanism, "strong_convexity": self.strong_convexity(numbers["n"], weights)}
        return ExactPlan.make(**asked, **numbers)

    def words(self, plan: "ExactPlan", weights: ClassWeights) -> Words:
        """Return how often a removal takes steps again."""
        from certified_unlearning.accounting.tv.subsampling import subsampling_tv

        again = subsampling_tv(n=plan.n, batch_size=plan.batch_size, steps=plan.steps)
        return Words(
            f"{self._about_strength(plan.n, weights)}: learning takes {counted(plan.steps, 'step')} of "
            f"{counted(plan.batch_size, 'record')}, and removing one record takes steps again with probability at "
            f"most {rounded_up(again, 3)} while all {plan.n:,} are there, and more likely with fewer"
        )


class NoisySgdSettings(ExactSettings):
    """Settings of descent with noise on gradients."""

    sigma: float | None = _optional("Standard deviation of the noise on a gradient. Default: 0.01.")


class AcceleratedSettings(NoisySgdSettings):
    """Settings of accelerated descent, whose steps are short."""

    step_size: float | None = _optional("Step size, for rows of norm 1. Default: 0.05.")


class QuantizedSettings(ExactSettings):
    """Settings of descent with gradients on a grid."""

    quantum: float | None = _optional("Spacing of the grid that gradients are rounded to. Default: 0.05.")


class FederatedSettings(LinearSettings):
    """Settings of federated averaging that forgets clients exactly; see `FederatedPlan.make`."""

    records_are_clients: ClassVar[bool] = True

    C: float | None = _inverse_strength("1000 / n")
    steps: int | None = _optional("Rounds. In each, every client sends how it would move. Default: 10.")
    local_steps: int | None = _optional("Steps that a client takes in a round, on all its rows. Default: 10.")
    step_size: float | None = _optional("Step size, for rows of norm 1. Default: 8.")
    clip: float | None = _optional("Length that a client's move in a round is clipped to. Default: 3.")
    recompute: float | None = _optional(
        "Probability that removing one client takes rounds again. A smaller one needs more noise. Default: it follows "
        "from the noise, which follows from the number of clients, and `init` prints it."
    )

    def check(self, mechanism: str, device: str) -> None:
        """See `Settings.check`."""
        super().check(mechanism, device)
        _require_no_cuda(mechanism, device)

    def inverse_strength(self, n: int, weights: ClassWeights) -> float:
        """Return ``C``: learning stops long before it is at the minimum, which regularises as well."""
        return 10 * super().inverse_strength(n, weights) if self.C is None else self.C

    def plan(self, mechanism: str, *, weights: ClassWeights, **numbers: Any) -> "FederatedPlan":
        """See `Settings.plan`."""
        from certified_unlearning.mechanisms.exact.queries.federated_plan import FederatedPlan

        asked: dict[str, Any] = {name: value for name, value in self if name not in LinearSettings.model_fields}
        return FederatedPlan.make(**asked, **numbers, strong_convexity=self.strong_convexity(numbers["n"], weights))

    def words(self, plan: "FederatedPlan", weights: ClassWeights) -> Words:
        """Return how often a removal takes rounds again, and a warning where the noise is loud."""
        from certified_unlearning.accounting.tv.recomputation import query_recompute_probability

        again = query_recompute_probability(queries=plan.steps, sigma=plan.sigma, bound=plan.clip)
        line = (
            f"{self._about_strength(plan.n, weights)}: learning takes {counted(plan.steps, 'round')} of "
            f"{counted(plan.local_steps, 'step')} by each of {counted(plan.clients, 'client')}, each of which counts "
            "the same whatever its number of rows, and removing one client takes rounds again with probability at most "
            f"{rounded_up(again, 3)}"
        )
        noise = plan.noise_in_scores
        if noise <= LOUD:
            return Words(line)
        return Words(
            line,
            f"with {counted(plan.clients, 'client')} the noise in a score has a standard deviation of about "
            f"{noise:.2g}, which is felt: a --recompute nearer to 1 has less noise, and without it the noise is hardly "
            "felt",
        )


class EnsembleSettings(Settings):
    """Settings of ensembles whose answers are certified; see `EnsemblePlan.make`.

    Their layers have biases of their own, and they have no regulariser.
    """

    steps: int | None = _optional("Updates of each stage. Default: 5.")
    step_size: float | None = _optional("Step size, for rows of norm 1. Default: 4.")
    shards: int | None = _optional("Number of shards, each with one vote. Default: 5.")
    slices: int | None = _optional("Number of slices of a shard, each with a checkpoint. Default: 2.")
    budgets: tuple[int, ...] | None = _optional(
        "Records that may leave a shard before it is trained again; repeatable, rising. Small ones certify more "
        "answers while few have left. Default: 1, 2, 4, 8.",
    )
    hidden: tuple[int, ...] | None = _optional("Units of a hidden layer; repeatable. Default: no hidden layer.")
    bound: float | None = _optional("Bound that entries of gradients are clipped to. Default: 0.1.")

    def check(self, mechanism: str, device: str) -> None:
        """See `Settings.check`."""
        _require_no_cuda(mechanism, device)

    def plan(self, mechanism: str, *, weights: ClassWeights, **numbers: Any) -> "EnsemblePlan":
        """See `Settings.plan`."""
        from certified_unlearning.mechanisms.certified_sgd.ensemble_plan import EnsemblePlan

        asked = dict(self)
        return EnsemblePlan.make(epochs=asked.pop("steps"), hidden=asked.pop("hidden") or (), **numbers, **asked)

    def words(self, plan: "EnsemblePlan", weights: ClassWeights) -> Words:
        """Return how often shards are trained again."""
        from certified_unlearning.accounting.core.occupancy import requests_until_all, requests_until_first

        hits = plan.budgets[-1] + 1
        return Words(
            f"{counted(plan.shards, 'shard')} of {counted(plan.slices, 'slice')}: the first one is trained again after "
            f"about {counted(round(requests_until_first(plan.shards, hits)), 'request')} for single records at random, "
            f"and each once after about {requests_until_all(plan.shards, hits):.0f}; the first "
            f"after {hits} if all are for records of one shard"
        )


class LedgerMechanism(NamedTuple):
    """A mechanism of the ledger.

    Attributes:
        name: What ``--mechanism`` calls it, and its plans do.
        title: What it does, for the help of the command line.
        settings: What can be asked of it at `init`; it makes the plan.
        method: Returns the class that carries plans out.
        own: Options that a user connects with it: where another mechanism refuses one, this one is named.
    """

    name: str
    title: str
    settings: type[Settings]
    method: "Callable[[], type[Method[Any]]]"
    own: frozenset[str] = frozenset()


def _noisy_steps() -> "type[Method[Any]]":
    from certified_unlearning.ledger.methods.noisy_steps import NoisySteps

    return NoisySteps


def _exact_refit() -> "type[Method[Any]]":
    from certified_unlearning.ledger.methods.exact_refit import ExactRefit

    return ExactRefit


def _exact_steps() -> "type[Method[Any]]":
    from certified_unlearning.ledger.methods.exact_steps import ExactSteps

    return ExactSteps


def _federated_steps() -> "type[Method[Any]]":
    from certified_unlearning.ledger.methods.federated_averaging import FederatedSteps

    return FederatedSteps


def _certified_answers() -> "type[Method[Any]]":
    from certified_unlearning.ledger.methods.certified_answers import CertifiedAnswers

    return CertifiedAnswers


_EXACT = "epsilon is 0, for requests that do not depend on models, if the state stays secret"
DEFAULT = "newton-removal"
"""The mechanism that `init` takes where none is named."""
MECHANISMS: Mapping[str, LedgerMechanism] = {
    each.name: each
    for each in (
        LedgerMechanism(
            "langevin",
            "noisy steps on the model, compared with learning anew by noisy steps",
            LangevinSettings,
            _noisy_steps,
            frozenset({"steps", "records", "accountant", "batch_size", "dtype"}),
        ),
        LedgerMechanism(
            "newton-removal",
            "a Newton step on the request's own records, compared with an exact refit plus the same noise (three "
            "classes or more, or over 5000 numbers a record, need all records)",
            RefitSettings,
            _exact_refit,
        ),
        LedgerMechanism(
            "certified-ensemble",
            "networks that answer a label, that of the ensemble trained without the removed records, or none",
            EnsembleSettings,
            _certified_answers,
            frozenset({"shards", "slices", "budgets", "hidden", "bound"}),
        ),
        LedgerMechanism("subsample-gd", _EXACT, ExactSettings, _exact_steps),
        LedgerMechanism("noisy-sgd", _EXACT, NoisySgdSettings, _exact_steps),
        LedgerMechanism("accelerated-noisy-sgd", _EXACT, AcceleratedSettings, _exact_steps),
        LedgerMechanism("quantized-sgd", _EXACT, QuantizedSettings, _exact_steps),
        LedgerMechanism(
            "federated-averaging",
            "clients, each with all rows of an identifier, send how they would move; epsilon is 0 as above, and a "
            "request reads its client's rows only, unless it takes rounds again",
            FederatedSettings,
            _federated_steps,
            frozenset({"local_steps", "clip", "recompute"}),
        ),
    )
}


def settings_of(mechanism: str, given: Mapping[str, Any]) -> Settings:
    """Return the settings of a mechanism.

    Args:
        mechanism: Its name.
        given: Settings by their names; those of other mechanisms may have their usual values.

    Raises:
        ParameterError: There is no such mechanism, or something is asked for that means nothing for it.
    """
    if mechanism not in MECHANISMS:
        raise ParameterError(f"mechanism must be one of {', '.join(MECHANISMS)}, got {mechanism!r}")
    settings = MECHANISMS[mechanism].settings
    for name in [name for name in given if name not in settings.model_fields]:
        _require_usual(mechanism, name, given[name])
    return settings.model_construct(**{name: given[name] for name in settings.model_fields if name in given})


def require_weighing(mechanism: str) -> None:
    """Raise `ParameterError` if a mechanism takes no weights of classes."""
    if not MECHANISMS[mechanism].settings.weighs_classes:
        others = " or ".join(f"--mechanism {each.name}" for each in MECHANISMS.values() if each.settings.weighs_classes)
        raise ParameterError(f"class_weight means nothing for {mechanism}; leave it out, or take {others}")


def require_text(mechanism: str) -> None:
    """Raise `ParameterError` if a mechanism takes no text."""
    if not MECHANISMS[mechanism].settings.takes_text:
        others = " or ".join(f"--mechanism {each.name}" for each in MECHANISMS.values() if each.settings.takes_text)
        raise ParameterError(
            f"text means nothing for {mechanism}, which takes columns of numbers only; leave the columns of text out, "
            f"or take {others}"
        )


def _require_usual(mechanism: str, name: str, value: object) -> None:
    """Raise `ParameterError` unless a setting of other mechanisms has its usual value."""
    others = [each for each in MECHANISMS.values() if name in each.settings.model_fields]
    if not others:
        raise ParameterError(f"there is no setting {name!r} of any mechanism")
    if value != others[0].settings.model_fields[name].default:
        known = next((f", or add --mechanism {each.name}" for each in others if name in each.own), "")
        raise ParameterError(f"{name} means nothing for {mechanism}; leave it out{known}, got {value!r}")
