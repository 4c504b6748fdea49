"""A GPU without a GPU: CUDA tensors that PyTorch's fake tensors stand for, with numbers that the CPU computes.

A fake tensor of PyTorch has a shape, a type and a device, and no numbers. An operation on fake tensors checks what CUDA
would refuse, such as tensors of two devices. But code that looks at a number, as checks of input do, could not go on.
So each fake tensor here has its numbers beside it, in a tensor of the CPU. An operation is done on the numbers, and on
the fake tensors, which say where the result lies: once for each combination of types and devices, for nothing else
matters to them. The CPU's own tensors are left as they are.

The GPU's own kernels are not run: their rounding, their speed and operations that CUDA lacks are not seen.
"""

import ctypes
import sys
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    unset_fake_temporarily,
)
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

import certified_unlearning
from certified_unlearning.engine import devices, randomness
from certified_unlearning.engine.compiled import minibatch as compiled_steps
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.intervals import kernel

CUDA = torch.device("cuda:0")
PACKAGE = certified_unlearning.__name__
SOURCE = str(Path(certified_unlearning.__file__).parent)
C10 = ctypes.CDLL(str(next((Path(torch.__file__).parent / "lib").glob("*c10.*"))))
CUDA_TYPE, META_TYPE = 1, 14
"""PyTorch's numbers of these types of device."""
FAKE = FakeTensorMode(allow_non_fake_inputs=True)
"""One for all: what the package caches for a device may come from an earlier test."""


class FakeCuda(TorchDispatchMode):
    """While it is entered, tensors on CUDA can be made and used.

    Attributes:
        waits: How often the host waited for the device, by the function of the package that made it wait. It waits when
            numbers go from one to the other, or when a shape follows from numbers on the device.
        reached: The functions of the package that used a CUDA tensor, or called one that did.
    """

    def __init__(self) -> None:
        super().__init__()
        self.waits: Counter[str] = Counter()
        self.reached: set[str] = set()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # It would only make each call slower.

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func.namespace == "prim":  # The device of a tensor.
            self.reached.update(_callers())
            return args[0].fake_device
        kwargs = kwargs or {}
        given = [*_leaves(args), *_leaves(tuple(kwargs.values()))]
        if not any(isinstance(each, FakeTensor) or _is_cuda(each) for each in given):
            with unset_fake_temporarily():
                found = func(*args, **kwargs)
            if func._schema.name == "aten::_to_copy" and found.is_meta:
                raise RuntimeError("the device was lost: write cuda:0, for nothing here knows what cuda alone means")
            return found
        if func._can_decompose():  # In inference mode operations come as they were called.
            with self:
                return func.decompose(*args, **kwargs)
        _require_what_cuda_takes(func, args, given)
        places = _places_of_results(func, args, kwargs, given)
        with unset_fake_temporarily():
            numbers = func(
                *_changed(args, _numbers), **{name: _changed(each, _numbers) for name, each in kwargs.items()}
            )
            known = {id(each.real_tensor): each for each in given if isinstance(each, FakeTensor)}
            left = iter(places or ())

            def placed(found: Any) -> Any:
                if not isinstance(found, Tensor) or next(left, "cuda") == "cpu":
                    return found
                return known[id(found)] if id(found) in known else _on_cuda(found)

            result = _changed(numbers, placed)
        self._look(func, given, result, follows_from_numbers=places is None)
        return result

    def _look(self, func: Any, given: list[Any], result: Any, *, follows_from_numbers: bool) -> None:
        """Note who computed, and whether the host had to wait."""
        tensors = [each for each in (*given, *_leaves(result)) if isinstance(each, Tensor)]
        # A single number of the CPU goes along with the operation, unless it is to be copied.
        copies = func._schema.name in ("aten::_to_copy", "aten::copy_")
        on_host = any(not isinstance(each, FakeTensor) and (each.ndim or copies) for each in tensors)
        waits = follows_from_numbers or on_host or _puts_by_mask(func, given)
        names = _callers()
        self.reached.update(names)
        if waits and names:
            self.waits[names[0]] += 1


@contextmanager
def fake_cuda() -> Iterator[FakeCuda]:
    """Let everything inside take ``cuda`` for a device that is there; yield what was seen."""

    def picked(name: str) -> torch.device:
        return CUDA if name in ("auto", "cuda") else torch.device(name)

    with pytest.MonkeyPatch.context() as patch:
        # A generator of CUDA cannot be made here; that of the CPU gives other numbers.
        patch.setattr(FakeTensor, "data_ptr", _no_pointer)
        patch.setattr(FakeTensor, "tolist", lambda values: values.cpu().tolist())  # One copy, as CUDA does it.
        patch.setattr(FakeTensor, "__deepcopy__", lambda values, memo: memo.setdefault(id(values), values.clone()))
        patch.setattr(torch, "Generator", _Generator)
        own = [each for name, each in sys.modules.items() if name.startswith(PACKAGE) and each is not devices]
        for function in (devices.pick_device, devices.device_of_loaded):
            for module in own:
                if vars(module).get(function.__name__) is function:
                    patch.setattr(module, function.__name__, picked)
        with _device_guard(), FAKE, FakeCuda() as seen:
            yield seen


@contextmanager
def _device_guard() -> Iterator[None]:
    """Let PyTorch switch to CUDA, by doing nothing: a build without CUDA has no function for it, and so no indexing.

    That of tensors without numbers, which PyTorch calls meta, does nothing, too.
    """
    guards = (ctypes.c_void_p * (META_TYPE + 1)).in_dll(C10, "_ZN3c104impl26device_guard_impl_registryE")
    before = guards[CUDA_TYPE]
    guards[CUDA_TYPE] = before or guards[META_TYPE]
    try:
        yield
    finally:
        guards[CUDA_TYPE] = before


@contextmanager
def as_a_gpu_draws() -> Iterator[None]:
    """Let the CPU compute what is to be compared with `fake_cuda`.

    It draws as a GPU does, by PyTorch's generator, and takes no kernel of its own, whose sums have another order.
    """

    def seeded(draws: Draws, seed: int, *, device: torch.device | str = "cpu") -> None:
        draws._device, draws._on_cpu = torch.device(device), False
        draws._torch = torch.Generator(device).manual_seed(seed % 2**64)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(randomness, "_random_bits", randomness._bits_of_torch)
        patch.setattr(Draws, "__init__", seeded)
        patch.setattr(compiled_steps, "library", lambda: None)
        patch.setattr(kernel, "library", lambda: None)
        yield


def on_cuda(values: Tensor) -> Tensor:
    """Return a copy of a tensor of the CPU on CUDA."""
    return values.to(CUDA, copy=True)


def numbers_of(value: Any) -> Any:
    """Return what was computed, on the CPU, whatever holds it."""
    return tree_map_only(FakeTensor, lambda each: each.real_tensor, value)


def _no_pointer(values: Tensor) -> int:
    raise RuntimeError("memory of CUDA was given to a function of the CPU")


class _Generator(torch.Generator):
    def __new__(cls, device: torch.device | str = "cpu") -> torch.Generator:  # type: ignore[misc]
        return super().__new__(_Generator.__mro__[1])


def _callers() -> list[str]:
    """Return the functions of the package that are running, the innermost first."""
    names, frame = [], sys._getframe(2)
    while frame is not None:
        if name := _name_in_package(frame.f_code, frame.f_globals.get("__name__", "")):
            names.append(name)
        frame = frame.f_back
    return names


@cache
def _name_in_package(code: CodeType, module: str) -> str | None:
    """Return the name of a function of the package; None for others."""
    if not code.co_filename.startswith(SOURCE):
        return None
    return f"{module.partition('.')[2]}:{code.co_qualname.partition('.<')[0]}"


PLACES: dict[Hashable, list[str] | None] = {}
"""What PyTorch's fake tensors said before, by operation, types and devices."""


def _places_of_results(func: Any, args: Any, kwargs: Any, given: list[Any]) -> list[str] | None:
    """Return on which devices an operation's results lie; None if its shapes, or itself, follow from numbers."""
    asked = func, *kwargs, *(_kind(each) for each in given)
    if asked not in PLACES:
        try:
            with FAKE:
                found = func(*args, **kwargs)
            PLACES[asked] = [each.device.type for each in _leaves(found) if isinstance(each, Tensor)]
        except (DataDependentOutputException, DynamicOutputShapeException):
            PLACES[asked] = None
    return PLACES[asked]


def _leaves(value: Any) -> Iterator[Any]:
    """Yield what a value consists of, as operations take and return it."""
    if isinstance(value, list | tuple):
        for each in value:
            yield from _leaves(each)
    else:
        yield value


def _changed(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a value with its parts changed."""
    if isinstance(value, list | tuple):
        return type(value)([_changed(each, change) for each in value])
    return change(value)


def _kind(value: Any) -> Hashable:
    if isinstance(value, Tensor):
        return isinstance(value, FakeTensor), value.dtype, value.ndim == 0
    return value if isinstance(value, torch.device | torch.dtype) else type(value)


def _is_cuda(value: object) -> bool:
    return isinstance(value, torch.device) and value.type == "cuda"


def _numbers(value: Any) -> Any:
    if isinstance(value, FakeTensor):
        return value.real_tensor
    return torch.device("cpu") if _is_cuda(value) else value


def _on_cuda(numbers: Tensor) -> Tensor:
    with torch.inference_mode(numbers.is_inference()):
        like = torch.empty_strided(numbers.shape, numbers.stride(), dtype=numbers.dtype, device="meta")
        fake = FakeTensor(FAKE, like, CUDA)
    fake.real_tensor = numbers
    return fake


def _require_what_cuda_takes(func: Any, args: tuple[Any, ...], given: list[Any]) -> None:
    """Refuse what PyTorch's fake tensors let pass, or give up before they look at."""
    tensors = [each for each in given if isinstance(each, Tensor) and each.ndim]
    follows_from_numbers = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape} & {*func.tags}
    if func._schema.name.startswith("aten::index") and isinstance(args[1], list | tuple):
        # Places on the CPU go along; those on CUDA are for tensors there.
        mixed = any(isinstance(each, FakeTensor) for each in args[1]) and not isinstance(args[0], FakeTensor)
    else:
        mixed = bool(follows_from_numbers) and len({each.device for each in tensors}) > 1
    if mixed:
        raise RuntimeError(f"{func} takes no tensors of two devices")


def _puts_by_mask(func: Any, given: list[Any]) -> bool:
    """Return whether several numbers are put where a mask says: it is counted first."""
    if not func._schema.name.startswith("aten::index_put"):
        return False
    *places, values = [each for each in given if isinstance(each, Tensor)][1:]
    return values.numel() > 1 and any(each.dtype == torch.bool for each in places)
