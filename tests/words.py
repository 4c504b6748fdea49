"""Words that documents, docstrings and messages no longer use: ``python -m tests.words`` names every place.

Documents are to read as scikit-learn's do: subject, verb, object, and no words of our own. `NOT_YET` lists files that
still have such words. It can only shrink: a file that is clean must leave it.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
INSTEAD = {
    "whoever": "name the reader, or say what happens: 'if the secret state leaks'",
    "reckon": "computed, counted",
    "makes no sense": "is invalid",
    "is told so": "is rejected",
    "the sheet": "the page, the table",
    "delta: Of the target.": "begin a docstring, or the description of an argument, with its noun: 'Target delta.'",
}
"""What is retired, and what to write."""
RETIRED = re.compile(
    r"\b(?:whoever|reckon\w*|makes@no@sense|is@told@so|the@sheet)\b".replace("@", r"\s+(?:#\s)?"), re.IGNORECASE
)
FRAGMENT = re.compile(r'^\s+\*{0,2}\w+: (?:Of|For) \S+|"""(?:Of|For) \S+', re.MULTILINE)
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
"""Code and its output, which other tests compare with what is printed."""

SRC = "src/certified_unlearning"
STORED = {
    f"{SRC}/accounting/accountant.py",
    f"{SRC}/accounting/private/plan.py",
    f"{SRC}/accounting/residual/statements.py",
    f"{SRC}/certificate/ensemble.py",
    f"{SRC}/certificate/exact.py",
    f"{SRC}/certificate/prediction.py",
    f"{SRC}/mechanisms/certified_sgd/releases.py",
}
"""They hold sentences that certificates store or reports show, which stored files are compared with word by word."""
NOT_YET = {
    "docs/gallery.md",
    "docs/gallery.py",
    f"{SRC}/audit/attack_result.py",
    f"{SRC}/audit/canaries.py",
    f"{SRC}/audit/claims.py",
    f"{SRC}/audit/directories.py",
    f"{SRC}/audit/guessers.py",
    f"{SRC}/audit/laws.py",
    f"{SRC}/audit/one_run.py",
    f"{SRC}/commands/keeping/restores.py",
    f"{SRC}/commands/plans/deletion.py",
    f"{SRC}/commands/plans/exact.py",
    f"{SRC}/commands/plans/exact_table.py",
    f"{SRC}/commands/plans/known.py",
    f"{SRC}/commands/plans/private.py",
    f"{SRC}/commands/plans/private_methods.py",
    f"{SRC}/commands/plans/removal.py",
    f"{SRC}/ledger/directory.py",
    f"{SRC}/ledger/initialisation.py",
    f"{SRC}/ledger/mechanisms.py",
    f"{SRC}/ledger/method.py",
    f"{SRC}/ledger/methods/advice.py",
    f"{SRC}/ledger/methods/regression_advice.py",
    f"{SRC}/ledger/model.py",
    f"{SRC}/ledger/personal/plain_words.py",
    f"{SRC}/ledger/prediction.py",
    f"{SRC}/ledger/requests.py",
    f"{SRC}/ledger/state.py",
    f"{SRC}/ledger/store.py",
    f"{SRC}/ledger/training/copies.py",
    f"{SRC}/ledger/training/dense.py",
    f"{SRC}/papers/cheaper_than_retraining/audits/one_run.py",
    f"{SRC}/papers/cheaper_than_retraining/audits/sweep.py",
    f"{SRC}/papers/cheaper_than_retraining/audits/two_laws.py",
    f"{SRC}/papers/cheaper_than_retraining/experiments.py",
    f"{SRC}/papers/cheaper_than_retraining/findings.py",
    f"{SRC}/papers/cheaper_than_retraining/systems.py",
    f"{SRC}/papers/cheaper_than_retraining/tables.py",
    f"{SRC}/papers/forget_unlearning/services/attacked.py",
    f"{SRC}/papers/forget_unlearning/services/constructions.py",
    f"{SRC}/papers/forget_unlearning/services/counterexamples.py",
    f"{SRC}/papers/forget_unlearning/services/interaction.py",
    f"{SRC}/papers/forget_unlearning/theory/attacks.py",
    f"{SRC}/papers/forget_unlearning/theory/comparison.py",
    f"{SRC}/papers/forget_unlearning/theory/counting.py",
    f"{SRC}/papers/forget_unlearning/theory/soundness.py",
    f"{SRC}/papers/gradient_certificates/findings.py",
    f"{SRC}/papers/gradient_certificates/learning.py",
    f"{SRC}/papers/gradient_certificates/tables/service.py",
    f"{SRC}/papers/gradient_certificates/tasks.py",
    f"{SRC}/papers/langevin_unlearning/fig3a.py",
    f"{SRC}/papers/langevin_unlearning/fig3b.py",
    f"{SRC}/papers/langevin_unlearning/measures/authors.py",
    f"{SRC}/papers/noisy_sgd/theory/distances.py",
    f"{SRC}/papers/noisy_sgd/theory/planning.py",
    f"{SRC}/papers/parameters.py",
    f"{SRC}/papers/privacy_dynamics/theory/private_erm.py",
    f"{SRC}/papers/private_learning/attacks.py",
    f"{SRC}/papers/private_learning/audit_statistics.py",
    f"{SRC}/papers/private_learning/audits.py",
    f"{SRC}/papers/private_learning/covered.py",
    f"{SRC}/papers/private_learning/findings.py",
    f"{SRC}/papers/private_learning/names.py",
    f"{SRC}/papers/private_learning/runs/stationary.py",
    f"{SRC}/papers/private_learning/theory/linear_models.py",
    f"{SRC}/papers/private_learning/theory/stationary_points.py",
    f"{SRC}/papers/tv_stability/figures.py",
    f"{SRC}/papers/tv_stability/findings.py",
    f"{SRC}/reproduction/claims/findings.py",
    f"{SRC}/reproduction/claims/verdicts.py",
    f"{SRC}/reproduction/cluster.py",
    f"{SRC}/reproduction/figures/looks.py",
    f"{SRC}/reproduction/regression.py",
    f"{SRC}/reproduction/simulation/held_out.py",
    f"{SRC}/reproduction/tables.py",
    f"{SRC}/reproduction/tracking/entries.py",
    f"{SRC}/reproduction/tracking/runs.py",
    f"{SRC}/reproduction/tracking/store.py",
}
"""Files that are not yet rewritten."""


def files() -> Iterator[Path]:
    """Yield the package's sources and declarations, and the documents."""
    yield ROOT / "README.md"
    yield ROOT / "CONTRIBUTING.md"
    for folder in ("src", "docs"):
        yield from sorted(path for path in (ROOT / folder).rglob("*") if path.suffix in {".py", ".md", ".yaml"})


def found_in(text: str, suffix: str) -> list[tuple[int, str]]:
    """Return the line and the words of each place in a file's text where something is retired."""
    if suffix == ".md":
        text = FENCED.sub(lambda block: "\n" * block[0].count("\n"), text)
    matches = [*RETIRED.finditer(text), *(FRAGMENT.finditer(text) if suffix == ".py" else ())]
    return sorted((text.count("\n", 0, match.end()) + 1, " ".join(match[0].split())) for match in matches)


def places() -> dict[str, list[tuple[int, str]]]:
    """Return what `found_in` returns, for each file that has such places."""
    found = {path.relative_to(ROOT).as_posix(): found_in(path.read_text("utf-8"), path.suffix) for path in files()}
    return {name: here for name, here in found.items() if here}


def complaints(found: dict[str, list[tuple[int, str]]], listed: set[str]) -> list[str]:
    """Return the places in files that are not listed, and the files that are listed and have none."""
    unlisted = [(name, *place) for name, here in found.items() if name not in listed for place in here]
    return [
        *(f"{name}:{line}: {words!r} is retired" for name, line, words in unlisted),
        *(f"{name} is clean: take it off the list in tests/words.py" for name in sorted(listed - {*found})),
    ]


def main() -> int:
    """Print the complaints, and return the exit status."""
    wrong = complaints(places(), STORED | NOT_YET)
    if wrong:
        print(
            *wrong, *(f"instead of {word!r}: {better}" for word, better in INSTEAD.items()), sep="\n", file=sys.stderr
        )
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
