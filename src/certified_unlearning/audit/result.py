"""The result of an audit: bounds with their confidence, the control, a verdict, and the assumptions."""

import math
from dataclasses import dataclass
from typing import Any

from certified_unlearning.accounting.auditing.bounds import log_most_probability
from certified_unlearning.accounting.auditing.rates import least_rate
from certified_unlearning.accounting.auditing.shown import SHOWN, Verdict, ceiling, floor
from certified_unlearning.audit.canaries import Guessing
from certified_unlearning.audit.claims import Claim, LowerBound
from certified_unlearning.data.features import import_extra
from certified_unlearning.text import counted


@dataclass(frozen=True, kw_only=True)
class AuditRun:
    """One run of an audit: one learning and one removal.

    Attributes:
        right_before: Number of right guesses from what the model published before the removal. This is the control.
        right: Number of right guesses from what the model published after the removal.
        failed: The reason why learning or the removal failed, so that a fixed set was guessed; None if neither failed.
    """

    right_before: int
    right: int
    failed: str | None = None


@dataclass(frozen=True, kw_only=True)
class AuditResult:
    """The result of an audit in one or more runs: a lower bound, to compare with the claim.

    A result without a finding proves nothing, because a better attack might find something.

    Attributes:
        method: Name of the audited method.
        claim: The claim that the audit tries to refute, with the largest numbers that any run stated.
        certified: Whether a certificate states the claim. Otherwise, the user gave the claim, or it is the claim of
            exact retraining.
        guessing: How members were drawn and named.
        copies: Number of equal records that made up one canary.
        runs: All runs; none was left out.
        least_right: With several runs, the smallest number of right guesses with which a run counts as a success; it is
            chosen before the first run.
        alpha: Largest probability that an honest method is called ``violated``.
        assumed: The assumptions of the audit, in sentences without full stops.
    """

    method: str
    claim: Claim
    certified: bool
    guessing: Guessing
    copies: int
    runs: tuple[AuditRun, ...]
    least_right: int | None
    alpha: float
    assumed: tuple[str, ...]

    @property
    def p_values(self) -> tuple[float, ...]:
        """Probability, for each run, that at least as many guesses as observed are right by chance.

        It is computed for a model that never saw the canaries. With one run and a claim of exact equality, this is the
        p-value of the claim.
        """
        return tuple(math.exp(self.guessing.log_p_value(run.right)) for run in self.runs)

    def bound(self, alpha: float | None = None) -> LowerBound:
        """Return lower bounds on epsilon and ``mu``, computed from the model after the removal.

        Args:
            alpha: Largest probability that the bound is above the truth. None: the ``alpha`` of the verdict. Bounds at
                several levels hold individually, not jointly.
        """
        return self._bound([run.right for run in self.runs], alpha)

    def control(self, alpha: float | None = None) -> LowerBound:
        """Return the lower bound that the same attack finds for the model before the removal.

        See `bound` for the argument ``alpha``.
        """
        return self._bound([run.right_before for run in self.runs], alpha)

    def _bound(self, right: list[int], alpha: float | None) -> LowerBound:
        rate = self.alpha if alpha is None else alpha
        if self.least_right is None:
            return self.claim.shown(rate, self.guessing.log_p_value(right[0]))
        successes = sum(each >= self.least_right for each in right)
        rate = least_rate(successes, len(right), miss=rate)
        return self.claim.shown(rate, self.guessing.log_p_value(self.least_right))

    @property
    def verdict(self) -> Verdict:
        """``violated`` if the bound exceeds the claim; ``no power`` if even the control finds nothing."""
        if self.claim.is_below(self.bound()):
            return "violated"
        if not self.claim.is_below(self.control()):
            return "no power"
        return "nothing found"

    @property
    def failures(self) -> tuple[str, ...]:
        """The reasons why runs failed."""
        return tuple(run.failed for run in self.runs if run.failed is not None)

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as JSON values; infinite numbers become None."""
        of = {"after": self.bound, "before": self.control}
        levels = {"alpha": self.alpha, "shown": SHOWN}
        return {
            "method": self.method,
            "verdict": self.verdict,
            "certified": self.certified,
            "claim": {name: _finite(value) for name, value in vars(self.claim).items()},
            "canaries": sum(self.guessing.canaries),
            "removed": sum(self.guessing.members),
            "copies": self.copies,
            "named": self.guessing.named,
            "named_others": self.guessing.named_others,
            "least_right": self.least_right,
            "right": [run.right for run in self.runs],
            "right_before": [run.right_before for run in self.runs],
            "failures": list(self.failures),
            "alpha": self.alpha,
            "p_values": list(self.p_values),
            "bounds": {
                when: {name: vars(bound(level)) | {"level": level} for name, level in levels.items()}
                for when, bound in of.items()
            },
            "assumed": list(self.assumed),
        }

    @property
    def headline(self) -> str:
        """The main numbers on one line: epsilon as certified, as measured, and as measured before the removal."""
        claimed = "certified" if self.certified else "claimed"
        return (
            f"{claimed} at most {ceiling(self.claim.epsilon)}; measured at least {floor(self.bound(SHOWN).epsilon)} "
            f"({1 - SHOWN:.0%}); before unlearning the same attack showed at least "
            f"{floor(self.control(SHOWN).epsilon)}"
        )

    def __str__(self) -> str:
        """Return a readable report, as text."""
        runs = self.runs
        guesses = self.guessing.most_right
        after = ", ".join(str(run.right) for run in runs[:10]) + (", ..." if len(runs) > 10 else "")
        before = ", ".join(str(run.right_before) for run in runs[:10]) + (", ..." if len(runs) > 10 else "")
        lines = [
            self.headline,
            explained(self.verdict, self.alpha),
            f"{self.method}, {counted(len(runs), 'run')}: {sum(self.guessing.members)} of "
            f"{counted(sum(self.guessing.canaries), 'canary')} were learned and removed"
            + (f", each {self.copies} times" if self.copies > 1 else "")
            + f"; right guesses after unlearning: {after}; before: {before}; possible: {guesses}",
        ]
        if self.least_right is not None:
            lines.append(
                f"a run with at least {self.least_right} right guesses counts as a success; this number was chosen "
                "beforehand"
            )
        if not self.certified and self.claim == Claim():
            lines.append("no epsilon is certified: learning again without the records would have epsilon 0")
        lines += [
            f"a run failed, and its guess was a set of canaries that was fixed beforehand; reason: {each}"
            for each in self.failures
        ]
        return "\n".join([*lines, "Taken as given:", *(f"- {each}" for each in self.assumed)])

    def plot(self, ax: Any = None) -> Any:
        """Plot the numbers of right guesses, and the probabilities of such numbers.

        One curve is the probability of at least this many right guesses about a model that never saw the canaries. The
        other curve is the largest probability that the claim allows. Vertical lines are the numbers of right guesses of
        the runs.

        Args:
            ax: Matplotlib axes; None creates new ones.

        Returns:
            The axes.

        Raises:
            ParameterError: Matplotlib is not installed.
        """
        ax = ax or new_axes(6, 3.5)
        counts = range(self.guessing.most_right + 1)
        log_p = [self.guessing.log_p_value(count) for count in counts]
        allowed = [log_most_probability(each, **vars(self.claim)) for each in log_p]
        ax.semilogy(counts, [math.exp(each) for each in log_p], drawstyle="steps-mid", label="never saw the canaries")
        ax.semilogy(counts, [math.exp(each) for each in allowed], drawstyle="steps-mid", label="at most, as claimed")
        for name, style, right in (
            ("before unlearning", ":", [run.right_before for run in self.runs]),
            ("after", "-", [run.right for run in self.runs]),
        ):
            for number, each in enumerate(sorted(set(right))):
                ax.axvline(each, linestyle=style, color="0.3", linewidth=1, label=None if number else name)
        ax.axhline(self.alpha, linestyle="--", color="0.7", linewidth=1, label=f"level {self.alpha:g}")
        ax.set_xlabel("right guesses")
        ax.set_ylabel("probability of at least this many right guesses")
        ax.set_title(f"{self.method}: {self.verdict}")
        ax.legend(fontsize="small")
        return ax


def explained(verdict: Verdict, alpha: float) -> str:
    """Return a verdict with an explanation of what it shows, and of what it does not show."""
    meaning: dict[Verdict, str] = {
        "violated": "the attack found more of the removed records than the claim allows",
        "no power": "the attack would not have noticed a model that forgot nothing, so this audit shows nothing",
        "nothing found": "this attack found nothing, and would have noticed a model that forgot nothing; a better "
        "attack may find more",
    }
    return f"{verdict}: {meaning[verdict]} (level {alpha:g})"


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def new_axes(width: float, height: float) -> Any:
    """Return the axes of a new figure.

    ``width`` and ``height`` of the figure are in inches.

    Raises:
        ParameterError: Matplotlib is not installed.
    """
    figure = import_extra("matplotlib.figure", "workflow", "plot() draws with Matplotlib").Figure
    return figure(figsize=(width, height), layout="constrained").subplots()
