"""What clients send, by an oracle that takes one client and one step at a time; and the plan of federated averaging."""

from typing import Any

import pytest
import torch
from torch import Tensor

from certified_unlearning.accounting.tv.recomputation import query_recompute_probability
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.errors import AssumptionError, ParameterError
from certified_unlearning.mechanisms.exact.queries import clients as module
from certified_unlearning.mechanisms.exact.queries import federated_averaging
from certified_unlearning.mechanisms.exact.queries.clients import Clients, LocalTraining
from certified_unlearning.mechanisms.exact.queries.federated_plan import USUAL_NOISE, USUAL_RECOMPUTE, FederatedPlan

SIZES = {0: 1, 3: 7, 4: 2, 9: 30, 11: 2}
"""Rows of each client; the names are those of some first rows."""
FEATURES = 3
USUAL: dict[str, Any] = {"n": 90, "clients": 30, "features": FEATURES, "classes": 2, "strong_convexity": 0.01}


def rows_and_owners() -> tuple[Tensor, Tensor]:
    """Return rows of clients in no order, and some that are nobody's."""
    owners = torch.tensor([name for name, size in SIZES.items() for _ in range(size)] + [-1] * 5)
    owners = Draws.at("clients").orders(owners, 1)[0]
    return torch.nn.functional.normalize(Draws.at("rows").normal(len(owners), FEATURES)).float(), owners


def slowly(rows: Tensor, labels: Tensor, model: Tensor, training: LocalTraining) -> Tensor:
    """Return a client's model after its steps, of gradients that PyTorch finds."""
    model = model.clone()
    for _ in range(training.steps):
        model.requires_grad_(True)
        scores = rows.double() @ model.view(-1, FEATURES).T
        if training.classes == 2:
            scores = torch.hstack([torch.zeros_like(scores), scores])
        loss = torch.nn.functional.cross_entropy(scores, labels)
        loss = loss + training.strong_convexity / 2 * model.square().sum()
        model = (model - training.step_size * torch.autograd.grad(loss, model)[0]).detach()
    return model


@pytest.mark.parametrize("at_once", [1, 60, 1 << 22])
@pytest.mark.parametrize("classes", [2, 3])
def test_each_client_descends_on_its_own_rows(classes: int, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the blocks are that they are taken in, and whichever are asked for, in any order."""
    monkeypatch.setattr(module, "NUMBERS_AT_ONCE", at_once)
    (rows, owners), training = rows_and_owners(), LocalTraining(3, 1.5, 0.1, classes)
    kinds = Draws.at("labels").integers(classes, len(rows))
    labels = 2 * kinds - 1 if classes == 2 else kinds
    clients = Clients(rows, labels, owners, training)
    assert clients.names.tolist() == sorted(SIZES)
    models = Draws.at("models").normal(2, FEATURES * (1 if classes == 2 else classes))
    for asked in (sorted(SIZES), [9, 0], [3]):
        trained = clients.train(models, torch.tensor(asked))
        for number, name in enumerate(asked):
            own = owners == name
            due = torch.stack([slowly(rows[own], kinds[own], model, training) for model in models])
            torch.testing.assert_close(trained[:, number], due, rtol=1e-12, atol=1e-12)


def test_a_client_with_most_rows_moves_the_sum_by_the_clipped_length_at_most() -> None:
    rows, owners = rows_and_owners()
    plan = FederatedPlan.make(**USUAL, clip=0.01)
    clients = plan.clients_of(rows, torch.where(rows[:, 0] > 0, 1, -1), owners)
    parts = [plan.method_of(clients).sums(1, torch.zeros(1, FEATURES).double(), clients.names[[i]]) for i in range(5)]
    assert [float(part.norm()) for part in parts] == pytest.approx([0.01] * 5)


def test_clients_that_are_summed_in_blocks_send_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, owners = rows_and_owners()
    plan = FederatedPlan.make(**USUAL)
    clients = plan.clients_of(rows, torch.where(rows[:, 0] > 0, 1, -1), owners)
    models, whole = Draws.at("models").normal(2, FEATURES), []
    for most in (1, 20, federated_averaging.MOST_NUMBERS):
        monkeypatch.setattr(federated_averaging, "MOST_NUMBERS", most)
        whole.append(plan.method_of(clients).sums(1, models, clients.names))
    torch.testing.assert_close(whole[0], whole[2])
    torch.testing.assert_close(whole[1], whole[2])


def test_the_planned_noise_keeps_to_the_wanted_probability() -> None:
    for wanted in (0.01, 0.5, 0.99):
        plan = FederatedPlan.make(**USUAL, recompute=wanted, clip=2.0, steps=7)
        again = query_recompute_probability(queries=7, sigma=plan.sigma, bound=2.0)
        assert again == pytest.approx(wanted, rel=1e-9)
        assert again <= wanted


def test_the_usual_noise_in_scores_is_the_same_for_any_number_of_rounds_until_many_clients_need_less() -> None:
    plans = [FederatedPlan.make(**USUAL | {"clients": clients}, steps=steps) for clients, steps in ((2, 3), (30, 40))]
    assert [plan.noise_in_scores for plan in plans] == pytest.approx([USUAL_NOISE] * 2)
    many = FederatedPlan.make(**USUAL | {"clients": 100_000})
    assert many.noise_in_scores < USUAL_NOISE / 10
    again = query_recompute_probability(queries=many.steps, sigma=many.sigma, bound=many.clip)
    assert again == pytest.approx(USUAL_RECOMPUTE)


@pytest.mark.parametrize(
    ("asked", "error", "sentence"),
    [
        ({"clients": 1}, AssumptionError, "needs two clients or more, got 1"),
        ({"recompute": 1.0}, ParameterError, "recompute must lie strictly between 0 and 1, got 1.0"),
        ({"clip": 0.0}, ParameterError, "clip must be a finite number above 0, got 0.0"),
        ({"local_steps": 0}, ParameterError, "local_steps must be a whole number, at least 1, got 0"),
        ({"step_size": 300.0}, ParameterError, "step_size must be at most 2 / lambda = 200"),
    ],
)
def test_what_makes_no_plan_is_refused(asked: dict[str, Any], error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        FederatedPlan.make(**USUAL | asked)
