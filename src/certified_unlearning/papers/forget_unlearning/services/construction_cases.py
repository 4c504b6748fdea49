"""Attacks on constructions and on the constant model, with theoretical advantages.

Each attack runs on the construction for which it was made, and on the constant model.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from certified_unlearning.accounting.deletion.soundness import largest_advantage
from certified_unlearning.papers.forget_unlearning.services import constructions, counterexamples
from certified_unlearning.papers.forget_unlearning.services.cases import Case
from certified_unlearning.papers.forget_unlearning.services.constructions import (
    CountingModel,
    CountingService,
    DeleteFirst,
    StatisticService,
)
from certified_unlearning.papers.forget_unlearning.services.counterexamples import (
    KeyedModel,
    KeyedService,
    StreamService,
)
from certified_unlearning.papers.forget_unlearning.services.interaction import identity
from certified_unlearning.papers.forget_unlearning.services.linear_losses import ConstantService
from certified_unlearning.papers.forget_unlearning.services.measurement import Scenario
from certified_unlearning.papers.forget_unlearning.sweeps import Deletion
from certified_unlearning.papers.forget_unlearning.theory.attacks import (
    keyed_count_advantage,
    majority_advantage,
    median_success,
)
from certified_unlearning.papers.forget_unlearning.theory.counting import (
    counting_advantage,
    counting_limits,
    release_of_exposure,
    repaired_counting_success,
)
from certified_unlearning.papers.forget_unlearning.theory.soundness import (
    adaptive_epsilon,
    advantage_under_unlearning,
    coin_divergence,
    laplace_divergence,
    randomised_response_divergence,
)

# The order at which the theorems that the counterexamples break are evaluated.
ORDER = 2.0
STREAM_RECORDS = 3


def construction_cases(settings: Deletion) -> list[Case]:
    """Return two cases for each attack: the attack on its construction, and the attack on the constant model."""
    return [
        case
        for own, constant in (_sum(), _median(settings), *_counting(settings), _stream(settings), _key(settings))
        for case in (own, _against_constant(own, constant))
    ]


def _against_constant(case: Case, models: Callable[[int], Any]) -> Case:
    return replace(
        case,
        mechanism="constant",
        scenario=replace(case.scenario, service=ConstantService(models)),
        secret_state=False,
        expected=0.0,
        promised=0.0,
        bound=0.0,
    )


def _sum() -> tuple[Case, Callable[[int], Any]]:
    scenario = Scenario(
        databases=constructions.signed_databases,
        service=StatisticService(constructions.total),
        requester=lambda interactions, key: constructions.SignRequester(),
        publish=identity,
        adversary=constructions.says_positive,
        requests=1,
        deletion=1,
        target=1,
    )
    return Case("sum", "retraining", scenario, observed=1, secret_state=False, expected=1.0, promised=0.0), np.zeros


def _median(settings: Deletion) -> tuple[Case, Callable[[int], Any]]:
    n, request = settings.median.n, settings.median.request
    scenario = Scenario(
        databases=partial(constructions.median_databases, n=n),
        service=StatisticService(constructions.median),
        requester=lambda interactions, key: constructions.MedianRequester(n, request, interactions, key),
        publish=identity,
        adversary=constructions.says_median,
        requests=request,
        deletion=request,
        target=0,
    )
    # The median under hypothesis 0 is another number, so the attack never wrongly says 1: its advantage is its success
    # rate.
    expected = median_success(n, request=request).exact
    case = Case("median", "retraining", scenario, observed=1, secret_state=False, expected=expected, promised=0.0)
    return case, np.zeros


def _counting(settings: Deletion) -> list[tuple[Case, Callable[[int], Any]]]:
    epsilon, exposures = settings.counting.epsilon, settings.counting.exposures
    repaired = 2 * repaired_counting_success(epsilon, exposures=exposures) - 1
    printed = counting_advantage(epsilon)
    return [
        (
            Case(
                "counting-repaired" if is_repaired else "counting",
                "own",
                Scenario(
                    databases=constructions.bit_databases,
                    service=CountingService(epsilon, is_repaired),
                    requester=lambda interactions, key: DeleteFirst(interactions),
                    publish=constructions.release_only,
                    adversary=partial(constructions.says_shifted, repaired=is_repaired),
                    requests=releases,
                    deletion=1,
                    target=0,
                ),
                observed=0,
                secret_state=True,
                expected=repaired if is_repaired else printed,
                promised=advantage_under_unlearning(epsilon),
                bound=None if is_repaired else counting_limits(epsilon).most,
            ),
            _no_count,
        )
        for is_repaired, releases in (
            (False, settings.counting.releases),
            (True, release_of_exposure(1, exposure=exposures)),
        )
    ]


def _no_count(interactions: int) -> CountingModel:
    return CountingModel(0, (), np.zeros(interactions))


def _stream(settings: Deletion) -> tuple[Case, Callable[[int], Any]]:
    epsilon, releases, n = settings.stream.epsilon, settings.stream.releases, STREAM_RECORDS
    scenario = Scenario(
        databases=partial(counterexamples.last_bit_databases, n=n),
        service=StreamService(epsilon),
        requester=lambda interactions, key: counterexamples.CopyThenRepeat(n),
        publish=identity,
        adversary=counterexamples.says_majority,
        requests=n + releases - 1,
        deletion=n,
        target=n - 1,
    )
    case = Case(
        "copied-then-averaged",
        "own",
        scenario,
        observed=1,
        secret_state=False,
        expected=majority_advantage(epsilon, releases=releases),
        promised=largest_advantage(coin_divergence(epsilon, alpha=ORDER), alpha=ORDER),
    )
    return case, lambda interactions: np.zeros((interactions, n), dtype=np.uint8)


def _key(settings: Deletion) -> tuple[Case, Callable[[int], Any]]:
    epsilon, length = settings.key.epsilon, settings.key.length
    call = max(divergence(epsilon, alpha=ORDER) for divergence in (randomised_response_divergence, laplace_divergence))
    scenario = Scenario(
        databases=partial(counterexamples.last_bit_databases, n=length + 1),
        service=KeyedService(epsilon, length),
        requester=lambda interactions, key: counterexamples.WriteKey(length, interactions),
        publish=identity,
        adversary=counterexamples.says_count,
        requests=length + 1,
        deletion=length + 1,
        target=length,
    )
    case = Case(
        "written-key",
        "own",
        scenario,
        observed=1,
        secret_state=False,
        expected=keyed_count_advantage(epsilon, key_length=length),
        promised=largest_advantage(adaptive_epsilon(0.0, call, observed=1), alpha=ORDER),
    )

    def no_key(interactions: int) -> KeyedModel:
        return KeyedModel(np.zeros((interactions, length), dtype=np.uint8), 0, np.zeros(interactions))

    return case, no_key
