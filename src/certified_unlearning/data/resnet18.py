"""Features ``resnet18``: the input of the last layer of a ResNet-18 trained on ImageNet (as in Chien et al. 2024)."""

import hashlib
import io
import os
from pathlib import Path

import numpy as np
import safetensors
import safetensors.torch
import torch
from numpy.typing import NDArray
from torch import Tensor

from certified_unlearning.data.features import Extractor, import_extra
from certified_unlearning.data.fetch import check, fetch_file, read
from certified_unlearning.data.raw_file import RawFile
from certified_unlearning.errors import DataError

IMAGENET = RawFile(
    "weights/resnet18-f37072fd.pth",
    "f37072fd47e89c5e827621c5baffa7500819f7896bbacec160b1a16c560e07ec",
    "e0b1c919e74f9a193d36871d9964bf7d",
    ("https://download.pytorch.org/models/resnet18-f37072fd.pth",),
)
"""torchvision's ``ResNet18_Weights.IMAGENET1K_V1``."""

OWN = "weights/resnet18.safetensors"
"""Path of a user's own state dict below the raw root.

The file has the same path below the directory that UNLEARNING_DATA names.
"""

SIZE = 224
"""Height and width of the resized images, in pixels."""

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Mean and spread of ImageNet's red, green and blue: the scale that torchvision's weights were trained on."""


def load(raw_root: Path) -> Extractor:
    """Return the feature function: 512 features, the last layer's input after average pooling.

    The weights are a user's own state dict (`OWN`) if there is one. Otherwise they are ImageNet's, from torchvision's
    cache or fetched like raw files.

    Args:
        raw_root: Directory in which the weights are searched for first, and into which fetched weights are put.

    Raises:
        ParameterError: torchvision cannot be imported.
        DataError: The weights are damaged, are those of another network, or cannot be found.
    """
    need = "features 'resnet18' need torchvision, in the same build (CPU or CUDA) as PyTorch"
    torchvision = import_extra("torchvision", "resnet18", need)
    network = torchvision.models.resnet18()
    path, state = _weights(raw_root)
    try:
        network.load_state_dict(state)
    except RuntimeError as error:
        raise DataError(
            f"{path} does not have the weights of ResNet-18: {' '.join(str(error).split())[:300]}"
        ) from error
    network.fc = torch.nn.Identity()
    network.eval()
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    imagenet = digest == IMAGENET.sha256
    mean, deviation = (torch.tensor(values).reshape(3, 1, 1) for values in (MEAN, DEVIATION))

    @torch.inference_mode()
    def apply(images: NDArray[np.uint8]) -> NDArray[np.float32]:
        pixels = torch.from_numpy(images).permute(0, 3, 1, 2) / 255
        pixels = torch.nn.functional.interpolate(pixels, size=(SIZE, SIZE), mode="bilinear")
        features: NDArray[np.float32] = network((pixels - mean) / deviation).numpy()
        return features

    return Extractor(
        name="resnet18",
        title="ResNet-18 (ImageNet)" if imagenet else f"ResNet-18 (weights {digest[:8]}, not ImageNet's)",
        privacy="a fixed function of one image that costs no privacy if its weights saw none of these records: "
        + ("they were trained on ImageNet" if imagenet else "the person who provided the weights must confirm this"),
        identity={"weights": digest, "torch": torch.__version__, "torchvision": torchvision.__version__},
        apply=apply,
    )


def _weights(raw_root: Path) -> tuple[Path, dict[str, Tensor]]:
    directory = os.environ.get("UNLEARNING_DATA")
    for root in (raw_root, *([Path(directory)] if directory else [])):
        if (root / OWN).exists():
            try:
                return root / OWN, safetensors.torch.load_file(root / OWN)
            except (OSError, safetensors.SafetensorError) as error:
                raise DataError(f"{root / OWN} is damaged or not a safetensors file: {error}") from error
    cached = Path(torch.hub.get_dir()) / "checkpoints" / Path(IMAGENET.path).name
    path = cached if cached.exists() else fetch_file(IMAGENET, raw_root)
    content = read(IMAGENET, path)
    check(IMAGENET, content, path)
    # The published file is a pickle. It is read only after its digest is checked, and only tensors are accepted.
    return path, torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
