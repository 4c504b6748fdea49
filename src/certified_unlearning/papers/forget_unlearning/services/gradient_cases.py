"""The attack encode-then-delete and its controls on all gradient-descent mechanisms, with theoretical advantages."""

import math

from certified_unlearning.papers.forget_unlearning.names import Attack
from certified_unlearning.papers.forget_unlearning.services import encoding
from certified_unlearning.papers.forget_unlearning.services.attacked import Attacked, attacked, plan_of
from certified_unlearning.papers.forget_unlearning.services.cases import Case
from certified_unlearning.papers.forget_unlearning.services.encoding import (
    EncodeThenDelete,
    FixedRequests,
    Reading,
    says_negative,
)
from certified_unlearning.papers.forget_unlearning.services.interaction import Array, Key
from certified_unlearning.papers.forget_unlearning.services.measurement import Scenario
from certified_unlearning.papers.forget_unlearning.sweeps import Deletion
from certified_unlearning.papers.forget_unlearning.theory.attacks import averaging_advantage, reading_advantage


def gradient_cases(settings: Deletion) -> list[Case]:
    """Return every attack on every mechanism."""
    return [case for one in attacked(plan_of(settings.problem)) for case in _cases(one, settings)]


def _cases(one: Attacked, settings: Deletion) -> list[Case]:
    return [
        _adaptive(one, "encode-then-delete", settings, observed_releases=1),
        _adaptive(one, "encode-after-looks", settings, observed_releases=settings.looks),
        _fixed(one, "fixed-requests", settings, later=0),
        _fixed(one, "fixed-then-averaged", settings, later=settings.later_releases),
    ]


def _adaptive(one: Attacked, attack: Attack, settings: Deletion, *, observed_releases: int) -> Case:
    law, n, size = one.releases, settings.problem.n, settings.problem.lipschitz
    reading = Reading(first=law.learned / law.variance, later=law.drift / law.fresh, kept=law.kept)
    requester = EncodeThenDelete(n, size, observed_releases, reading)
    first, later = law.learned / math.sqrt(law.variance), law.drift / math.sqrt(law.fresh)
    expected = reading_advantage(first=first, later=later, observed_releases=observed_releases)
    return _case(one, attack, settings, requester, later=0, expected=expected)


def _fixed(one: Attacked, attack: Attack, settings: Deletion, *, later: int) -> Case:
    law = one.releases
    signal = law.forgets * law.learned / math.sqrt(law.variance)
    expected = averaging_advantage(signal=signal, kept=law.forgets, correlation=law.kept, releases=1 + later)
    return _case(one, attack, settings, FixedRequests(settings.problem.n, 0), later=later, expected=expected)


def _case(
    one: Attacked,
    attack: Attack,
    settings: Deletion,
    requester: EncodeThenDelete | FixedRequests,
    *,
    later: int,
    expected: float,
) -> Case:
    n, size = settings.problem.n, settings.problem.lipschitz

    def databases(hypothesis: int, interactions: int, key: Key) -> Array:
        return encoding.databases(hypothesis, interactions, n=n, size=size)

    def made(interactions: int, key: Key) -> EncodeThenDelete | FixedRequests:
        return FixedRequests(n, interactions) if isinstance(requester, FixedRequests) else requester

    return Case(
        attack=attack,
        mechanism=one.name,
        scenario=Scenario(
            databases=databases,
            service=one.service,
            requester=made,
            publish=one.publish,
            adversary=says_negative,
            requests=requester.deletion + later,
            deletion=requester.deletion,
            target=n - 1,
        ),
        observed=len(requester.observes),
        secret_state=one.name == "secret-state",
        expected=expected,
        promised=one.promise(requester.deletion),
        bound=None if one.bound is None else one.bound(requester.deletion, requester.observes),
    )
