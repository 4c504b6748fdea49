"""The workflow for GitHub Actions calls what exists."""

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]


def test_every_make_target_that_the_workflow_calls_exists() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    steps = [step.get("run", "") for job in workflow["jobs"].values() for step in job["steps"]]
    called = {target for step in steps for target in re.findall(r"\bmake ([\w-]+)", step)}
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    assert {"lint", "test", "test-rest", "regression"} == called <= targets
