"""What Snakemake prints: one line a job, and nothing of an error is lost."""

import re
import stat

from tests.workflow.working_tree import ROOT, WorkingTree


def test_every_rule_says_what_it_does() -> None:
    for path in [*(ROOT / "workflow" / "rules").glob("*.smk"), ROOT / "Snakefile"]:
        for rule in re.split(r"(?m)^(?=rule )", path.read_text(encoding="utf-8"))[1:]:
            assert "    message:\n" in rule, rule.partition("\n")[0]


def test_a_job_is_one_line(fresh_tree: WorkingTree) -> None:
    done = fresh_tree.snakemake("results/smoke/data.json")
    assert done.returncode == 0, done.stdout
    assert "profiles/default" in done.stdout
    assert re.search(r"Job \d+: smoke: data set digits, rows of norm at most 1, split\n", done.stdout)
    for noise in ("Reason:", "    input:", "$ unlearn", "code="):
        assert noise not in done.stdout
    assert "Report:" not in done.stdout  # Only a part was asked for.
    assert (fresh_tree.root / "logs/smoke/prepare.log").read_text().startswith("$ unlearn data prepare digits")


def test_a_failing_job_shows_its_error_and_where_its_log_lies(fresh_tree: WorkingTree) -> None:
    broken = fresh_tree.root / "bin" / "unlearn"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho '$ unlearn' \"$@\"\necho 'error: the disk is on fire' >&2\nexit 3\n")
    broken.chmod(broken.stat().st_mode | stat.S_IXUSR)
    path = f"{broken.parent}:{fresh_tree.environment['PATH']}"
    done = fresh_tree.run(
        *("snakemake", "--cores", "1", "--retries", "0", "--config", "preset=smoke", "--", "results/smoke/data.json"),
        env=fresh_tree.environment | {"PATH": path},
    )
    assert done.returncode != 0
    assert "error: the disk is on fire" in done.stdout
    assert "Error in rule fetch" in done.stdout
    assert "log: logs/fetch/digits.log" in done.stdout
    assert "Not finished." in done.stdout
    assert "the disk is on fire" in (fresh_tree.root / "logs/fetch/digits.log").read_text()
