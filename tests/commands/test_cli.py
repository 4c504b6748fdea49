"""The command line: every mistake ends in one sentence on standard error and leaves nothing half-written."""

import functools
import gzip
import json
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from typer.main import get_command
from typer.testing import CliRunner

from certified_unlearning import certificate, cli
from certified_unlearning.commands import JOBS, program
from certified_unlearning.data.adult import COLUMNS
from certified_unlearning.data.digits import DIGITS
from certified_unlearning.files import write_json
from certified_unlearning.mechanisms.langevin import LANGEVIN
from certified_unlearning.papers import parameters
from certified_unlearning.papers.all import PAPERS
from certified_unlearning.reproduction import jobs
from certified_unlearning.reproduction.rows import write_table
from tests.support.planning import ROOT, experiment_called, make, settings_of, sweep_of
from tests.support.waiting import PATIENCE

SETTINGS: dict[str, Any] = settings_of("smoke").model_dump(mode="json")
STYLE: dict[str, Any] = parameters.load(ROOT / "params.yaml").figures.model_dump(mode="json")
EXPERIMENTS = {each.name for paper in PAPERS for each in paper.experiments}
PAPER = "certified_unlearning.papers.langevin_unlearning"


class Inputs:
    """Whole inputs of every job, in one directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        data = DIGITS.prepare(root, 1)
        data.save(root / "data.safetensors")
        write_json(root / "data.json", data.summary())
        plan = make("fig3a", settings_of("smoke", trials=2), sweep_of("smoke", "fig3a"), data.summary())
        plan.write(root / "plan.json")
        learned = root / "learned.safetensors"
        jobs.learn(LANGEVIN, plan, data, learned)
        jobs.unlearn(LANGEVIN, plan, data, learned, root / "rows.parquet", root / "curves.parquet")
        table = make("table2", settings_of("smoke"), sweep_of("smoke", "table2"), data.summary(), plans={"fig3a": plan})
        write_table(root / "table.parquet", table, experiment_called("table2").rows)
        run = plan.runs[0]
        certified = certificate.of(run, key=plan.key(run), noise_source="seed")
        certificate.write(certified, root / "certificate.json")
        self.files = [path.name for path in root.iterdir()]

    def command(self, job: str, output: Path, **other: Path) -> list[str]:
        """The command line of a job that reads these inputs, or ``other`` ones, and writes below ``output``."""
        files = {name.replace(".", "_"): self.root / name for name in self.files} | other
        files |= {"output": output}
        return [part.format(**files) for part in COMMANDS[job].split()]


def as_argument(values: Any) -> str:
    return json.dumps(values).replace(" ", "").replace("{", "{{").replace("}", "}}")


OF_A_RUN = "--plan {plan_json} --data {data_safetensors} --rows {output}/rows --curves {output}/curves"
COMMANDS = {
    "prepare": "data prepare digits --seed 1 --output {output}/data --summary {output}/summary",
    "plan": f"pipeline plan {PAPER}.fig3c:fig3c --preset smoke --settings {as_argument(SETTINGS)} --sweep "
    + as_argument(sweep_of("smoke", "fig3c").model_dump(mode="json")) + " --summary {data_json} --output {output}/plan",
    "learn": "pipeline learn langevin --plan {plan_json} --data {data_safetensors} --output {output}/model",
    "unlearn": f"pipeline unlearn langevin {OF_A_RUN} " + "--learned {learned_safetensors}",
    "retrain": f"pipeline unlearn retraining {OF_A_RUN}",
    "refit": f"pipeline unlearn scikit-learn {OF_A_RUN}",
    "descend": f"pipeline unlearn descent-to-delete {OF_A_RUN}",
    "make": f"pipeline make {PAPER}.tables:table2 --preset smoke --settings {as_argument(SETTINGS)} "
    "--sweep {{}} --summary {data_json} --plan {plan_json} --output {output}/rows",
    "certify": "pipeline certify --plan {plan_json} --output {output}/certificates",
    "collect": "pipeline collect {rows_parquet} --output {output}/all",
    "metrics": "pipeline metrics --records {rows_parquet} --output {output}/metrics",
    "figure": f"pipeline draw {PAPER}.fig3a:fig3a --style {as_argument(STYLE)}"
    " --rows {rows_parquet} --figure {output}/figure --numbers {output}/numbers",
    "tabulate": f"pipeline draw {PAPER}.tables:table2"
    " --rows {table_parquet} --numbers {output}/numbers --page {output}/page",
    "schema": "schema --output {output}/schema",
    "verify": "verify {certificate_json}",
}  # fmt: skip


@pytest.fixture(scope="session")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    return Inputs(tmp_path_factory.mktemp("inputs"))


@pytest.fixture
def output(tmp_path: Path) -> Path:
    (tmp_path / "output").mkdir()
    return tmp_path / "output"


Unlearn = Callable[..., tuple[int, str]]


@pytest.fixture
def unlearn(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Unlearn:
    """Run the command line in this process; return its exit status and what is on standard error."""

    def run(*arguments: str | Path) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["unlearn", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return int(ended.value.code or 0), capsys.readouterr().err

    return run


def without_progress(errors: str) -> str:
    """Leave out the lines in which a job on a slow machine says how far it is."""
    return re.sub(r"^\[fig\w+ [\w-]+ \w+\] \d+ % done, .* left\n", "", errors, flags=re.MULTILINE)


def assert_one_sentence(result: tuple[int, str], *parts: str) -> None:
    status, errors = result[0], without_progress(result[1])
    assert status == 1, errors
    assert re.fullmatch(r"error: \S[^\n]*\n", errors), errors
    for part in parts:
        assert part in errors


@pytest.mark.parametrize("job", COMMANDS)
def test_whole_inputs_are_taken(unlearn: Unlearn, inputs: Inputs, output: Path, job: str) -> None:
    status, errors = unlearn(*inputs.command(job, output))
    assert (status, without_progress(errors)) == (0, "")


# Parameters.


def plan_command(inputs: Inputs, output: Path, experiment: str, settings: Any, sweep: Any) -> list[str | Path]:
    reference = experiment_called(experiment).reference
    common = ["pipeline", "plan", reference, "--preset", "smoke", "--summary", inputs.root / "data.json"]
    whole_sweep = sweep_of("smoke", experiment).model_dump(mode="json") | sweep
    values = ["--settings", json.dumps(SETTINGS | settings), "--sweep", json.dumps(whole_sweep)]
    return [*common, *values, "--output", output / "plan.json"]


@pytest.mark.parametrize(
    ("experiment", "settings", "sweep", "sentence"),
    [
        ("fig3b", {}, {"epsilon": 0}, "--sweep: epsilon is 0, but must be a number above 0"),
        ("fig3b", {}, {"epsilon": -1.0}, "--sweep: epsilon is -1.0, but must be a number above 0"),
        ("fig3b", {}, {"epsilon": float("nan")}, "--sweep: epsilon is nan, but must be a number above 0"),
        ("fig3a", {}, {"epsilon": [1.0, 0.0]}, "--sweep: epsilon contains 0.0, but must be a list of distinct"),
        ("fig3c", {}, {"sigma": [0.0]}, "--sweep: sigma contains 0.0, but must be a list of distinct numbers above 0"),
        (
            "fig4",
            {},
            {"sigma": 0},
            "--sweep: sigma is 0, but must be the noise scale of Langevin unlearning, a number above 0",
        ),
        ("fig4", {"delta": 0}, {}, '--settings: delta is 0, but must be "1/n" or a number strictly between 0 and 1'),
        ("fig4", {"delta": 1.0}, {}, "--settings: delta is 1.0, but must be"),
        ("fig4", {"delta": "1e-3"}, {}, "--settings: delta is '1e-3', but must be"),
        ("fig4", {"step_size": 5.0}, {}, "need step_size <= 1 / smoothness = 3.58"),
        (
            "fig4",
            {"accountants": ["lsy"]},
            {},
            "--settings: accountants contains 'lsy', but must be a list of distinct",
        ),
        ("fig4", {"trails": 5}, {}, "--settings: trails is not a known key; did you mean trials?"),
        ("fig4", {}, {"records": [1, 5000]}, "records must be at most n = 1437, got 5000"),
        ("fig3c", {}, {"records": 5000}, "records must be at most n = 1437, got 5000"),
        ("fig3b", {}, {"records": 5000, "records_per_request": [1000]}, "records must be at most n = 1437, got 5000"),
    ],
)
def test_a_parameter_that_makes_no_sense_is_named(
    unlearn: Unlearn, inputs: Inputs, output: Path, experiment: str, settings: Any, sweep: Any, sentence: str
) -> None:
    assert_one_sentence(unlearn(*plan_command(inputs, output, experiment, settings, sweep)), sentence)
    assert not list(output.iterdir())


@pytest.mark.parametrize(
    ("job", "old", "new", "sentence"),
    [
        ("plan", "fig3c:fig3c", "fig3c:fig9", "fig3c:fig9 names nothing: the module declares only fig3c of type Exp"),
        ("plan", "fig3c:fig3c", "fig9:fig9", f"there is no module {PAPER}.fig9"),
        ("plan", f"{PAPER}.fig3c:fig3c", "fig3c", "fig3c names nothing: write it as package.module:name"),
        ("plan", "fig3c:fig3c", "tables:table1", "table1 reads the plan of fig3b, fig3c, fig4, fig5a: give"),
        ("plan", "fig3c:fig3c", "bounds.recuperation:recuperation", "recuperation makes a table, not a plan; `"),
        ("make", "tables:table2", "fig3a:fig3a", "fig3a makes a plan, not a table; `unlearn pipeline plan` writes it"),
        ("make", "tables:table2", "tables:table1", "table1 reads the plan of fig3b, fig3c, fig4, fig5a: give this"),
        ("make", "--summary {data_json} ", "", "table2 depends on the data set: give the data set's"),
        ("learn", "langevin", "scrub", "there is no module certified_unlearning.mechanisms.scrub"),
        ("learn", "langevin", "retraining", "retraining does not learn in a job of its own"),
        ("learn", "langevin", "scikit-learn", "scikit-learn does not learn in a job of its own"),
        ("unlearn", " --learned {learned_safetensors}", "", "langevin starts from weights that `learn` wrote, but no "),
        ("retrain", "retraining", "scrub", "there is no module certified_unlearning.mechanisms.scrub"),
        ("figure", "fig3a:fig3a", "tables:table1", "does not have the expected columns"),
        ("figure", "fig3a:fig3a", "fig3c:fig3c", "the rows hold no experiment fig3c, only fig3a"),
        ("collect", "{rows_parquet}", "{table_parquet}", "does not have the expected columns"),
    ],
)  # fmt: skip
def test_what_does_not_fit_a_job_is_said_in_a_sentence(
    unlearn: Unlearn, inputs: Inputs, output: Path, monkeypatch, job: str, old: str, new: str, sentence: str
) -> None:
    assert old in COMMANDS[job]
    monkeypatch.setitem(COMMANDS, job, COMMANDS[job].replace(old, new))
    command = inputs.command(job, output)
    name = new.rpartition(":")[2]
    if "--sweep" in command and name in EXPERIMENTS:
        command[command.index("--sweep") + 1] = sweep_of("smoke", name).model_dump_json()
    assert_one_sentence(unlearn(*command), sentence)
    assert not list(output.iterdir())


@pytest.mark.parametrize(
    ("style", "sentence"),
    [("{", "--style is not valid JSON"), (json.dumps(STYLE | {"palette": "x"}), "figures.palette is 'x'")],
)
def test_a_wrong_style_leaves_no_part_of_a_figure(unlearn, inputs: Inputs, output: Path, style: str, sentence) -> None:
    command = inputs.command("figure", output)
    command[command.index("--style") + 1] = style
    assert_one_sentence(unlearn(*command), sentence)
    assert not list(output.iterdir())


@pytest.mark.parametrize(
    "arguments",
    [
        "pipeline plan fig9",
        "pipeline unlearn",
        "pipeline learn",
        "pipeline nothing",
        "data prepare digits --output a --summary b --seed -1",
        "data prepare digits --output a --summary b --seed 4294967296",
        "verify --loudly",
    ],
)
def test_a_wrong_usage_exits_with_2(unlearn: Unlearn, arguments: str) -> None:
    status, errors = unlearn(*arguments.split())
    assert status == 2
    assert errors.startswith("Usage: ")
    assert "Traceback" not in errors


def test_a_mistake_of_the_programs_is_not_hidden(monkeypatch: pytest.MonkeyPatch, inputs: Inputs, output: Path) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a mistake of ours")

    monkeypatch.setattr(jobs, "learn", broken)
    monkeypatch.setattr(sys, "argv", ["unlearn", *inputs.command("learn", output)])
    with pytest.raises(RuntimeError, match="a mistake of ours"):
        cli.main()


# Data.


def test_an_unknown_data_set_is_named_beside_the_known_ones(unlearn: Unlearn, output: Path) -> None:
    known = "there is no data set 'mnits'; known data sets are digits, mnist-3-vs-8, mnist-10, adult, adult-14"
    assert_one_sentence(unlearn("data", "fetch", "mnits", "--manifest", output / "manifest.json"), known)
    prepare_command = ["data", "prepare", "mnits", "--seed", "1", "--output", output / "a", "--summary", output / "b"]
    assert_one_sentence(unlearn(*prepare_command), known)
    assert not list(output.iterdir())


def raw_file(raw: Path, name: str, content: bytes) -> Path:
    path = raw / name
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("where", ["in the values", "in the header", "in the compressed file"])
def test_a_truncated_idx_file_is_refused(unlearn: Unlearn, output: Path, tmp_path: Path, where: str) -> None:
    whole = bytes([0, 0, 8, 3]) + b"".join(size.to_bytes(4, "big") for size in (2, 28, 28)) + bytes(2 * 28 * 28)
    cut = whole[:9] if where == "in the header" else whole[:-1] if where == "in the values" else whole
    compressed = gzip.compress(cut)
    content = compressed[:-4] if where == "in the compressed file" else compressed
    path = raw_file(tmp_path / "raw", "mnist/train-images-idx3-ubyte.gz", content)
    files = ["--output", output / "data", "--summary", output / "summary", "--raw", tmp_path / "raw"]
    assert_one_sentence(unlearn("data", "prepare", "mnist-3-vs-8", "--seed", "1", *files), f"{path} is truncated")
    assert not list(output.iterdir())


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"native-country": None}, ", line 2: 14 columns, expected the 15 columns age, workclass"),
        ({"age": "nan"}, ", line 2: age is 'nan'"),
        ({"income": ">60K"}, ", line 2: income is '>60K', expected >50K or <=50K"),
        ({}, " has 2 records, expected 32561"),
    ],
)
def test_adult_with_a_missing_column_or_a_wrong_value_is_refused(
    unlearn: Unlearn, output: Path, tmp_path: Path, change: dict[str, str | None], sentence: str
) -> None:
    record = dict.fromkeys(COLUMNS, "1") | {"income": "<=50K"}
    lines = [[value for value in each.values() if value] for each in (record, record | change)]
    content = "\n".join(", ".join(line) for line in lines)
    path = raw_file(tmp_path / "raw", "adult/adult.data", content.encode())
    files = ["--output", output / "data", "--summary", output / "summary", "--raw", tmp_path / "raw"]
    assert_one_sentence(unlearn("data", "prepare", "adult", "--seed", "1", *files), f"{path}{sentence}")
    assert not list(output.iterdir())


def with_nan(arrays: dict[str, np.ndarray]) -> None:
    arrays["train_features"][3, 2] = np.nan


def with_one_class(arrays: dict[str, np.ndarray]) -> None:
    arrays["train_labels"][:] = 1


def with_another_value(arrays: dict[str, np.ndarray]) -> None:
    arrays["train_features"][0, :] = arrays["train_features"][1, :]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (with_nan, "training part: the value in row 3, column 2 is nan"),
        (with_one_class, "training part: class -1 has no records"),
        (with_another_value, "is damaged: its arrays have SHA-256"),
    ],
)
def test_a_changed_data_set_is_refused(
    unlearn: Unlearn, inputs: Inputs, output: Path, tmp_path: Path, change: Callable[..., None], sentence: str
) -> None:
    with safetensors.safe_open(str(inputs.root / "data.safetensors"), framework="numpy") as file:
        metadata = file.metadata()
    arrays = safetensors.numpy.load_file(inputs.root / "data.safetensors")
    arrays = {name: array.copy() for name, array in arrays.items()}
    change(arrays)
    changed = tmp_path / "changed.safetensors"
    safetensors.numpy.save_file(arrays, changed, metadata)
    assert_one_sentence(unlearn(*inputs.command("learn", output, data_safetensors=changed)), sentence)
    assert not list(output.iterdir())


# Damaged files between jobs.

READERS = [
    ("learn", "plan.json"),
    ("learn", "data.safetensors"),
    ("unlearn", "learned.safetensors"),
    ("unlearn", "plan.json"),
    ("retrain", "plan.json"),
    ("refit", "plan.json"),
    ("refit", "data.safetensors"),
    ("make", "plan.json"),
    ("plan", "data.json"),
    ("certify", "plan.json"),
    ("collect", "rows.parquet"),
    ("metrics", "rows.parquet"),
    ("figure", "rows.parquet"),
    ("tabulate", "table.parquet"),
    ("verify", "certificate.json"),
]


@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "of another kind", "a directory"])
@pytest.mark.parametrize(("job", "name"), READERS)
def test_a_damaged_input_is_named(
    unlearn: Unlearn, inputs: Inputs, output: Path, tmp_path: Path, job: str, name: str, damage: str
) -> None:
    damaged = tmp_path / f"damaged.{name}"
    content = (inputs.root / name).read_bytes()
    if damage == "a directory":
        damaged.mkdir()
    elif damage != "missing":
        other = b'{"a": 1}' if name.endswith(".json") else b"PK\x03\x04" * 30
        damaged.write_bytes({"empty": b"", "cut": content[: len(content) // 2], "of another kind": other}[damage])
    result = unlearn(*inputs.command(job, output, **{name.replace(".", "_"): damaged}))
    assert_one_sentence(result, str(damaged))
    assert not list(output.iterdir())


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", "is not valid JSON"),
        ("[1]", "does not hold a JSON object"),
        ('{"n": 5}', "lacks features, n_test, d, classes, largest_eigenvalue, sha256"),
    ],
)
def test_a_damaged_summary_of_the_data_is_named(
    unlearn: Unlearn, inputs: Inputs, output: Path, tmp_path: Path, content: str, sentence: str
) -> None:
    (tmp_path / "data.json").write_text(content)
    command = plan_command(inputs, output, "fig3a", {}, {})
    command[command.index("--summary") + 1] = tmp_path / "data.json"
    assert_one_sentence(unlearn(*command), f"{tmp_path}/data.json {sentence}")
    assert not list(output.iterdir())


def test_a_plan_made_for_other_data_is_refused(unlearn: Unlearn, inputs: Inputs, output: Path, tmp_path: Path) -> None:
    DIGITS.prepare(tmp_path, 2).save(tmp_path / "other.safetensors")
    for job in ("learn", "unlearn", "retrain", "refit", "descend"):
        result = unlearn(*inputs.command(job, output, data_safetensors=tmp_path / "other.safetensors"))
        assert_one_sentence(result, "but the plan was made for", "make the plan again")
    assert not list(output.iterdir())


def test_weights_learned_for_another_plan_are_refused(unlearn, inputs: Inputs, output: Path, tmp_path: Path) -> None:
    plan = json.loads((inputs.root / "plan.json").read_text())
    for run in plan["runs"]:
        run["sigma"] *= 2
    (tmp_path / "other.json").write_text(json.dumps(plan))
    result = unlearn(*inputs.command("unlearn", output, plan_json=tmp_path / "other.json"))
    assert_one_sentence(result, "was learned for another plan; learn again")
    assert not list(output.iterdir())


def test_a_table_of_another_kind_is_refused(unlearn: Unlearn, inputs: Inputs, output: Path) -> None:
    curves = inputs.root / "curves.parquet"
    result = unlearn(*inputs.command("collect", output, rows_parquet=curves))
    assert_one_sentence(result, f"{curves} does not have the expected columns")
    assert not list(output.iterdir())


@pytest.mark.parametrize("command", ["claims --check", "regression"])
def test_a_missing_baseline_is_named_with_the_command_that_makes_one(
    unlearn: Unlearn, output: Path, command: str
) -> None:
    (output / "mine").mkdir()
    for name in ("claims.json", "records.parquet"):
        (output / "mine" / name).write_text("[]")
    arguments = [*command.split(), "--preset", "mine", "--results", output, "--baselines", output / "baselines"]
    assert_one_sentence(
        unlearn(*arguments),
        f"preset mine has no baseline yet ({output}/baselines/mine.json does not exist)",
        f"`unlearn {command.split()[0]} --preset mine --accept` makes one",
    )


# Packages that are not there.


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("module", "package", "command"),
    [
        ("mlflow", "mlflow", "track --sync --results {output}"),
        ("sqlalchemy", "mlflow", "track --sync --results {output}"),
        ("matplotlib", "matplotlib", "track --sync --results {output}"),
        ("mlflow", "mlflow", "pipeline track-store smoke --output {output}/status.json"),
        ("seaborn", "seaborn", "plan removal --plot {output}/plot --epsilon 1 --sigma 0.03 --records 1 --n 1000"
         " --strong-convexity 0.01 --smoothness 0.26 --lipschitz 1"),
        ("jinja2", "jinja2", "pipeline report smoke --shows smoke=fig3a --output {output}/report.html"),
        ("PIL", "pillow", "pipeline report smoke --shows smoke=fig3a --output {output}/report.html"),
    ],
)  # fmt: skip
def test_a_missing_extra_is_named(output: Path, module: str, package: str, command: str) -> None:
    directory = output / "smoke" / "langevin_unlearning" / "fig3a"
    directory.mkdir(parents=True)
    (directory / "langevin.rows.parquet").touch()
    # An entry of None is how Python's own tests hide a module.
    hide = f"import sys; sys.modules[{module!r}] = None; from certified_unlearning.cli import main; main()"
    arguments = command.format(output=output).split()
    ended = subprocess.run([sys.executable, "-c", hide, *arguments], capture_output=True, text=True, cwd=output)
    advice = f'this command needs {package}, which is not installed: pip install "certified-unlearning[workflow]"'
    assert (ended.returncode, ended.stderr) == (1, f"error: {advice}\n")


# Places that cannot be written to.

WRITERS = [job for job in COMMANDS if job != "verify"]


@pytest.mark.parametrize("job", WRITERS)
def test_a_place_that_cannot_be_written_to_is_named(unlearn: Unlearn, inputs: Inputs, tmp_path: Path, job: str) -> None:
    (tmp_path / "file").write_text("whole")
    result = unlearn(*inputs.command(job, tmp_path / "file"))
    assert_one_sentence(result, f"cannot write {tmp_path}/file/")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "whole"


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no /proc, which is read-only even for root")
@pytest.mark.parametrize("job", WRITERS)
def test_a_directory_without_write_permission_is_named(unlearn: Unlearn, inputs: Inputs, job: str) -> None:
    assert_one_sentence(unlearn(*inputs.command(job, Path("/proc/self"))), "cannot write /proc/self/")


def command_line(arguments: list[str]) -> list[str]:
    return [sys.executable, "-c", "from certified_unlearning.cli import main; main()", *arguments]


@pytest.mark.parametrize("job", ["prepare", "learn", "unlearn", "figure"])
def test_a_full_disk_leaves_what_was_there_and_no_temporary_file(inputs: Inputs, output: Path, job: str) -> None:
    """A limit on the size of files fails in write(2), as a full disk does."""
    arguments = inputs.command(job, output)
    targets = {argument for argument in arguments if argument.startswith(f"{output}/")}
    for target in targets:
        Path(target).write_text("old")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    ended = subprocess.run(command_line(arguments), preexec_fn=limit, capture_output=True, text=True, timeout=PATIENCE)
    assert_one_sentence((ended.returncode, ended.stderr), f"cannot write {output}/", "File too large")
    assert {str(path) for path in output.iterdir()} == targets
    assert all(Path(target).read_text() == "old" for target in targets)


# Interruptions.


def test_ctrl_c_ends_a_job_without_a_traceback(inputs: Inputs, output: Path, tmp_path: Path) -> None:
    plan = json.loads((inputs.root / "plan.json").read_text())
    for run in plan["runs"]:
        run["learning_steps"] = 10**8
    (tmp_path / "long.json").write_text(json.dumps(plan))
    arguments = inputs.command("learn", output, plan_json=tmp_path / "long.json")
    save_always = "checkpoint.Checkpoint.is_due = lambda self: True"
    imports = "from certified_unlearning import cli; from certified_unlearning.engine import checkpoint"
    code = f"{imports}; {save_always}; cli.main()"
    # A suite that runs in the background ignores Ctrl-C, and what it starts would inherit that.
    heeds_ctrl_c = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    command = [sys.executable, "-c", code, *arguments]
    job = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=heeds_ctrl_c)
    checkpoint = output / "model.group-0.checkpoint"
    deadline = time.monotonic() + PATIENCE
    while not checkpoint.exists():
        assert job.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    job.send_signal(signal.SIGINT)
    _, errors = job.communicate(timeout=PATIENCE)
    assert job.returncode == 128 + signal.SIGINT
    assert errors == "interrupted\n"
    assert list(output.iterdir()) == [checkpoint]


def test_a_reader_that_closes_the_pipe_causes_no_traceback(inputs: Inputs) -> None:
    verify = [*command_line(["verify"]), *[str(inputs.root / "certificate.json")] * 2000]
    job = subprocess.Popen(verify, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert job.stdout is not None
    assert "epsilon = " in job.stdout.readline()
    job.stdout.close()
    assert job.stderr is not None
    assert job.stderr.read() == ""
    assert job.wait(timeout=PATIENCE) == 1


def test_the_installed_command_says_what_it_can_do() -> None:
    command = Path(sys.executable).with_name("unlearn")
    shown = subprocess.run([command, "--help"], capture_output=True, text=True, timeout=PATIENCE)
    assert shown.returncode == 0
    assert all(word in shown.stdout for word in ("data", "pipeline", "track", "verify", "plan", "claims", "regression"))


@pytest.mark.parametrize(
    ("tried", "meant"),
    [
        *((name, "unlearn request MODEL_DIR --id ID") for name in ("delete", "remove", "forget", "erase", "unlearn")),
        *((name, "unlearn init MODEL_DIR") for name in ("train", "fit", "learn", "create", "new")),
        ("check", "unlearn verify PATH"),
    ],
)
def test_a_command_that_people_try_in_vain_is_answered_with_the_one_that_they_mean(
    tried: str, meant: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["unlearn", tried, "model", "--id", "3"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    said = capsys.readouterr()
    assert ended.value.code == 1
    assert said.out == ""
    assert said.err.startswith(f"error: there is no command {tried!r}; you may mean `{meant}`, ")
    assert said.err.count("\n") == 1


def test_every_command_stands_once_under_what_it_is_for():
    named = [name for commands in JOBS.values() for name in commands]
    assert sorted(named) == sorted(get_command(program()).commands)
    assert len(named) == len(set(named))


def every_command(command: Any, *names: str) -> Iterator[tuple[str, Any]]:
    """Yield the commands below one, groups included, each with its names."""
    for name, each in getattr(command, "commands", {}).items():
        yield " ".join((*names, name)), each
        yield from every_command(each, *names, name)


COMMANDS_OF_PEOPLE = {name: each for name, each in every_command(get_command(program())) if "pipeline " not in name}


@pytest.mark.parametrize("name", COMMANDS_OF_PEOPLE)
def test_the_example_of_every_help_is_a_command_with_known_options(name: str) -> None:
    found = re.fullmatch("Example: `(unlearn .*)`", COMMANDS_OF_PEOPLE[name].epilog)
    assert found is not None
    words = found[1].split()[1:]
    assert words[: len(name.split())] == name.split()
    command, context = get_command(program()), None
    while hasattr(command, "commands"):
        name, *words = words
        if name == "--help":
            return
        command = command.commands[name]
    context = command.make_context(command.name, words)
    assert context.args == []


@pytest.mark.parametrize("name", sorted(COMMANDS_OF_PEOPLE.keys() - {"init"}))
def test_a_help_has_a_dozen_options_at_most_before_those_with_headings_of_their_own(name: str) -> None:
    """That of `init` depends on the mechanism: see below."""
    options = [each for each in COMMANDS_OF_PEOPLE[name].params if each.param_type_name == "option"]
    assert len([each for each in options if each.rich_help_panel is None]) <= 12


def test_the_help_of_init_has_a_dozen_options_at_most_before_those_of_the_mechanism_and_advanced_ones_last():
    shown = CliRunner().invoke(program(), ["init", "--help"], env={"COLUMNS": "120", "TERM": "dumb"}).output
    general, of_mechanism, advanced = re.split("─ Options of newton-removal ─|─ Advanced options ─", shown)
    names = [re.findall(r"^│ {1,4}(--[\w-]+)", part, re.MULTILINE) for part in (general, of_mechanism, advanced)]
    assert {"--data", "--label", "--id", "--range", "--mechanism"} <= set(names[0])
    assert len(names[0]) <= 12
    assert {"--C", "--epsilon", "--delta"} <= set(names[1])
    assert {"--class-weight", "--log", "--key-file"} <= set(names[2])


def test_a_job_of_the_workflow_imports_the_commands_of_no_ledger():
    script = (
        "import sys; sys.argv = ['unlearn', 'pipeline', 'headline', '--nothing']\n"
        "from certified_unlearning.commands import run\n"
        "try:\n    run()\nexcept SystemExit:\n    pass\n"
        "print([name for name in sys.modules if 'ledger' in name])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
