"""Features of images: computed in chunks, cached by content; HOG with colour moments; ResNet-18."""

import hashlib
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from certified_unlearning.data import hog, resnet18
from certified_unlearning.data.features import CHUNK, Extractor, extract, import_extra
from certified_unlearning.data.raw_file import RawFile
from certified_unlearning.data.sets import DATA_SETS
from certified_unlearning.errors import DataError, ParameterError, StorageError


def random_images(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, 32, 32, 3)).astype(np.uint8)


class CountedExtractor:
    """Row means, and how many images they were asked of."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    def __call__(self, images: np.ndarray) -> np.ndarray:
        self.calls.append(len(images))
        return images.mean(axis=(2, 3))

    def extractor(self, **identity: str) -> Extractor:
        return Extractor("rows", "row means", "not learned", identity, self)


def test_chunks_together_are_the_whole(tmp_path: Path) -> None:
    images, counted = random_images(2 * CHUNK + 7), CountedExtractor()
    features = extract(counted.extractor(), images, tmp_path)
    np.testing.assert_array_equal(features, images.mean(axis=(2, 3)).astype(np.float32))
    assert features.dtype == np.float32
    assert counted.calls == [CHUNK, CHUNK, 7]


def test_the_cache_answers_the_second_time_and_across_copies_of_the_images(tmp_path: Path) -> None:
    images, counted = random_images(10), CountedExtractor()
    first = extract(counted.extractor(), images, tmp_path)
    # The same pixels in another memory layout are the same content.
    second = extract(counted.extractor(), np.asfortranarray(images), tmp_path)
    np.testing.assert_array_equal(first, second)
    assert counted.calls == [10]
    assert len(list(tmp_path.iterdir())) == 1


def test_other_images_features_weights_or_versions_are_computed_afresh(tmp_path: Path) -> None:
    images, counted = random_images(10), CountedExtractor()
    brighter = images.copy()
    brighter[9, 31, 31, 2] ^= 1
    for extractor, pixels in (
        (counted.extractor(weights="a"), images),
        (counted.extractor(weights="b"), images),
        (counted.extractor(weights="a", version="2"), images),
        (replace(counted.extractor(weights="a"), name="columns"), images),
        (counted.extractor(weights="a"), brighter),
        (counted.extractor(weights="a"), images[::-1]),
        (counted.extractor(weights="a"), images.reshape(5, 64, 32, 3)),
    ):
        extract(extractor, pixels, tmp_path)
    assert len(counted.calls) == len(list(tmp_path.iterdir())) == 7


@pytest.mark.parametrize("damage", ["flipped bit", "truncated", "empty", "no digest"])
def test_a_damaged_cache_is_named_and_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: str) -> None:
    images, counted = random_images(10), CountedExtractor()
    features = extract(counted.extractor(), images, tmp_path)
    (path,) = tmp_path.iterdir()
    content = path.read_bytes()
    flipped = content[:-1] + bytes([content[-1] ^ 1])  # The last byte of the last feature.
    nameless = content.replace(b"sha256", b"sha255")
    damaged = {"flipped bit": flipped, "truncated": content[:-10], "empty": b"", "no digest": nameless}[damage]
    path.write_bytes(damaged)
    capsys.readouterr()
    np.testing.assert_array_equal(extract(counted.extractor(), images, tmp_path), features)
    assert f"{path} is damaged" in capsys.readouterr().err
    assert counted.calls == [10, 10]
    assert path.read_bytes() == content


def test_a_failed_computation_leaves_nothing_in_the_cache(tmp_path: Path) -> None:
    def fail(images: np.ndarray) -> np.ndarray:
        raise KeyboardInterrupt

    extractor = Extractor("rows", "row means", "not learned", {}, fail)
    with pytest.raises(KeyboardInterrupt):
        extract(extractor, random_images(3), tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


def test_a_cache_that_cannot_be_written_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the directory should be")
    with pytest.raises(StorageError, match="cannot write"):
        extract(CountedExtractor().extractor(), random_images(3), tmp_path / "cache")


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "skimage", None)
    with pytest.raises(ParameterError, match=r"features 'hog' need scikit-image.*certified-unlearning\[images\]"):
        hog.load(Path())
    monkeypatch.setitem(sys.modules, "torchvision", None)
    with pytest.raises(ParameterError, match=r"features 'resnet18' need torchvision.*certified-unlearning\[resnet18\]"):
        resnet18.load(Path())


def test_an_extra_that_is_installed_but_broken_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # What torchvision does when it was built for another PyTorch.
    (tmp_path / "broken_extra.py").write_text("raise RuntimeError('operator nms does not exist\\nand more')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        ParameterError, match=r"^who needs what, but broken_extra cannot be imported \(operator nms does"
    ):
        import_extra("broken_extra", "images", "who needs what")


def test_every_choice_of_features_has_its_module() -> None:
    choices = {name for data_set in DATA_SETS for name in data_set.features}
    assert choices == {"hog", "resnet18"}
    for name in choices:
        assert callable(import_extra(f"certified_unlearning.data.{name}", "", "").load)


def test_colour_moments_are_mean_and_deviation_of_each_channel_in_each_cell() -> None:
    images = random_images(3)
    moments = hog.colour_moments(images)
    assert moments.shape == (3, 2 * 4 * 4 * 3)
    for row in range(4):
        for column in range(4):
            for channel in range(3):
                cell = images[2, 8 * row : 8 * row + 8, 8 * column : 8 * column + 8, channel] / 255 - 0.5
                at = 12 * row + 3 * column + channel
                assert moments[2, at] == pytest.approx(np.mean(cell), abs=1e-12)
                assert moments[2, 48 + at] == pytest.approx(np.std(cell), abs=1e-12)


def test_hog_features_of_an_image_depend_on_that_image_alone(tmp_path: Path) -> None:
    pytest.importorskip("skimage", reason="the extra 'images' is not installed")
    extractor, images = hog.load(tmp_path), random_images(6)
    together = extractor.apply(images)
    assert together.shape == (6, 420)
    for at in range(6):
        np.testing.assert_array_equal(extractor.apply(images[at : at + 1])[0], together[at])
    other = images.copy()
    other[0] = 255 - other[0]
    np.testing.assert_array_equal(extractor.apply(other)[1:], together[1:])
    assert not np.array_equal(extractor.apply(other)[0], together[0])


def test_hog_sees_the_orientation_of_edges(tmp_path: Path) -> None:
    pytest.importorskip("skimage", reason="the extra 'images' is not installed")
    stripes = np.zeros((32, 32, 3), np.uint8)
    stripes[:, ::4] = stripes[:, 1::4] = 255  # Vertical edges.
    features = hog.load(tmp_path).apply(np.stack([stripes, stripes.transpose(1, 0, 2)]))[:, :324]
    histograms = features.reshape(2, -1, 9).sum(axis=1)
    across = np.argmax(histograms, axis=1)
    assert across[0] != across[1]
    for histogram, peak in zip(histograms, across, strict=True):
        assert histogram[peak] > 0.99 * histogram.sum()


@pytest.fixture
def torchvision() -> ModuleType:
    try:
        import torchvision
    except (ImportError, RuntimeError) as error:
        pytest.skip(f"torchvision cannot be imported here ({error})")
    return torchvision


@pytest.fixture
def own_weights(torchvision: ModuleType, tmp_path: Path) -> Path:
    """A raw root with a state dict of random weights."""
    import torch
    from safetensors.torch import save_file

    with torch.random.fork_rng():
        torch.manual_seed(0)
        state = torchvision.models.resnet18().state_dict()
    (tmp_path / "weights").mkdir()
    save_file(state, tmp_path / resnet18.OWN)
    return tmp_path


def test_resnet18_gives_the_pooled_layer_of_the_local_state_dict(torchvision: ModuleType, own_weights: Path) -> None:
    import torch
    from safetensors.torch import load_file

    images = random_images(3)
    extractor = resnet18.load(own_weights)
    features = extract(extractor, images, own_weights / "features")
    assert features.shape == (3, 512)
    network = torchvision.models.resnet18()
    network.load_state_dict(load_file(own_weights / resnet18.OWN))
    network.eval()
    pooled: list[torch.Tensor] = []
    network.avgpool.register_forward_hook(lambda module, inputs, output: pooled.append(output.flatten(1)))
    # torchvision's own transforms: to 224 x 224, then ImageNet's mean and standard deviation.
    transform = torchvision.models.ResNet18_Weights.IMAGENET1K_V1.transforms(
        crop_size=224, resize_size=224, antialias=False
    )
    with torch.inference_mode():
        network(torch.stack([transform(torch.from_numpy(image).permute(2, 0, 1) / 255) for image in images]))
    np.testing.assert_allclose(features, pooled[0].numpy(), rtol=1e-4, atol=1e-4 * features.max())
    assert np.ptp(features, axis=0).max() > 0.01 * features.max()  # Images differ, so do their features.


def test_resnet18_with_other_weights_than_imagenets_says_so(own_weights: Path) -> None:
    extractor = resnet18.load(own_weights)
    digest = hashlib.sha256((own_weights / resnet18.OWN).read_bytes()).hexdigest()
    assert extractor.title == f"ResNet-18 (weights {digest[:8]}, not ImageNet's)"
    assert extractor.identity["weights"] == digest
    assert "who provided the weights" in extractor.privacy


def test_weights_are_found_where_unlearning_data_points(
    own_weights: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNLEARNING_DATA", str(own_weights))
    empty = tmp_path_factory.mktemp("raw")
    assert resnet18.load(empty).identity == resnet18.load(own_weights).identity


@pytest.mark.parametrize("damage", ["truncated", "another network"])
def test_wrong_weights_are_refused_in_one_sentence(torchvision: ModuleType, own_weights: Path, damage: str) -> None:
    from safetensors.torch import save_file

    path = own_weights / resnet18.OWN
    if damage == "truncated":
        path.write_bytes(path.read_bytes()[:-10])
    else:
        save_file(torchvision.models.squeezenet1_1().state_dict(), path)
    with pytest.raises(DataError, match=r"resnet18\.safetensors (is damaged|does not have the weights)") as caught:
        resnet18.load(own_weights)
    assert "\n" not in str(caught.value)


def test_the_published_weights_come_from_torchvisions_cache_and_are_checked(
    torchvision: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    monkeypatch.delenv("UNLEARNING_DATA", raising=False)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    cached = tmp_path / "hub" / "checkpoints" / "resnet18-f37072fd.pth"
    cached.parent.mkdir(parents=True)
    torch.save(torchvision.models.resnet18().state_dict(), cached)
    with pytest.raises(DataError, match=r"f37072fd\.pth is not the published weights/resnet18-f37072fd\.pth"):
        resnet18.load(tmp_path)
    published = RawFile(resnet18.IMAGENET.path, hashlib.sha256(cached.read_bytes()).hexdigest(), "", ())
    monkeypatch.setattr(resnet18, "IMAGENET", published)
    extractor = resnet18.load(tmp_path)
    assert extractor.title == "ResNet-18 (ImageNet)"
    assert extractor.privacy.endswith("they were trained on ImageNet")
    cached.unlink()
    with pytest.raises(DataError, match=r"weights/resnet18-f37072fd\.pth could not be obtained"):
        resnet18.load(tmp_path)


def test_the_published_weights_are_those_that_torchvision_names(torchvision: ModuleType) -> None:
    address = torchvision.models.ResNet18_Weights.IMAGENET1K_V1.url
    assert resnet18.IMAGENET.addresses == (address,)
    assert address.endswith(f"-{resnet18.IMAGENET.sha256[:8]}.pth")
