"""The faults can be planted: each changes one place that is there, and names tests that are there."""

import ast
import re
import shlex
from collections import Counter
from pathlib import Path

import pytest

from tests.mutation.__main__ import QUICK, SIZES, first_failure
from tests.mutation.fault import ROOMS, ROOT, Fault, chosen_faults, read_faults
from tests.workflow.working_tree import WorkingTree

FAULTS = read_faults()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_changes_one_place_of_a_file_that_still_parses(fault: Fault) -> None:
    content = (ROOT / fault.file).read_text(encoding="utf-8")
    assert content.count(fault.old) == 1
    planted = ast.parse(content.replace(fault.old, fault.new))
    assert ast.dump(planted) != ast.dump(ast.parse(content))


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_nearest_tests_of_a_fault_exist_and_its_harm_is_a_sentence(fault: Fault) -> None:
    assert fault.nearest
    assert [path for path in fault.nearest if not (ROOT / path.split("::")[0]).exists()] == []
    assert fault.harm.endswith(".")


def test_there_are_ten_faults_a_room_or_more_and_five_of_them_are_blind() -> None:
    counts = Counter(fault.room for fault in FAULTS)
    assert {room: min(count, 10) for room, count in counts.items()} == dict.fromkeys(ROOMS, 10)
    assert Counter(fault.room for fault in FAULTS if fault.blind) == dict.fromkeys(ROOMS, 5)
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


def test_only_chooses_faults_by_a_part_of_their_names() -> None:
    assert [fault.name for fault in chosen_faults(["Resumed Run"])] == ["a resumed run skips one step"]
    assert chosen_faults([]) == FAULTS
    with pytest.raises(ValueError, match=r"--only 'no such fault' is in the name of no fault"):
        chosen_faults(["resumed run", "no such fault"])


def test_the_first_test_that_fails_is_named_and_tests_that_pass_are_not(tmp_path: Path) -> None:
    tree = WorkingTree(tmp_path / "tree")
    tree.root.mkdir()
    tests = "import pytest\n@pytest.mark.parametrize('x', ['a', 'b - c'])\ndef test(x): assert x == 'a'\n"
    (tree.root / "test_x.py").write_text(tests)
    assert first_failure(tree, ["test_x.py"]) == "test_x.py::test[b - c]"
    assert first_failure(tree, ["test_x.py::test[a]"]) is None


def test_the_sizes_are_those_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for size, target in {"quick": "test-quick", "default": "test", "all": "test-all"}.items():
        (command,) = re.findall(rf"^{target}:.*\n\t\$\(PYTEST\)(.*)$", makefile, re.MULTILINE)
        words = [word for word in shlex.split(command.replace("$(QUICK)", "")) if not word.startswith("--case-seed")]
        assert words == [word for word in SIZES[size] if not word.startswith("--case-seed")]
    assert re.findall(r"^QUICK := (.*)$", makefile, re.MULTILINE) == [" ".join(QUICK)]
