"""Delta: `auto` unless somebody says otherwise, `1/n` as in the papers, or a number."""

import inspect
from pathlib import Path

import pytest
from sklearn.base import clone

import certified_unlearning
from certified_unlearning import (
    CertifiedLogisticRegression,
    LangevinLogisticRegression,
    PrivateLogisticRegression,
    SecretStateDescentToDelete,
)
from certified_unlearning.accounting.core.checks import required_delta
from certified_unlearning.errors import ParameterError

ESTIMATORS = [
    made
    for made in (getattr(certified_unlearning, name) for name in certified_unlearning.__all__)
    if hasattr(made, "fit") and "delta" in inspect.signature(made).parameters
]


def test_auto_is_a_millionth_or_a_tenth_of_one_over_n() -> None:
    assert required_delta("auto", 100) == 1e-6
    assert required_delta("auto", 100_000) == 1e-6
    assert required_delta("auto", 10_000_000) == 1e-8
    assert required_delta("1/n", 400) == 1 / 400
    assert required_delta(0.5, 400) == 0.5


@pytest.mark.parametrize("wrong", ["n", "Auto", None, 0, 1, -1e-6, float("nan"), "1e-6"])
def test_any_other_delta_is_refused(wrong: object) -> None:
    with pytest.raises(ParameterError, match=r"^delta must .*between 0 and 1, got "):
        required_delta(wrong, 100)  # type: ignore[arg-type]


@pytest.mark.parametrize("make", ESTIMATORS)
def test_every_estimator_that_has_a_delta_takes_auto_by_default(make: type) -> None:
    assert len(ESTIMATORS) >= 8
    assert make().get_params()["delta"] == "auto"
    assert clone(make(delta="1/n")).delta == "1/n"


@pytest.mark.parametrize(
    "make",
    [CertifiedLogisticRegression, LangevinLogisticRegression, SecretStateDescentToDelete],
)
@pytest.mark.parametrize(("delta", "stated"), [("auto", 1e-6), ("1/n", 1 / 600)])
def test_certificates_state_the_number_and_files_keep_the_word(
    make: type, delta: str, stated: float, parity: tuple, tmp_path: Path
) -> None:
    fitted = make(delta=delta, C=0.01, random_state=0).fit(*parity).unlearn([3])
    assert fitted.certificate_.delta == stated
    fitted.save(tmp_path / "model")
    loaded = make.load(tmp_path / "model")
    assert loaded.delta == delta
    assert loaded.unlearn([4]).certificate_.delta == stated


def test_private_learning_states_it_too(parity: tuple) -> None:
    made = {delta: PrivateLogisticRegression(delta=delta, data_norm=1.0) for delta in ("auto", "1/n")}
    stated = {delta: model.fit(*parity).certificate_.delta for delta, model in made.items()}
    assert stated == {"auto": 1e-6, "1/n": 1 / 600}
