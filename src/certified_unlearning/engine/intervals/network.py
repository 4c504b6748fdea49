"""Networks whose outputs and gradients can be bounded.

They are read from `torch.nn.Sequential`; a network with a layer of any kind that is not in `SUPPORTED` is refused.

Parameters are a tuple of tensors in the order of `torch.nn.Module.parameters`: for each affine layer, a weight and, if
there is one, a bias. The first axis of every tensor is the axis of *runs*, so that many boxes, or many models, are
processed at once.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from certified_unlearning.errors import ParameterError

SUPPORTED = "Linear, Conv2d, ReLU, Flatten"
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
"""Attributes that store a module's hooks, which can change what it computes."""


@dataclass(frozen=True)
class Dense:
    """A dense layer: a matrix and a bias.

    Attributes:
        inputs: Number of inputs.
        outputs: Number of outputs.
        bias: Whether there is a bias.
    """

    inputs: int
    outputs: int
    bias: bool = True

    @property
    def weight_shape(self) -> tuple[int, ...]:
        """Shape of the weight, as in PyTorch."""
        return (self.outputs, self.inputs)

    def columns(self, values: Tensor) -> Tensor:
        """Return the inputs as columns, which the weight multiplies, shape ``(runs, records, 1, inputs)``.

        Raises:
            ParameterError: The inputs have the wrong shape.
        """
        if values.ndim != 3 or values.shape[-1] != self.inputs:
            raise ParameterError(
                f"a Linear layer with {self.inputs} inputs got values of shape {tuple(values.shape[2:])} per record; "
                "put a Flatten layer before it, or change its number of inputs"
            )
        return values.unsqueeze(2)

    def placed(self, values: Tensor, inputs: torch.Size) -> Tensor:
        """Return outputs of shape ``(runs, records, 1, outputs)`` in the form that the next layer needs."""
        return values.squeeze(2)

    def rows(self, values: Tensor) -> Tensor:
        """Return the argument for which `placed` returns these values."""
        return values.unsqueeze(2)

    def gathered(self, columns: Tensor, inputs: torch.Size) -> Tensor:
        """Return the sum of all columns, each added at its original place: the transpose of `columns`."""
        return columns.squeeze(2)

    @property
    def overlap(self) -> int:
        """Largest number of columns that contain the same input."""
        return 1


@dataclass(frozen=True)
class Convolution:
    """A two-dimensional convolution, computed as a matrix that multiplies the unfolded input.

    Attributes:
        channels: Number of channels of the input.
        outputs: Number of channels of the output.
        kernel: Height and width of the kernel.
        stride: Stride of the kernel.
        padding: Number of zeros added on each side.
        dilation: Dilation of the kernel.
        bias: Whether there is a bias.
    """

    channels: int
    outputs: int
    kernel: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)
    dilation: tuple[int, int] = (1, 1)
    bias: bool = True

    @property
    def inputs(self) -> int:
        """Number of entries of a column."""
        return self.channels * math.prod(self.kernel)

    @property
    def weight_shape(self) -> tuple[int, ...]:
        """Shape of the weight, as in PyTorch."""
        return (self.outputs, self.channels, *self.kernel)

    @property
    def overlap(self) -> int:
        """Largest number of columns that contain the same input."""
        return math.prod(self.kernel)

    def columns(self, values: Tensor) -> Tensor:
        """Return the inputs as columns, which the weight multiplies, shape ``(runs, records, positions, inputs)``.

        Raises:
            ParameterError: The inputs have the wrong shape.
        """
        if values.ndim != 5 or values.shape[2] != self.channels:
            raise ParameterError(
                f"a Conv2d layer with {self.channels} input channels got values of shape {tuple(values.shape[2:])} per "
                "record; it needs the shape (channels, height, width)"
            )
        unfolded = functional.unfold(values.flatten(0, 1), self.kernel, self.dilation, self.padding, self.stride)
        columns = unfolded.transpose(1, 2)
        return columns.reshape(*values.shape[:2], *columns.shape[1:])

    def placed(self, values: Tensor, inputs: torch.Size) -> Tensor:
        """Return outputs of shape ``(runs, records, positions, outputs)`` in the form that the next layer needs."""
        return values.transpose(2, 3).reshape(*values.shape[:2], self.outputs, *self._size(inputs))

    def rows(self, values: Tensor) -> Tensor:
        """Return the argument for which `placed` returns these values."""
        return values.flatten(3).transpose(2, 3)

    def gathered(self, columns: Tensor, inputs: torch.Size) -> Tensor:
        """Return the sum of all columns, each added at its original place: the transpose of `columns`."""
        height, width = inputs[-2:]
        folded = functional.fold(
            columns.flatten(0, 1).transpose(1, 2),
            (height, width),
            self.kernel,
            self.dilation,
            self.padding,
            self.stride,
        )
        return folded.reshape(*columns.shape[:2], *folded.shape[1:])

    def positions(self, inputs: torch.Size) -> int:
        """Return the number of columns of an input of this shape."""
        return math.prod(self._size(inputs))

    def _size(self, inputs: torch.Size) -> tuple[int, int]:
        height, width = (
            (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
            for size, kernel, stride, padding, dilation in zip(
                inputs[-2:], self.kernel, self.stride, self.padding, self.dilation, strict=True
            )
        )
        return height, width


@dataclass(frozen=True)
class Relu:
    """A layer that replaces negative numbers by 0; its derivative at 0 is 0, as in PyTorch."""


@dataclass(frozen=True)
class Flatten:
    """A layer that puts all values of a record into one row."""


Affine = Dense | Convolution
Layer = Affine | Relu | Flatten


@dataclass(frozen=True)
class Network:
    """A network: its layers, in order.

    Attributes:
        layers: The layers; the last one is dense, because everything after it belongs to the loss.
    """

    layers: tuple[Layer, ...]

    def __post_init__(self) -> None:
        if not self.layers or not isinstance(self.layers[-1], Dense):
            raise ParameterError("a network must end with a Linear layer: its outputs are logits")

    @classmethod
    def of(cls, module: nn.Module) -> Self:
        """Read a `torch.nn.Sequential`, which may contain other `Sequential` modules.

        Raises:
            ParameterError: The module contains an unsupported layer; the message names that layer.
        """
        if not isinstance(module, nn.Sequential):
            raise ParameterError(f"a network must be a torch.nn.Sequential of {SUPPORTED}, got {_name(module)}")
        _require_plain(module)
        return cls(tuple(_layer(each) for each in _leaves(module)))

    @classmethod
    def dense(cls, *widths: int) -> Self:
        """Return a network of dense layers with ReLU between them: inputs, hidden units, outputs."""
        layers: list[Layer] = []
        for inputs, outputs in itertools.pairwise(widths):
            layers += [Dense(inputs, outputs), Relu()]
        return cls(tuple(layers[:-1]))

    @property
    def affine(self) -> tuple[Affine, ...]:
        """The layers that have parameters."""
        return tuple(each for each in self.layers if isinstance(each, Affine))

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of all parameters, without the axis of runs."""
        found: list[tuple[int, ...]] = []
        for layer in self.affine:
            found += [layer.weight_shape, (layer.outputs,)] if layer.bias else [layer.weight_shape]
        return tuple(found)

    @property
    def size(self) -> int:
        """Number of parameters."""
        return sum(math.prod(shape) for shape in self.shapes)

    def widest(self, row: Sequence[int]) -> int:
        """Return the largest number of values in a layer for a record of this shape.

        If there are more pairs of logits than values in any layer, return the number of pairs.
        """
        shape, sizes = torch.Size(row), [self.outputs * (self.outputs - 1) // 2]
        for layer in self.layers:
            if isinstance(layer, Flatten):
                shape = torch.Size((math.prod(shape),))
            elif isinstance(layer, Convolution):
                inputs = torch.Size((1, 1, *shape))
                positions = layer.positions(inputs)
                shape = layer.placed(torch.empty(1, 1, positions, layer.outputs, device="meta"), inputs).shape[2:]
                # An unfolded input contains each of its values several times.
                sizes += [positions * layer.inputs, positions * layer.outputs]
            elif isinstance(layer, Dense):
                shape = torch.Size((layer.outputs,))
                sizes.append(layer.outputs)
        return max(sizes)

    @property
    def outputs(self) -> int:
        """Number of logits."""
        return self.affine[-1].outputs

    def checked(self, parameters: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Return the parameters as a tuple, after checking their shapes.

        Raises:
            ParameterError: The shapes do not fit the network.
        """
        shapes = [tuple(each.shape[1:]) for each in parameters]
        if shapes != [*self.shapes] or len({each.shape[0] for each in parameters}) != 1:
            raise ParameterError(f"parameters must have the shapes {self.shapes} after the axis of runs, got {shapes}")
        return tuple(parameters)

    def by_layer(self, parameters: Sequence[Any]) -> Iterator[tuple[Affine, Any, Any]]:
        """Yield each affine layer with its weight and its bias, which may be None."""
        rest = iter(parameters)
        for layer in self.affine:
            yield layer, next(rest), next(rest) if layer.bias else None


def parameters_of(module: nn.Module) -> tuple[Tensor, ...]:
    """Return detached copies of a module's parameters, each with a new first axis for a single run."""
    return tuple(each.detach().clone().unsqueeze(0) for each in module.parameters())


def _leaves(module: nn.Sequential) -> Iterator[nn.Module]:
    for each in module:
        _require_plain(each)
        if isinstance(each, nn.Sequential):
            yield from _leaves(each)
        else:
            yield each


def _require_plain(module: nn.Module) -> None:
    """Raise `ParameterError` if a module may compute something other than what its class computes.

    Subclasses of `Sequential` are refused, too.
    """
    other = isinstance(module, nn.Sequential) and type(module).forward is not nn.Sequential.forward
    if other or "forward" in vars(module) or any(vars(module).get(name) for name in HOOKS):
        raise ParameterError(
            f"{_name(module)} has its own `forward`, or hooks, and cannot be bounded: a network may contain {SUPPORTED}"
        )


def _layer(module: nn.Module) -> Layer:
    """Return the layer of a module; subclasses are refused, because they may compute something different."""
    kind = type(module)
    if kind is nn.Linear:
        dense = cast(nn.Linear, module)
        return Dense(dense.in_features, dense.out_features, dense.bias is not None)
    if kind is nn.Conv2d:
        return _convolution(cast(nn.Conv2d, module))
    if kind is nn.ReLU:
        return Relu()
    if kind is nn.Flatten:
        flatten = cast(nn.Flatten, module)
        if (flatten.start_dim, flatten.end_dim) != (1, -1):
            raise ParameterError(f"Flatten must flatten all axes of a record, got {module}")
        return Flatten()
    raise ParameterError(f"{_name(module)} cannot be bounded: a network may contain {SUPPORTED}")


def _convolution(module: nn.Conv2d) -> Convolution:
    if module.groups != 1 or module.padding_mode != "zeros" or isinstance(module.padding, str):
        raise ParameterError(
            f"Conv2d must have groups=1, padding_mode='zeros' and padding as numbers, got groups={module.groups}, "
            f"padding_mode={module.padding_mode!r}, padding={module.padding!r}"
        )
    return Convolution(
        module.in_channels,
        module.out_channels,
        cast(tuple[int, int], tuple(module.kernel_size)),
        cast(tuple[int, int], tuple(module.stride)),
        cast(tuple[int, int], tuple(module.padding)),
        cast(tuple[int, int], tuple(module.dilation)),
        module.bias is not None,
    )


def _name(module: object) -> str:
    return type(module).__name__
