"""ResNet-18 features through the whole pipeline: a part of the real images, random weights, every job of figure 3a."""

import io
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

from certified_unlearning import certificate
from certified_unlearning.data import cifar10, resnet18
from certified_unlearning.data.cifar10 import CAT_AGAINST_SHIP, TEN_CLASSES
from certified_unlearning.data.fetch import fetch
from certified_unlearning.data.prepared import PreparedData
from certified_unlearning.data.requests import draw_removals
from certified_unlearning.mechanisms.descent_to_delete import DESCENT_TO_DELETE
from certified_unlearning.mechanisms.langevin import LANGEVIN
from certified_unlearning.mechanisms.retraining import RETRAINING
from certified_unlearning.mechanisms.run import ExperimentPlan
from certified_unlearning.mechanisms.scikit_learn import SCIKIT_LEARN
from certified_unlearning.reproduction import jobs
from certified_unlearning.reproduction.rows import RUN_ROWS, concatenate
from tests.support.planning import ANEW, make, settings_of, sweep_of

IMAGES = {"train": 60, "test": 30}
"""Of every class."""
TRIALS = 2
STRONG_CONVEXITY = 0.05
"""The paper's regularisation of 1e-6 n at all 50 000 records."""
CLOSE = 1e-5
"""Scores that differ by less may be ordered otherwise by 32-bit rounding."""


class Prepared(NamedTuple):
    """Both data sets, prepared twice, and how many images ResNet-18 was asked for each time."""

    first: dict[str, PreparedData]
    images_first: int
    second: dict[str, PreparedData]
    images_second: int


@pytest.fixture(scope="module")
def raw_root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A raw root with the real JPEG archive, of which a part is read, and a state dict of random weights."""
    try:
        import torchvision
    except (ImportError, RuntimeError) as error:
        pytest.skip(f"torchvision cannot be imported here ({error})")
    directory = os.environ.get("UNLEARNING_DATA")
    if not directory or not (Path(directory) / "cifar10" / "cifar10-jpeg.zip").exists():
        pytest.skip("UNLEARNING_DATA names no directory with the JPEG copy of CIFAR-10")
    import torch
    from safetensors.torch import save_file

    root = tmp_path_factory.mktemp("raw")
    (path,) = fetch(TEN_CLASSES, root)
    if path.suffix != ".zip":
        pytest.skip("UNLEARNING_DATA holds the original images, this test reads the JPEG copy")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        state = torchvision.models.resnet18().state_dict()
    (root / "weights").mkdir()
    save_file(state, root / resnet18.OWN)
    part, parse = part_of(path), cifar10.parse_jpeg
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cifar10, "parse_jpeg", lambda content, where: parse(part, where))
        yield root


def part_of(archive: Path) -> bytes:
    """Return a zip archive with the first images of every class."""
    stream = io.BytesIO()
    with zipfile.ZipFile(archive) as whole, zipfile.ZipFile(stream, "w") as part:
        names = sorted(whole.namelist())
        for folder, count in IMAGES.items():
            for label in cifar10.CLASSES:
                for name in [name for name in names if name.startswith(f"{folder}/{label}/")][:count]:
                    part.writestr(name, whole.read(name))
    return stream.getvalue()


@pytest.fixture(scope="module")
def prepared(raw_root: Path) -> Prepared:
    import torch
    import torchvision

    images = [0]

    def count(module: torch.nn.Module, inputs: tuple[torch.Tensor], output: torch.Tensor) -> None:
        if isinstance(module, torchvision.models.ResNet):
            images[-1] += len(output)

    def prepare_both() -> dict[str, PreparedData]:
        return {each.name: each.prepare(raw_root, 0, "resnet18") for each in (TEN_CLASSES, CAT_AGAINST_SHIP)}

    handle = torch.nn.modules.module.register_module_forward_hook(count)
    try:
        first = prepare_both()
        images.append(0)
        second = prepare_both()
    finally:
        handle.remove()
    return Prepared(first, images[0], second, images[1])


def test_the_network_sees_every_image_once_and_the_cache_answers_the_second_time(prepared: Prepared) -> None:
    assert prepared.images_first == (10 + 2) * sum(IMAGES.values())
    assert prepared.images_second == 0
    for name, data in prepared.first.items():
        assert data.sha256 == prepared.second[name].sha256
        assert data.d == 512
        assert data.n == IMAGES["train"] * len(data.classes)
        assert "not ImageNet's) of lossy JPEG copies of the images" in data.features


def test_cats_and_ships_have_the_features_that_they_have_among_the_ten_classes(prepared: Prepared) -> None:
    ten, two = prepared.first["cifar10"], prepared.first["cifar10-cat-vs-ship"]
    cats_and_ships = np.isin(ten.train_labels, [3, 8])
    np.testing.assert_allclose(two.train_features, ten.train_features[cats_and_ships], atol=1e-5)
    assert np.array_equal(two.train_labels == 1, ten.train_labels[cats_and_ships] == 3)
    # Images differ by far more than that tolerance, so rows in another order would be seen.
    assert np.ptp(two.train_features, axis=0).max() > 1e-3


def figure_3a(data: PreparedData) -> ExperimentPlan:
    settings = settings_of(
        "smoke", dataset=data.name, features="resnet18", trials=TRIALS, regularisation=STRONG_CONVEXITY / data.n
    )
    return make("fig3a", settings, sweep_of("smoke", "fig3a"), data.summary())


def run_all(plan: ExperimentPlan, data: PreparedData, directory: Path) -> pd.DataFrame:
    """Run every job and return the rows."""
    learned, curves = directory / "learned.safetensors", directory / "curves.parquet"
    jobs.learn(LANGEVIN, plan, data, learned)
    rows = []
    for mechanism in (LANGEVIN, RETRAINING, DESCENT_TO_DELETE):
        rows.append(directory / f"{mechanism.name}.parquet")
        jobs.unlearn(mechanism, plan, data, learned, rows[-1], curves)
    rows.append(directory / f"{SCIKIT_LEARN.name}.parquet")
    jobs.refit(SCIKIT_LEARN, plan, data, rows[-1], curves)
    return concatenate(rows, RUN_ROWS)


def scikit_learns_accuracy(plan: ExperimentPlan, data: PreparedData) -> tuple[float, float]:
    """Return the test accuracy of scikit-learn's optimum after the removal, and the share of close decisions."""
    from sklearn.linear_model import LogisticRegression

    removals = draw_removals(data, records=1, adjacency=plan.settings.adjacency, seed=plan.settings.seed)
    features, labels = removals.apply(data.train_features, data.train_labels, 1)
    model = LogisticRegression(
        C=1 / (data.n * STRONG_CONVEXITY), fit_intercept=False, solver="newton-cg", tol=1e-9, max_iter=1000
    )
    model.fit(features.astype(np.float64), labels)
    scores = model.decision_function(data.test_features)
    scores = scores if scores.ndim == 2 else np.column_stack([0 * scores, scores])
    best = np.sort(scores, axis=1)
    return model.score(data.test_features, data.test_labels), float(np.mean(best[:, -1] - best[:, -2] < CLOSE))


# Optima of six draws of random weights scored 0.85 to 0.92 on two classes, those of two draws 0.20 and 0.21 on ten.
# Guesses pass the limits below with probability 5e-4 and 2e-3; images and weights are fixed: always or never.
@pytest.mark.parametrize(
    ("dataset", "numbers", "better_than"), [("cifar10-cat-vs-ship", 512, 0.7), ("cifar10", 5120, 0.15)]
)
def test_figure_3a_is_learned_unlearned_retrained_and_certified(
    dataset: str, numbers: int, better_than: float, prepared: Prepared, tmp_path: Path
) -> None:
    prepared.first[dataset].save(tmp_path / "data.safetensors")
    data = PreparedData.load(tmp_path / "data.safetensors")
    plan = figure_3a(data)
    assert plan.constants.d == numbers

    rows = run_all(plan, data, tmp_path)
    assert sorted(rows["run_key"]) == sorted([plan.key(run) for run in plan.runs] * TRIALS)
    assert rows["features"].unique().tolist() == [data.features]
    assert rows["d"].unique().tolist() == [numbers]

    # Only without noise is an accuracy certain: few records make the certified noise drown what was learned.
    accuracy, close = scikit_learns_accuracy(plan, data)
    noiseless = rows.loc[rows["variant"] == "noiseless", "accuracy"]
    assert noiseless.tolist() == [pytest.approx(accuracy, abs=close + 1e-9)] * TRIALS
    assert noiseless.min() > better_than

    certified = [run for run in plan.runs if run.mechanism not in ANEW]
    assert {run.mechanism for run in certified} == {"langevin", "descent-to-delete"}
    for run in certified:
        path = tmp_path / "certificates" / f"{plan.key(run)}.json"
        certificate.write(certificate.of(run, key=plan.key(run), noise_source="seed"), path)
        written = certificate.read(path)
        certificate.verify(written)
        assert (written.features, written.d, written.data_sha256) == ("resnet18", numbers, data.sha256)
        assert written.epsilon <= run.epsilon_target * (1 + 1e-15)  # Theorem N.1's noise is rounded, as its epsilon is.
        assert any("assumed to have been trained on other records" in each.by for each in written.assumptions)
