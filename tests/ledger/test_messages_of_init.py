"""Mistakes at `unlearn init`: the message names the flag, and the reason that no other flag would help comes first."""

from pathlib import Path

import pytest

from certified_unlearning.errors import ParameterError, StorageError
from tests.ledger.conftest import Original, Unlearn


def flags(original: Original, *more: str) -> list[str]:
    return ["--data", str(original.data), "--label", "ill", "--id", "person", "--epsilon", "1", *more]


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (("--class", "no", "--class", "yes", "--class-weight", "yes=1e6"), "^--class-weight names no weight for 'no'"),
        (("--regression", "--range", "ill=9:1"), r"^--range must be a pair \(low, high\) .*, got \(9\.0, 1\.0\)$"),
    ],
)
def test_what_a_flag_declared_is_called_by_the_flag(
    original: Original, tmp_path: Path, unlearn: Unlearn, more: tuple[str, ...], sentence: str
) -> None:
    with pytest.raises(ParameterError, match=sentence):
        unlearn("init", tmp_path / "model", *flags(original, *more))


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (("--regression", "--range", "ill=0:9"), "^noisy-sgd predicts classes only"),
        (
            ("--class", "no", "--class", "yes", "--class-weight", "no=1,yes=9"),
            "^`class_weight` does not apply to noisy-sgd",
        ),
    ],
)
def test_what_a_mechanism_cannot_do_comes_before_its_other_settings(
    original: Original, tmp_path: Path, unlearn: Unlearn, more: tuple[str, ...], sentence: str
) -> None:
    with pytest.raises(ParameterError, match=sentence):
        unlearn("init", tmp_path / "model", *flags(original, "--mechanism", "noisy-sgd", *more))


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="has no /proc")
def test_a_place_where_no_directory_can_be_made_is_named(original: Original, unlearn: Unlearn) -> None:
    with pytest.raises(StorageError, match=r"^cannot make /proc/mm: no directories can be made in /proc$"):
        unlearn("init", "/proc/mm", *flags(original))
