"""The commands as people type them: what they print, what they refuse, and that the quick ones import little."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from certified_unlearning import certificate
from certified_unlearning.errors import ParameterError, UnlearningError
from certified_unlearning.ledger import load_model, requests
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.model import read_stored
from certified_unlearning.mechanisms.learners.langevin import LangevinLearner
from certified_unlearning.mechanisms.refit_plan import USUAL_SIGMA, RefitPlan
from certified_unlearning.text import rounded_up
from tests.ledger.conftest import Original, Unlearn

FLAGS = (
    "--label", "ill", "--id", "person", "--mechanism", "langevin", "--epsilon", 1, "--delta", "1/n",
    "--C", 0.1, "--steps", 5, "--records", 3,
)  # fmt: skip


def test_init_request_apply_status_verify(original: Original, tmp_path: Path, unlearn: Unlearn) -> None:
    model = tmp_path / "model"
    printed = unlearn("init", model, "--data", original.data, *FLAGS).stdout
    assert f"{model}: version 1 learned from 450 records of 300 people\n" in printed
    printed = unlearn("request", model, "--id", "p3", "--id", "p4").stdout
    assert "recorded: 2 requests, 3 records; 2 pending, `unlearn apply" in printed
    head = printed.splitlines()[-1].removeprefix("head: ")
    printed = unlearn("status", model).stdout
    assert "requests: 2 pending, 0 applied (0 records removed)" in printed
    assert "nothing was removed yet, so there is nothing to guarantee" in printed
    printed = unlearn("apply", model).stdout
    assert "removed 3 records of 2 people by K = 5 steps\n" in printed
    printed = unlearn("status", model).stdout
    assert "requests: 0 pending, 2 applied (3 records removed)" in printed
    certified = certificate.read(ModelDirectory(model).certificate(2))
    assert certified.epsilon_all_published is not None
    everything = rounded_up(certified.epsilon_all_published)
    assert f"epsilon = 1 at delta = 0.00222223 for a reader of version 2 alone; epsilon = {everything} at" in printed
    assert f"weights: {model}/weights-2.safetensors" in printed
    assert "no request is pending" in unlearn("apply", model).stdout
    printed = unlearn("verify", model, "--head", head).stdout
    assert f"{model}: 5 events in one chain, version 2 of the model, 2 certificates" in printed
    assert "the log begins with the events of the head that you named" in printed
    assert unlearn("verify", model / "certificate-1.json", model / "certificate-2.json", model).exit_code == 0


def test_verify_says_of_a_directory_what_is_wrong_and_goes_on(model: Path, tmp_path: Path, unlearn: Unlearn) -> None:
    (tmp_path / "empty").mkdir()
    result = unlearn("verify", tmp_path / "empty", model, "--head", "0" * 64)
    assert result.exit_code == 1
    assert "empty is not a model directory" in result.stderr
    assert "ledger.sqlite was tampered with: no event in it has the head 000" in result.stderr


def test_a_command_on_a_certificate_names_the_one_that_reads_it(model: Path, unlearn: Unlearn) -> None:
    file = model / "certificate-1.json"
    for command in (("show", file), ("show", file, "--id", "p1"), ("status", file)):
        with pytest.raises(ParameterError, match=rf"is a file, not a model .* `unlearn verify {file}` checks a cert"):
            unlearn(*command)


def test_a_mistyped_head_is_no_tampering(model: Path, unlearn: Unlearn) -> None:
    for head in ("6ef1", "0" * 63 + "O", "0" * 65):
        result = unlearn("verify", model, "--head", head)
        assert result.exit_code == 1
        assert (
            f"{head!r} is not a head of a log: a head is a number, a colon and 64 characters from 0 to 9"
            in result.stderr
        )


def test_verify_names_files_that_are_no_part_of_the_model(model: Path, unlearn: Unlearn) -> None:
    assert "no part" not in unlearn("verify", model).stdout
    (model / "training" / "old").mkdir()
    strangers = [model / "ledger.sqlite.bak", model / "training" / "old" / "features.float32", model / "weights-1.bak"]
    for path in strangers:
        path.write_bytes(b"rows")
    result = unlearn("verify", model)
    assert result.exit_code == 0
    for path in strangers:
        assert f"note: {path} is not part of the model; its content was not checked\n" in result.stdout


@pytest.mark.parametrize("mechanism", ["newton-removal", "certified-ensemble"])
def test_one_of_anything_is_singular_wherever_it_is_printed(
    original: Original, tmp_path: Path, unlearn: Unlearn, mechanism: str
) -> None:
    model, single = tmp_path / "model", tmp_path / "single.csv"
    original.table.drop_duplicates("person").to_csv(tmp_path / "people.csv", index=False)
    original.table[original.table["person"] == "p3"].head(1).to_csv(single, index=False)
    flags = ("--data", tmp_path / "people.csv", "--label", "ill", "--id", "person", "--mechanism", mechanism)
    if mechanism == "newton-removal":
        flags += ("--epsilon", 1, "--records-between-reads", 1, "--feature", "height")
    else:
        flags += ("--shards", 2, "--slices", 1, "--budget", 1, "--steps", 1)
    said = [
        unlearn(*arguments).output
        for arguments in (
            ("init", model, *flags),
            ("request", model, "--id", "p3"),
            ("status", model),
            ("apply", model),
            ("status", model),
            ("verify", model),
            ("verify", model / "certificate-2.json"),
            ("evaluate", model, single),
        )
    ]
    printed = "\n".join(said)
    assert "removed 1 record of 1 person" in printed
    assert "1 of the records belongs to a person whose removal was requested" in printed
    many = r"(?<![\d.,])1 (?:[a-z]+ )?(records|people|requests|classes|shards|slices|steps|columns|releases|versions)\b"
    assert re.findall(many, printed) == []


def test_a_certificate_has_no_head(model: Path, unlearn: Unlearn) -> None:
    with pytest.raises(UnlearningError, match="--head is for a model directory or a receipt; a certificate has no"):
        unlearn("verify", model / "certificate-1.json", "--head", "0" * 64)


def test_flags_and_a_yaml_file_declare_the_same_table(original: Original, tmp_path: Path, unlearn: Unlearn) -> None:
    table = original.table.assign(town=[("Rome", "Oslo")[row % 2] for row in range(450)])
    table.to_csv(tmp_path / "people.csv", index=False)
    flags = ("--class", "no", "--class", "yes", "--feature", "age", "--feature", "town", "--range", "age=-1:2")
    learner = ("--epsilon", 1, "--C", 0.1, "--delta", 0.001, "--no-intercept")
    data = ("--data", tmp_path / "people.csv", "--label", "ill", "--id", "person", "--category", "town=Oslo,Rome")
    unlearn("init", tmp_path / "by-flags", *data, *flags, *learner)
    (tmp_path / "table.yaml").write_text(
        "path: people.csv\nlabel: ill\nidentifier: person\nclasses: ['no', 'yes']\nfeatures: [age, town]\n"
        "categories: {town: [Oslo, Rome]}\nranges: {age: [-1, 2]}\n"
    )
    unlearn("init", tmp_path / "by-file", "--table", tmp_path / "table.yaml", *learner)
    by_flags, by_file = (
        read_stored(ModelDirectory(path), requests.status(path).state)
        for path in (tmp_path / "by-flags", tmp_path / "by-file")
    )
    assert by_flags == by_file
    assert (by_flags.learner.features, by_flags.learner.delta) == (3, 0.001)


def test_a_flag_gives_a_run_of_columns_one_range_and_the_ledger_keeps_each_column(
    original: Original, tmp_path: Path, unlearn: Unlearn
) -> None:
    (tmp_path / "table.yaml").write_text(
        f"path: {original.data}\nlabel: ill\nidentifier: person\nclasses: ['no', 'yes']\n"
        "features: [height to age]\nranges: {height to age: [-2, 2]}\n"
    )
    flags = ("--data", original.data, "--label", "ill", "--id", "person", "--class", "no", "--class", "yes")
    unlearn("init", tmp_path / "by-flags", *flags, "--range", "height to age=-2:2", "--epsilon", 1, "--C", 0.1)
    unlearn("init", tmp_path / "by-file", "--table", tmp_path / "table.yaml", "--epsilon", 1, "--C", 0.1)
    for model in (tmp_path / "by-flags", tmp_path / "by-file"):
        stored = read_stored(ModelDirectory(model), requests.status(model).state).table
        assert stored.features == ("height", "weight", "age")
        assert stored.ranges == dict.fromkeys(("height", "weight", "age"), (-2, 2))
        unlearn("request", model, "--id", "p3")
        unlearn("apply", model, "--no-quality")
        assert unlearn("verify", model).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "--data and --label and --id must be given, or --table with a file that declares the table"),
        (("--table", "nowhere.yaml"), "cannot read nowhere.yaml: No such file or directory"),
        (("--table", "{data}"), "people.csv does not declare a table: it must be a mapping with at least path"),
        (("--table", "{data}", "--label", "y"), "--table declares everything: leave out the flags for label"),
        (("--table", "{data}", "--norm", "at-most-1"), "--table declares everything: leave out the flags for norm"),
        (("--category", "town"), "--category is 'town', but must look like colour=red,green,null"),
        (("--range", "age=5"), "--range is 'age=5', but must look like age=0:100"),
        (("--range", "age=old:5"), "--range has 'old', but must look like age=0:100"),
        (
            ("--data", "{data}", "--label", "ill", "--id", "person", "--delta", "n"),
            "--delta must be auto, 1/n or a number, got 'n'",
        ),
        (("--data", "{data}", "--label", "ill", "--id", "ill"), "label and identifier are the same column 'ill'"),
    ],
)
def test_a_wrong_flag_is_one_sentence(
    original: Original, tmp_path: Path, unlearn: Unlearn, arguments: tuple[str, ...], sentence: str
) -> None:
    given = [argument.format(data=original.data) for argument in arguments]
    with pytest.raises(UnlearningError, match=sentence) as caught:
        unlearn("init", tmp_path / "model", "--epsilon", 1, "--C", 1, *given)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("command", [["request", "--id", "p3"], ["status"]])
def test_the_quick_commands_import_neither_torch_nor_pandas_nor_sklearn(model: Path, command: list[str]) -> None:
    script = (
        "import sys; from certified_unlearning.cli import app; "
        f"app({[command[0], str(model), *command[1:]]}, standalone_mode=False); "
        "heavy = {'torch', 'pandas', 'sklearn', 'scipy', 'pyarrow'} & set(sys.modules); assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_init_takes_newton_removal_at_scikit_learns_C_and_a_small_delta(
    original: Original, tmp_path: Path, unlearn: Unlearn
) -> None:
    model = tmp_path / "model"
    asked = ("--label", "ill", "--id", "person", "--epsilon", 1, "--norm", "unit")
    printed = unlearn("init", model, "--data", original.data, *asked).stdout
    assert "\nC = 1, C n = 450: data are read again " in printed
    learner = read_stored(ModelDirectory(model), requests.status(model).state).learner
    assert isinstance(learner, RefitPlan)
    assert (learner.delta, learner.sigma) == (1e-6, USUAL_SIGMA)
    found = load_model(model)
    rows = found.rows(original.table)
    # Its solver liblinear regularises the intercept.
    theirs = LogisticRegression(C=1, solver="liblinear", tol=1e-9).fit(rows, original.table["ill"])
    # Published weights have noise of a thousandth.
    np.testing.assert_allclose(found.predict_proba(rows), theirs.predict_proba(rows), atol=0.005)


@pytest.mark.parametrize(
    "flags",
    [("--steps", 5), ("--records", 3), ("--batch-size", "all"), ("--accountant", "lsi"), ("--dtype", "float64")],
)
def test_a_flag_of_noisy_steps_without_their_mechanism_names_it(
    original: Original, tmp_path: Path, unlearn: Unlearn, flags: tuple[str, object]
) -> None:
    asked = ("--data", original.data, "--label", "ill", "--id", "person", "--epsilon", 1)
    name = flags[0][2:].replace("-", "_")
    sentence = f"^`{name}` does not apply to newton-removal; leave it out, or add --mechanism langevin, got "
    with pytest.raises(UnlearningError, match=sentence):
        unlearn("init", tmp_path / "model", *asked, *flags)
    assert unlearn("init", tmp_path / "model", *asked, *flags, "--mechanism", "langevin", "--C", 0.01).exit_code == 0


@pytest.mark.parametrize(
    ("epsilon", "wrong"),
    [
        ("0", "a finite number above 0, got 0.0"),
        ("-1", "a finite number above 0, got -1.0"),
        ("nan", "a finite number above 0, got nan"),
        ("inf", "at most 350, got inf: above that nothing can be guaranteed"),
        ("1e6", "at most 350, got 1000000.0: above that nothing can be guaranteed"),
    ],
)
def test_a_target_that_nothing_meets_is_refused_before_data_are_read(
    tmp_path: Path, unlearn: Unlearn, epsilon: str, wrong: str
) -> None:
    with pytest.raises(UnlearningError, match=f"^--epsilon must be {wrong}$"):
        unlearn("init", tmp_path / "model", "--data", "nowhere.csv", "--label", "y", "--id", "p", "--epsilon", epsilon)


def test_init_says_which_C_it_took(original: Original, tmp_path: Path, unlearn: Unlearn) -> None:
    result = unlearn("init", tmp_path / "model", "--data", original.data, *FLAGS[:10])
    assert result.exit_code == 0
    assert re.search(r"^C = 0\.2222, C n = 100: learning takes [\d,]+ steps$", result.stdout, re.MULTILINE)
    assert result.stderr == ""


def test_init_warns_before_it_learns_for_long(
    original: Original, tmp_path: Path, unlearn: Unlearn, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(LangevinLearner, "learn", interrupted)
    result = unlearn("init", tmp_path / "model", "--data", original.data, *FLAGS[:10], "--C", 100)
    assert re.fullmatch(
        r"warning: with C = 100, C n is 45,000 and learning takes \d{3},\d{3} steps; "
        r"C = 0\.2222 \(100 / n\) would be quick\n",
        result.stderr,
    )
