"""Certificates of earlier releases verify though some of their sentences have other words now."""

import ast
import json
from pathlib import Path

import pytest

import certified_unlearning
from certified_unlearning import certificate
from certified_unlearning.certificate import CertificateError
from certified_unlearning.certificate.former import FORMER
from tests.certificate.test_certificate import SUMMARY
from tests.support.planning import make, settings_of, sweep_of

SOURCE = Path(certified_unlearning.__file__).parent
EARLIER = sorted((Path(__file__).parent / "earlier" / "residual").glob("*.json"))


def strings() -> list[str]:
    """Return the strings of all modules that certificates take their words from, one for each literal."""
    paths = [path for room in ("accounting", "certificate", "mechanisms") for path in (SOURCE / room).rglob("*.py")]
    trees = [ast.parse(path.read_text("utf-8")) for path in paths if path.name != "former.py"]
    literals = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return [node.value for node in literals if isinstance(node.value, str)]


def test_the_words_of_this_release_are_those_that_certificates_have_and_former_ones_are_gone() -> None:
    found = strings()
    for former, present in FORMER:
        assert any(present in each for each in found)
        assert not any(former in each for each in found)


@pytest.mark.parametrize("path", EARLIER, ids=lambda path: path.stem)
def test_a_stored_certificate_with_former_words_verifies_and_shows_those_of_today(path: Path) -> None:
    (former, present), text = FORMER[2], path.read_text("utf-8")
    assert former in text
    found = certificate.read_any(path)
    certificate.verify(found)
    assert any(present in each for each in found.not_promised)
    assert former not in found.model_dump_json()


@pytest.fixture
def seeded(tmp_path: Path) -> Path:
    """A certificate of noisy steps whose noise a seed repeats, as an earlier release would have written it."""
    plan = make("fig3a", settings_of("smoke"), sweep_of("smoke", "fig3a"), SUMMARY)
    run = plan.runs[0]
    certificate.write(certificate.of(run, key=plan.key(run), noise_source="seed"), tmp_path / "now.json")
    former, present = FORMER[0]
    text = (tmp_path / "now.json").read_text("utf-8")
    assert present in text
    (tmp_path / "earlier.json").write_text(text.replace(present, former), "utf-8")
    return tmp_path / "earlier.json"


def test_former_words_of_an_assumption_stand_for_those_of_today(seeded: Path) -> None:
    found = certificate.read_any(seeded)
    certificate.verify(found)
    assert found == certificate.read_any(seeded.with_name("now.json"))


@pytest.mark.parametrize("key", ["comparator", "code_version"])
def test_only_assumptions_and_limits_are_put_into_other_words(seeded: Path, key: str) -> None:
    content = json.loads(seeded.read_text("utf-8"))
    content[key] = FORMER[0][0]
    seeded.write_text(json.dumps(content), "utf-8")
    assert getattr(certificate.read_any(seeded), key) == FORMER[0][0]


def test_words_that_no_release_wrote_are_refused(seeded: Path) -> None:
    former = FORMER[0][0]
    changed = seeded.read_text("utf-8").replace(former, former.replace("can subtract", "cannot subtract"))
    seeded.write_text(changed, "utf-8")
    with pytest.raises(CertificateError, match="states other assumptions"):
        certificate.verify(certificate.read_any(seeded))
