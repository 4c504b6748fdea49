"""A ledger whose clients leave federated averaging exactly: an identifier, with all its rows, is a client."""

import itertools
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from certified_unlearning import certificate
from certified_unlearning.audit.directories import audit_directory
from certified_unlearning.certificate import FederatedCertificate
from certified_unlearning.data.tables.declaration import Table
from certified_unlearning.engine.addresses import address
from certified_unlearning.engine.exact import draws
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.errors import AssumptionError, InfeasibleError, LedgerError, ParameterError, UnlearningError
from certified_unlearning.ledger import load_model, requests
from certified_unlearning.ledger.adding.addition import add
from certified_unlearning.ledger.application import apply
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.initialisation import initialise
from certified_unlearning.ledger.method import RemovedRows, Secret
from certified_unlearning.ledger.methods import exact_steps
from certified_unlearning.ledger.methods.federated_averaging import FederatedSteps
from certified_unlearning.ledger.model import method_of, read_stored
from certified_unlearning.ledger.state import Batch
from certified_unlearning.ledger.store import Ledger
from certified_unlearning.ledger.training.forms import copy_of
from certified_unlearning.ledger.verification import verify
from certified_unlearning.mechanisms.exact.queries import linear_queries
from certified_unlearning.mechanisms.exact.queries.clients import Clients
from certified_unlearning.mechanisms.exact.queries.linear_queries import LinearQueries, QueryRun
from tests.ledger.conftest import Forks, Original, Unlearn
from tests.ledger.tables import write_new
from tests.ledger.test_crashes import KILLED, require_consistent, rows_are_those_left
from tests.ledger.test_exact_steps import edit_secret, forge, forge_weights, same_bits, state_of
from tests.ledger.test_residue import found, traces
from tests.ledger.test_tampering import sql
from tests.support import couplings
from tests.support.laws import told_apart

NAME = "federated-averaging"


def make(path: Path, data: Path, mechanism: str = NAME, **asked: Any) -> None:
    initialise(path, Table(path=str(data), label="ill", identifier="person"), mechanism=mechanism, **asked)  # type: ignore[arg-type]


@pytest.fixture(scope="module", autouse=True)
def _given_seeds() -> Iterator[None]:
    """What this process draws is the same in every run of these tests; no test has a false alarm by chance."""
    seeds = (address("federated averaging", number) for number in itertools.count())
    with pytest.MonkeyPatch.context() as patch:
        for module in (draws, exact_steps):
            patch.setattr(module, "secrets", SimpleNamespace(randbits=lambda bits: next(seeds)))
        yield


@pytest.fixture(scope="module")
def made(original: Original, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("federated") / "model"
    make(path, original.data)
    return path


@pytest.fixture
def model(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "model"))


# What a removal leaves.


def test_a_stream_of_requests_leaves_a_state_that_follows_from_the_clients_that_are_left(
    original: Original, model: Path
) -> None:
    gone: list[str] = []
    for people in (["p3"], ["p4", "p5"], [f"p{each}" for each in range(100, 140)]):
        requests.request(model, people)
        apply(model)
        gone += people
        left = original.table[~original.table["person"].isin(gone)]
        assert state_of(model)["records"].tolist() == sorted(left.index.to_series().groupby(left["person"]).min())
        said = verify(model).current
        assert isinstance(said, FederatedCertificate)
        certificate.verify(said)
        assert (said.n_learned, said.n, said.deleted) == (300, 300 - len(gone), len(gone))
    assert (said.requests, said.epsilon, said.delta) == (3, 0, 0)
    loaded = load_model(model)
    assert loaded.score(loaded.rows(original.data), original.table["ill"]) > 0.8


def test_three_classes(original: Original, tmp_path: Path) -> None:
    table = original.table.copy()
    table.loc[table["weight"] > 0.5, "ill"] = "perhaps"
    table.to_csv(tmp_path / "three.csv", index=False)
    make(tmp_path / "model", tmp_path / "three.csv", recompute=0.9)
    requests.request(tmp_path / "model", ["p3", "p10"])
    apply(tmp_path / "model")
    said = verify(tmp_path / "model").current
    assert isinstance(said, FederatedCertificate)
    assert (said.loss, said.d) == ("softmax", 12)
    loaded = load_model(tmp_path / "model")
    assert loaded.score(loaded.rows(table), table["ill"]) > 0.7


def test_a_removal_that_takes_no_round_again_reads_the_rows_of_the_leaving_client_alone(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[list[int]] = []
    plain = Clients.train

    def watched(clients: Clients, models: torch.Tensor, names: torch.Tensor) -> torch.Tensor:
        read.append(names.tolist())
        return plain(clients, models, names)

    monkeypatch.setattr(Clients, "train", watched)
    # Every value is kept.
    step = linear_queries.reflection_step
    monkeypatch.setattr(
        linear_queries, "reflection_step", lambda *given: step(*given[:4], torch.zeros(1, dtype=torch.float64))
    )
    requests.request(model, ["p3"])
    apply(model)
    assert read == [[4]] * 10


def test_no_file_has_a_feature_of_a_removed_record_or_an_old_sum(
    original: Original, model: Path, tmp_path: Path
) -> None:
    directory, gone = ModelDirectory(model), ["p3", "p4", "p150"]
    (tmp_path / "linked").hardlink_to(directory.secret(1))
    before = state_of(model)
    requests.request(model, gone)
    assert found(model, traces(original, gone)) == {"features.float32"}
    apply(model)
    assert found(model, traces(original, gone)) == set()
    assert not directory.secret(1).exists()
    assert set((tmp_path / "linked").read_bytes()) == {0}
    assert found(model, (each.tobytes() for each in before["sums"].ravel())) == set()


def test_nothing_that_is_shown_or_recorded_tells_what_a_request_cost(
    model: Path, tmp_path: Path, unlearn: Unlearn, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown, recorded, certified = [], [], []
    for uniform in (0.0, 1.0):  # Every value is kept; every one that may be reflected is.
        path = Path(shutil.copytree(model, tmp_path / f"{uniform}"))
        monkeypatch.setattr(Draws, "uniform", _with_tests_at(uniform))
        before = state_of(path)
        requests.request(path, ["p3"])
        printed = unlearn("apply", path, "--no-quality").stdout
        assert same_bits({"noisy": before["noisy"]}, {"noisy": state_of(path)["noisy"]}) == (uniform == 0)
        shown.append(printed.split("head")[0].split("):")[1])
        with Ledger.opened(ModelDirectory(path).ledger) as ledger:
            recorded.append([sorted(event.payload) for event in ledger.events("planned", "applied")])
        certified.append(ModelDirectory(path).certificate(2).read_text())
    assert shown[0] == shown[1]
    assert recorded[0] == recorded[1]
    assert certified[0] == certified[1]


def _with_tests_at(value: float, plain: Any = Draws.uniform) -> Any:
    """Return draws whose single numbers, which tests take, have one value; noise takes more at a time."""

    def uniform(draws: Draws, *shape: int) -> torch.Tensor:
        drawn = plain(draws, *shape)
        return torch.full_like(drawn, value) if shape == (1,) else drawn

    return uniform


# Exact.

RUNS, LEVEL = 20_000, 1e-9
FIVE = pd.DataFrame(
    {
        "a": [0.9, 0.8, -0.7, 0.7, 0.6, -0.9, 0.3, -0.5],
        "b": [0.1, -0.5, 0.2, 0.7, 0.6, -0.4, -0.9, 0.3],
        "ill": ["yes", "yes", "no", "no", "yes", "no", "yes", "no"],
        "person": ["c0", "leaving", "c2", "leaving", "c4", "also", "c2", "leaving"],
    }
)


@pytest.fixture(scope="module")
def five(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of five clients, two of which leave in one batch."""
    root = tmp_path_factory.mktemp("five")
    FIVE.to_csv(root / "five.csv", index=False)
    table = Table(path=str(root / "five.csv"), label="ill", identifier="person", classes=("no", "yes"))
    asked: dict[str, Any] = {"steps": 3, "recompute": 0.9, "clip": 1.0, "local_steps": 2, "step_size": 1.0}
    initialise(root / "model", table, mechanism=NAME, **asked)
    return root / "model"


def functions(run: QueryRun) -> dict[str, torch.Tensor]:
    """Return functions of the model, of the state, and of what binds them; a number for each run."""
    noise = run.noisy - run.sums
    return {
        "weight": run.models[:, -1, 0],
        "other weight": run.models[:, -1, 1],
        "length of noise": noise.square().sum(dim=(1, 2)),
        "noise along sums": (noise * run.sums).sum(dim=(1, 2)),
        "noise along itself": (noise[:, 1:] * noise[:, :-1]).sum(dim=(1, 2)),
        "sums along models": (run.sums * run.models[:, :-1]).sum(dim=(1, 2)),
    }


def differing(path: Path) -> list[str]:
    """Return by what many states that two clients left differ from those learned anew on the others."""
    directory, gone = ModelDirectory(path), [1, 3, 5, 7]
    method = method_of(directory, read_stored(directory, requests.status(path).state))
    assert isinstance(method, FederatedSteps)
    owners = torch.tensor([0, 1, 2, 1, 4, 5, 2, 1])
    learner = method._plan.learner_of(method._plan.method_of(method._clients(owners)))
    run, _ = learner.learn(torch.tensor([0, 1, 2, 4, 5]), RUNS, Draws.at("federated", "learned"))
    secret = Secret({name: each.numpy() for name, each in run.tensors().items()}, {"seed": "1f"})
    taken = RemovedRows(*copy_of(directory, method._plan.features, 1).take(gone))
    batch = Batch(version=2, after=0, up_to=2, requests=2, records=4, steps=0, training_digest="")
    kept = method.remove(np.zeros(0), secret, [], batch, gone, taken, torch.device("cpu")).secret
    assert kept is not None
    left = QueryRun(**{name: torch.tensor(each) for name, each in kept.arrays.items()})
    assert left.records.tolist() == [0, 2, 4]
    anew, _ = learner.learn(left.records, RUNS, Draws.at("federated", "anew"))
    return told_apart(functions(left), functions(anew), level=LEVEL)


def test_two_clients_that_leave_together_leave_the_law_of_learning_without_them(five: Path) -> None:
    """20 000 runs; Kolmogorov-Smirnov tests of six functions, at 1e-9 each: a false alarm in fewer than 1 of 1e8."""
    assert differing(five) == []


@pytest.mark.parametrize("coupling", couplings.WRONG, ids=lambda each: each.__name__)
def test_a_wrong_coupling_is_told_apart(coupling: Any, five: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_queries, "reflection_step", coupling)
    assert differing(five) != []


def test_a_client_of_which_one_row_stays_is_told_apart(five: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the leaving clients sent is computed without one of their rows, which is zeros in the copy by then."""
    plain = FederatedSteps._clients

    def without_the_first(method: FederatedSteps, owners: Any, rows: Any = (), taken: Any = None) -> Clients:
        if taken is not None:
            taken.rows[0] = 0
        return plain(method, owners, rows, taken)

    monkeypatch.setattr(FederatedSteps, "_clients", without_the_first)
    assert differing(five) != []


# What was killed ends alike.


def close(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    return all(np.allclose(one[name], other[name], rtol=1e-12, atol=1e-12) for name in one | other)


@pytest.mark.sampled
@pytest.mark.parametrize(("accident", "ends_with", "step"), [("kill_at", KILLED, 9), ("fail_at", 1, 15)])
def test_apply_that_is_killed_or_finds_the_disk_full_at_its_changes_ends_alike(
    original: Original, model: Path, tmp_path: Path, fork: Forks, accident: str, ends_with: int, step: int
) -> None:
    requests.request(model, ["p3", "p4"])
    untouched = Path(shutil.copytree(model, tmp_path / "untouched"))
    apply(untouched)
    due, accidents = state_of(untouched), 0
    while True:
        copy = Path(shutil.copytree(model, tmp_path / f"{accident}-{accidents + 1}"))
        status = fork("apply", copy, **{accident: accidents + 1})
        require_consistent(copy, requested=2)
        if status == 0:
            break
        assert status == ends_with
        accidents += step
        assert fork("apply", copy) == 0
        verify(copy)
        assert close(state_of(copy), due)
        assert rows_are_those_left(copy, original, {"p3", "p4"})
        shutil.rmtree(copy)
    assert accidents > 40


def test_rounds_are_taken_again_in_an_interrupted_apply_exactly_where_they_are_without_the_interruption(
    original: Original, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a time limit would: what takes rounds again is interrupted, and finished without the leaving client's rows."""
    plain, interrupted = LinearQueries._run_from, []

    def too_long(learner: LinearQueries, run: QueryRun, restarts: torch.Tensor, *rest: Any) -> None:
        interrupted.append(int(restarts.min()) < learner.settings.steps)
        if interrupted[-1]:
            raise KeyboardInterrupt
        plain(learner, run, restarts, *rest)

    for number in range(8):
        path = tmp_path / f"{number}"
        make(path, original.data, recompute=0.5, steps=4, clip=0.5)
        requests.request(path, ["p3", "p4"])
        untouched = Path(shutil.copytree(path, tmp_path / "untouched"))
        apply(untouched)
        with monkeypatch.context() as patch:
            patch.setattr(LinearQueries, "_run_from", too_long)
            try:
                apply(path)
            except KeyboardInterrupt:
                with pytest.raises(LedgerError, match="was interrupted"):
                    verify(path)
        apply(path)
        verify(path)
        assert close(state_of(path), state_of(untouched))
        shutil.rmtree(untouched)
    # Both happen.
    assert {*interrupted} == {False, True}


def test_an_apply_that_drew_anew_would_end_with_other_numbers(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests.request(model, ["p3", "p4"])
    untouched = Path(shutil.copytree(model, tmp_path / "untouched"))
    monkeypatch.setattr(Draws, "uniform", _with_tests_at(1.0))
    apply(untouched)
    kept = FederatedSteps._kept
    monkeypatch.setattr(FederatedSteps, "_kept", lambda *given: (kept(*given)[0], 7))
    apply(model)
    verify(model)
    assert not close(state_of(model), state_of(untouched))


# What was tampered with is found.


def forge_sum(path: Path) -> None:
    sums = state_of(path)["sums"].copy()
    sums[0, 7] *= 1.001
    forge(path, sums=sums)


def forge_noise(path: Path) -> None:
    noisy = state_of(path)["noisy"].copy()
    noisy[0, 3] *= 1.001
    forge(path, noisy=noisy)


def forge_clients(path: Path) -> None:
    forge(path, records=np.sort(np.append(state_of(path)["records"], 4)))


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (edit_secret, "is not the secret state that the ledger recorded"),
        (lambda path: ModelDirectory(path).secret(2).unlink(), "cannot read .*secret-2"),
        (forge_sum, "sums of step 8 are off by"),
        (forge_noise, "models after step 4 are off by"),
        (forge_clients, "does not hold exactly the remaining clients"),
        (lambda path: forge(path, sigma=np.array(0.5)), "learned with sigma = 0.5 in 10 steps"),
        (forge_weights, "published weights are off by"),
    ],
)
def test_a_state_that_was_tampered_with_is_found(model: Path, spoil: Any, sentence: str) -> None:
    requests.request(model, ["p3"])
    apply(model)
    verify(model)
    spoil(model)
    with pytest.raises(UnlearningError, match=sentence) as caught:
        verify(model)
    assert "\n" not in str(caught.value)


# Wrong use.


def test_a_table_of_one_client_is_refused(original: Original, tmp_path: Path) -> None:
    table = original.table.assign(person="hospital")
    table.to_csv(tmp_path / "one.csv", index=False)
    declared = Table(path=str(tmp_path / "one.csv"), label="ill", identifier="person", classes=("no", "yes"))
    with pytest.raises(AssumptionError, match="federated-averaging needs two clients or more, got 1"):
        initialise(tmp_path / "model", declared, mechanism=NAME)
    assert [each.name for each in tmp_path.iterdir()] == ["one.csv"]


def test_the_last_client_is_kept_before_anything_is_done(five: Path, tmp_path: Path) -> None:
    model = Path(shutil.copytree(five, tmp_path / "model"))
    requests.request(model, ["c0", "leaving", "also"])
    apply(model)
    requests.request(model, ["c2", "c4"])
    with pytest.raises(InfeasibleError, match="no client would be left; nothing was done"):
        apply(model)
    assert requests.status(model).state.pending == 2
    verify(model)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("identifier = '{}'", "does not hold exactly the remaining clients"),
        ("row = 450", "names row 450, but there are 450 rows"),
    ],
)
def test_a_ledger_that_gives_a_row_to_another_client_is_noticed_by_apply(
    model: Path, change: str, sentence: str
) -> None:
    requests.request(model, ["p3"])
    with Ledger.opened(ModelDirectory(model).ledger) as ledger:
        other = ledger.names.stored("p9")
    sql(model, f"UPDATE records SET {change.format(other)} WHERE row = 0")
    with pytest.raises(UnlearningError, match=sentence):
        apply(model)


def test_all_clients_but_one_may_leave_and_so_may_the_one_with_most_rows(five: Path, tmp_path: Path) -> None:
    model = Path(shutil.copytree(five, tmp_path / "model"))
    requests.request(model, ["leaving"])
    apply(model)
    requests.request(model, ["c0", "also", "c2"])
    apply(model)
    said = verify(model).current
    assert isinstance(said, FederatedCertificate)
    assert said.n == 1
    assert "the one client that is left" in said.details()


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"epsilon": 1.0}, "`epsilon` does not apply to federated-averaging"),
        ({"batch_size": 3}, "`batch_size` does not apply to federated-averaging"),
        ({"steps": 10**18}, "1,000,000,000,000,000,000 steps do not fit in memory: take fewer"),
        ({"recompute": 0.0}, "recompute must lie strictly between 0 and 1, got 0.0"),
        ({"device": "cuda"}, "device must be left out: federated-averaging computes on the CPU"),
        (
            {"mechanism": "noisy-sgd", "clip": 2.0},
            "`clip` does not apply to noisy-sgd; .* --mechanism federated-averaging",
        ),
    ],
)
def test_what_means_nothing_is_refused(
    original: Original, tmp_path: Path, asked: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ParameterError, match=sentence):
        make(tmp_path / "model", original.data, **asked)
    assert list(tmp_path.iterdir()) == []


def test_clients_cannot_be_added_and_no_audit_with_single_records_is_made(model: Path, tmp_path: Path) -> None:
    write_new(tmp_path / "new.csv")
    with pytest.raises(
        ParameterError, match="no records can be added to a model of federated-averaging: sums of clients"
    ):
        add(model, tmp_path / "new.csv")
    with pytest.raises(
        AssumptionError, match="of federated-averaging, and such models cannot be audited: its clients leave with"
    ):
        audit_directory(model)


# The command line.


def test_the_command_line_from_a_table_to_a_verified_certificate(
    original: Original, tmp_path: Path, unlearn: Unlearn
) -> None:
    model = tmp_path / "model"
    asked = ("--data", original.data, "--label", "ill", "--id", "person", "--mechanism", NAME, "--clip", 2)
    said = unlearn("init", model, *asked, "--steps", 5, "--recompute", 0.3)
    assert said.exit_code == 0, said.output
    assert "learning takes 5 rounds of 10 steps by each of 300 clients (all clients count the same" in said.output
    assert "removing one client repeats rounds with probability at most 0.3" in said.output
    unlearn("request", model, "--id", "p3", "--id", "p4")
    said = unlearn("apply", model)
    assert "removed 3 records of 2 people by exact unlearning" in said.output
    assert "exact: epsilon = 0 at delta = 0 for a reader of version 2 alone" in said.output
    for path in (model, model / "certificate-2.json"):
        assert unlearn("verify", path).exit_code == 0
    stated = json.loads((model / "certificate-2.json").read_text())
    assert (stated["kind"], stated["n"], stated["clip"]) == ("federated", 298, 2.0)
    assert stated["recompute_probability"] == pytest.approx(0.3)


def test_noise_that_is_loud_for_few_clients_is_warned_of(original: Original, tmp_path: Path, unlearn: Unlearn) -> None:
    original.table.assign(person=np.arange(450) % 12).to_csv(tmp_path / "wards.csv", index=False)
    asked = ("--data", tmp_path / "wards.csv", "--label", "ill", "--id", "person", "--mechanism", NAME, "--no-quality")
    asked = (*asked, "--class", "no", "--class", "yes")
    said = unlearn("init", tmp_path / "loud", *asked, "--recompute", 0.5).output
    assert "with 12 clients the noise in a score has a standard deviation of about" in said
    assert "a --recompute nearer to 1 needs less noise" in said
    assert "the noise in a score" not in unlearn("init", tmp_path / "quiet", *asked).output
