"""Selection of a model on separate records: a search for the radius (Algorithm 4), and boosting (Algorithm 15).

Source: Ullah (2024), corrected. `accounting.private.searches` computes the privacy. Records are split by position, so
their order must not depend on their values.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from certified_unlearning.accounting.private.learners import Learner, NoisyDescent, OutputPerturbation
from certified_unlearning.accounting.private.searches import Boosting, GridSearch, PrivateLearner
from certified_unlearning.accounting.private.selections import DRAWN_BITS, generalised_probabilities
from certified_unlearning.engine.addresses import address
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.private.bounded_records import BoundedRecords
from certified_unlearning.errors import ParameterError
from certified_unlearning.mechanisms.private import noisy_descent, output_perturbation

ADDRESS_BITS = 128


class LearnedWeights(NamedTuple):
    """The selected model of each trial, and its number among the candidates.

    Both the model and its number may be published.

    Attributes:
        weights: The selected weights, shape ``(trials, features)``.
        selected: Number of the selected candidate, shape ``(trials,)``, int64. In a search, candidate 0 has weights of
            zero. All numbers are 0 if the plan selects nothing.
    """

    weights: Tensor
    selected: Tensor


def learn(plan: PrivateLearner, records: BoundedRecords, keys: Sequence[int]) -> LearnedWeights:
    """Learn a model by any plan, including plans that select one of several models.

    Args:
        plan: The plan, which must be for this number of records with the same bounds.
        records: The records to learn from.
        keys: The address of each trial's randomness; anybody who knows the address can subtract the trial's noise.

    Raises:
        ParameterError: The plan is for other records.
        InfeasibleError: The solver did not reach a minimiser.
    """
    return _BY_SELECTION[plan.selection](plan, records, keys)


def _only(plan: Learner, records: BoundedRecords, keys: Sequence[int]) -> LearnedWeights:
    return LearnedWeights(_run(plan, records, keys), torch.zeros(len(keys), dtype=torch.int64))


def _run(plan: Learner, records: BoundedRecords, keys: Sequence[int]) -> Tensor:
    return _LEARN[plan.name](plan, records, keys)


_LEARN: dict[str, Callable[[Any, BoundedRecords, Sequence[int]], Tensor]] = {
    NoisyDescent.name: noisy_descent.learn,
    OutputPerturbation.name: output_perturbation.learn,
}
"""Functions that run a learner, by the name of the learner."""


def _search(plan: GridSearch, records: BoundedRecords, keys: Sequence[int]) -> LearnedWeights:
    learned = _require_records(plan.problem.n, plan.validated, records)
    training, validation = records.part(0, learned), records.part(learned, len(records))
    # Each radius needs separate noise: two runs with the same noise would be one release with less noise.
    runs = [
        _run(each, training, [address(str(key), "radius", number) for key in keys])
        for number, each in enumerate(plan.learners)
    ]
    candidates = torch.stack([torch.zeros_like(runs[0]), *runs])
    losses = torch.stack(
        [
            validation.mean_losses(weights, largest)
            for weights, largest in zip(candidates, plan.largest_losses, strict=True)
        ]
    )
    selected = [
        _drawn(
            generalised_probabilities(of_trial.tolist(), plan.sensitivities, epsilon=plan.epsilon, beta=plan.beta),
            key,
        )
        for of_trial, key in zip(losses.T, keys, strict=True)
    ]
    return _picked(candidates, selected)


def _boost(plan: Boosting, records: BoundedRecords, keys: Sequence[int]) -> LearnedWeights:
    size = plan.problem.n
    learned = _require_records(plan.chunks * size, plan.validated, records)
    validation = records.part(learned, len(records))
    candidates = torch.stack(
        [
            _run(
                plan.learner,
                records.part(chunk * size, (chunk + 1) * size),
                [address(str(key), "chunk", chunk) for key in keys],
            )
            for chunk in range(plan.chunks)
        ]
    )
    losses = torch.stack([validation.mean_losses(weights, plan.largest_loss) for weights in candidates])
    noisy = [of_trial + plan.scale * _laplace(plan.chunks, key) for of_trial, key in zip(losses.T, keys, strict=True)]
    return _picked(candidates, [int(each.argmin()) for each in noisy])


_BY_SELECTION: dict[str, Callable[[Any, BoundedRecords, Sequence[int]], LearnedWeights]] = {
    Learner.selection: _only,
    GridSearch.selection: _search,
    Boosting.selection: _boost,
}
"""Functions that run a plan, by the name of its selection."""


def _picked(candidates: Tensor, selected: list[int]) -> LearnedWeights:
    chosen = torch.tensor(selected)
    return LearnedWeights(candidates[chosen, torch.arange(len(selected))], chosen)


def _drawn(probabilities: "np.typing.NDArray[np.float64]", key: int) -> int:
    # This uses whole numbers, because sums of floats would favour some candidates, and 53 bits miss rare events.
    numerators = [Fraction(float(each)) for each in probabilities]
    uniform = sum(numerators) * Fraction(bits(key, DRAWN_BITS), 1 << DRAWN_BITS)
    for candidate, numerator in enumerate(numerators):
        if uniform < numerator:
            return candidate
        uniform -= numerator
    raise AssertionError("a number below the sum of the probabilities must select one of the candidates")


def bits(key: int, count: int) -> int:
    """Return an integer that consists of ``count`` random bits, drawn from an address."""
    parts = -(-count // ADDRESS_BITS)
    drawn = sum(address(str(key), "selection", part) << (ADDRESS_BITS * part) for part in range(parts))
    return drawn % (1 << count)


def _laplace(count: int, key: int) -> Tensor:
    """Return standard Laplace noise, computed from 53-bit random numbers.

    The accounting of published minima counts the bits.
    """
    uniform = Draws(address(str(key), "selection")).uniform(2, count)
    exponential = -torch.log1p(-uniform[0])
    return torch.where(uniform[1] < 0.5, -exponential, exponential)


def _require_records(learned: int, validated: int, records: BoundedRecords) -> int:
    """Return the number of records to learn from, after a check that the number of all records is the planned one."""
    if len(records) != learned + validated:
        raise ParameterError(
            f"the plan is for {learned} records to learn from and {validated} to select on, got {len(records)} in all"
        )
    return learned
