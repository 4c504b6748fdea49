"""Algorithm 1's rules: who may see what, what a request may be, and that a service has nothing but its arguments."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from certified_unlearning.errors import ParameterError, UnlearningError
from certified_unlearning.papers.forget_unlearning.services.constructions import (
    CountingService,
    StatisticService,
    total,
)
from certified_unlearning.papers.forget_unlearning.services.encoding import FixedRequests, one_record
from certified_unlearning.papers.forget_unlearning.services.interaction import (
    ForbiddenReleaseError,
    Request,
    identity,
    interact,
)
from certified_unlearning.papers.forget_unlearning.services.linear_losses import (
    ConstantService,
    LangevinService,
    NoisyGradientService,
    PublishedStateService,
    RetrainingService,
    SecretStateModel,
    SecretStateService,
    published,
)
from certified_unlearning.papers.forget_unlearning.services.measurement import Scenario
from tests.papers.forget_unlearning.small_settings import PLAN

DESCENT = PublishedStateService(replace(PLAN.problem, step_size=1.0), 0.5, 5, 3)
SERVICES = {
    "noisy-gradient-deletion": NoisyGradientService(PLAN),
    "langevin": LangevinService(PLAN.problem, PLAN.sigma, 5, 3),
    "published-state": DESCENT,
    "retraining": RetrainingService(PLAN),
    "constant": ConstantService(),
    "sum": StatisticService(total),
}
N, COUNT = 20, 7


def databases(seed=1):
    return np.random.default_rng(seed).uniform(-1, 1, (COUNT, N))


@dataclass(frozen=True)
class Peeking:
    """Reads a release at a request, whatever it may see."""

    reads: int
    at: int
    observes: tuple[int, ...] = ()

    def request(self, number, releases, own):
        if number == self.at:
            releases[self.reads]
        return one_record(np.zeros(COUNT), index=N - 1)


def run(requester, service=SERVICES["sum"], publish=identity, data=None, requests=3, key=("test",)):
    data = databases() if data is None else data
    return interact(data, service, requester, publish, requests=requests, deletion=2, target=N - 1, key=key)


@pytest.mark.parametrize(
    ("reads", "at", "observes"), [(0, 1, ()), (1, 2, (0,)), (0, 3, (1, 2)), (1, 1, (0, 1)), (3, 3, (3,))]
)
def test_a_requester_that_reads_what_it_may_not_see_raises(reads, at, observes):
    with pytest.raises(ForbiddenReleaseError, match=f"may not see release {reads} now"):
        run(Peeking(reads, at, observes))
    assert issubclass(ForbiddenReleaseError, UnlearningError)


@pytest.mark.parametrize(("reads", "at", "observes"), [(0, 1, (0,)), (0, 3, (0,)), (2, 3, (0, 2))])
def test_a_requester_may_read_what_it_observes(reads, at, observes):
    assert len(run(Peeking(reads, at, observes)).released) == 2


def test_the_adversary_gets_what_is_released_from_the_deletion_on_and_nothing_else():
    interaction = run(Peeking(0, 0))
    after = databases()
    after[:, -1] = 0
    assert [release.tolist() for release in interaction.released] == [after.sum(axis=1).tolist()] * 2
    assert set(vars(interaction)) == {"released", "databases"}


@dataclass(frozen=True)
class Writing:
    """Tries to write into a release, or into the model that it gets."""

    observes: tuple[int, ...] = (0,)

    def request(self, number, releases, own):
        releases[0][:] = 0
        raise AssertionError("a release could be written to")

    def learn(self, data, key):
        return SecretStateModel(np.ones(len(data)), np.ones(len(data)))

    def answer(self, data, request, model, key):
        model.secret[:] = 0
        raise AssertionError("a model could be written to")


def test_what_is_handed_over_cannot_be_written_to():
    with pytest.raises(ValueError, match="read-only"):
        run(Writing())
    with pytest.raises(ValueError, match="read-only"):
        run(Peeking(0, 0), Writing(), published)
    with pytest.raises(ValueError, match="read-only"):
        run(Peeking(0, 0)).databases[:] = 0


@dataclass(frozen=True)
class Unlocking(Writing):
    """Tries to make what it gets writeable first."""

    def request(self, number, releases, own):
        releases[0].flags.writeable = True
        raise AssertionError("a release could be unlocked")

    def answer(self, data, request, model, key):
        data.flags.writeable = True
        raise AssertionError("the data could be unlocked")


def test_what_is_handed_over_cannot_be_made_writeable():
    for requester, service in ((Unlocking(), SERVICES["sum"]), (Peeking(0, 0), Unlocking())):
        with pytest.raises(ValueError, match="cannot set WRITEABLE flag to True"):
            run(requester, service)


def test_the_callers_own_data_stay_writeable():
    data = databases()
    run(Peeking(0, 0), data=data)
    assert data.flags.writeable


def test_a_call_s_key_tells_nothing_of_the_hypothesis_or_of_other_calls():
    seen = []

    class Noting(Remembering):
        def learn(self, data, key):
            seen.append(key)
            return super().learn(data, key)

        def answer(self, data, request, model, key):
            seen.append(key)
            return super().answer(data, request, model, key)

    def requester(count, key):
        seen.append(key)
        return Peeking(0, 0)

    scenario = Scenario(
        databases=lambda hypothesis, count, key: databases()[:count],
        service=Noting(),
        requester=requester,
        publish=identity,
        adversary=lambda released: released[0] > 0,
        requests=3,
        deletion=3,
        target=N - 1,
    )
    for hypothesis in (0, 1):
        scenario.guesses(hypothesis, len(databases()), ("mine",))
    assert len(seen) == len(set(seen)) == 10
    assert all(len(key) == 1 and len(key[0]) > 30 and key[0].isdigit() for key in seen)


@dataclass
class Remembering:
    """Keeps what it deleted outside of the model: the harness must not let it."""

    memory: list[float] = field(default_factory=list)

    def learn(self, data, key):
        self.memory.append(float(data[0, -1]))
        return np.zeros(len(data))

    def answer(self, data, request, model, key):
        return np.full(len(data), sum(self.memory))


def test_what_a_service_keeps_outside_the_model_is_lost():
    service = Remembering()
    assert all((release == 0).all() for release in run(Peeking(0, 0), service).released)
    assert service.memory == []


# --- Requests ---------------------------------------------------------------------------------------------------------


def test_a_request_must_not_replace_a_record_twice():
    with pytest.raises(ParameterError, match="twice"):
        Request(np.array([[0, 1], [3, 3]]), np.zeros((2, 2)))


def test_a_request_has_as_many_records_as_indices():
    with pytest.raises(ParameterError, match="shape"):
        Request(np.array([[0, 1]]), np.zeros((1, 3)))


@pytest.mark.parametrize("index", [-1, N])
def test_a_request_must_replace_records_that_there_are(index):
    with pytest.raises(ParameterError, match="from 0 to n - 1 = 19"):
        one_record(np.zeros(COUNT), index=index).applied_to(databases())


def test_a_request_must_fit_the_databases():
    with pytest.raises(ParameterError, match="do not fit"):
        one_record(np.zeros(COUNT + 1), index=0).applied_to(databases())
    with pytest.raises(ParameterError, match="do not fit"):
        one_record(np.zeros((COUNT, 2)), index=0).applied_to(databases())


def test_the_target_must_be_deleted_in_every_interaction():
    with pytest.raises(ParameterError, match="request 2 must delete record 19"):
        run(FixedRequests(N, COUNT))


def test_the_number_of_records_never_changes():
    assert run(Peeking(0, 0)).databases.shape == databases().shape


def test_requests_replace_records_and_leave_the_others():
    data = databases()
    after = Request(np.tile([4, 2], (COUNT, 1)), np.full((COUNT, 2), 9.0)).applied_to(data)
    assert (after[:, [4, 2]] == 9).all()
    others = [index for index in range(N) if index not in (2, 4)]
    assert (after[:, others] == data[:, others]).all()


# --- Services have nothing but their arguments ------------------------------------------------------------------------


@pytest.mark.parametrize("name", SERVICES)
def test_equal_data_after_the_request_model_and_key_give_equal_bits(name):
    service, request = SERVICES[name], one_record(np.linspace(-1, 1, COUNT), index=3)
    data, others = databases(), databases()
    others[:, 3] = databases(2)[:, 3]
    model = np.random.default_rng(3).normal(size=COUNT)
    first, second = (service.answer(each, request, model, ("key",)) for each in (data, others))
    assert first.tobytes() == second.tobytes()


@pytest.mark.parametrize("name", SERVICES)
def test_replaced_records_are_not_read(name):
    data, request = databases(), one_record(np.linspace(-1, 1, COUNT), index=3)
    model = np.random.default_rng(3).normal(size=COUNT)
    whole = SERVICES[name].answer(data, request, model, ("key",))
    data[:, 3] = np.nan
    assert SERVICES[name].answer(data, request, model, ("key",)).tobytes() == whole.tobytes()


@pytest.mark.parametrize("name", SERVICES)
def test_the_order_of_a_requests_pairs_does_not_matter(name):
    indices, records = np.tile([2, 7, 5], (COUNT, 1)), np.random.default_rng(4).uniform(-1, 1, (COUNT, 3))
    model = np.zeros(COUNT)
    first = SERVICES[name].answer(databases(), Request(indices, records), model, ("key",))
    again = SERVICES[name].answer(databases(), Request(indices[:, ::-1], records[:, ::-1]), model, ("key",))
    assert first.tobytes() == again.tobytes()


@pytest.mark.parametrize("name", ["noisy-gradient-deletion", "langevin", "published-state", "retraining"])
def test_noise_is_fresh_in_every_call(name):
    request, model = one_record(np.zeros(COUNT), index=3), np.zeros(COUNT)
    first, again = (SERVICES[name].answer(databases(), request, model, ("key", call)) for call in (1, 2))
    assert (first != again).all()


def test_counting_is_caught_reading_replaced_records():
    """The checks above, shown to catch a mechanism that remembers what it deleted."""
    service = CountingService(1.0, repaired=False)
    data = np.ones((COUNT, 3))
    request = one_record(np.zeros(COUNT), index=0)
    model = service.learn(data, ("learn",))
    whole = service.answer(data, request, model, ("key",))
    data[:, 0] = np.nan
    assert np.isnan(service.answer(data, request, model, ("key",)).release).all()
    assert not np.isnan(whole.release).any()


def test_secret_state_shows_in_what_equal_published_models_become():
    service, request = SecretStateService(DESCENT), one_record(np.zeros(COUNT), index=3)
    models = [SecretStateModel(np.full(COUNT, secret), np.zeros(COUNT)) for secret in (0.0, 1.0)]
    first, second = (published(service.answer(databases(), request, model, ("key",))) for model in models)
    assert (first != second).all()


@pytest.mark.parametrize("name", ["noisy-gradient-deletion", "langevin", "retraining"])
def test_equal_keys_give_equal_bits_however_many_interactions_run_beside(name):
    data = np.repeat(databases(), 100, axis=0)
    whole = SERVICES[name].learn(data, ("key",))
    assert SERVICES[name].learn(data[:200], ("key",)).tobytes() == whole[:200].tobytes()
    assert SERVICES[name].learn(data, ("other",)).tobytes() != whole.tobytes()
