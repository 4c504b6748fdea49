"""Fresh randomness for one run of learning or one edit.

Exact unlearning is a statement about the distribution of a state. A seed must not be kept, because a seed reveals more
than the state. `Draws.fresh` gets its seed from the operating system and does not store it. Experiments get their seed
from an address (`Draws.at`), so that a run can be repeated.

On the CPU, the bits come from AES-128 in counter mode, with all bits of the seed as its key. So other numbers cannot be
predicted from those that a state stores. (The seed of PyTorch's own CPU generator has only 32 bits, so all seeds can be
tried.) On a GPU, the bits come from PyTorch's Philox generator, with a key of 64 bits. Numbers in [0, 1) have 53 random
bits, and statements about distributions hold up to that resolution.
"""

import math
import secrets
from typing import Self

import numpy as np
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from torch import Tensor

from certified_unlearning.engine.addresses import address
from certified_unlearning.errors import ParameterError

SEED_BITS = 128


class Draws:
    """A stream of random tensors on one device. Tests replace it with a stream that returns given numbers."""

    def __init__(self, seed: int, *, device: torch.device | str = "cpu") -> None:
        """Start the stream with a seed.

        Args:
            seed: Seed; on a CPU, its lowest 128 bits are used, and on a GPU, its lowest 64 bits.
            device: Device of the tensors.
        """
        self._device = torch.device(device)
        self._on_cpu = self._device.type == "cpu"
        if self._on_cpu:
            key = (seed % 2**SEED_BITS).to_bytes(SEED_BITS // 8, "little")
            self._cipher = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
        else:
            self._torch = torch.Generator(self._device).manual_seed(seed % 2**64)

    @classmethod
    def at(cls, *parts: str | int | float, device: torch.device | str = "cpu") -> Self:
        """Return the stream of an address; the same address gives the same numbers on the same kind of device."""
        return cls(address(*parts), device=device)

    @classmethod
    def fresh(cls, *, device: torch.device | str = "cpu") -> Self:
        """Return a stream that cannot be repeated."""
        return cls(secrets.randbits(SEED_BITS), device=device)

    @property
    def device(self) -> torch.device:
        """Device of the tensors."""
        return self._device

    def normal(self, *shape: int) -> Tensor:
        """Return independent standard normal numbers, float64."""
        if self._on_cpu:
            count = math.prod(shape)
            # This is Box and Muller's method, with two independent numbers, from (0, 1] and [0, 1).
            radius, angle = self.uniform(2, -(-count // 2))
            radius = (1 - radius).log_().mul_(-2).sqrt_()
            angle = angle.mul_(2 * math.pi)
            return torch.cat([radius * angle.cos(), radius * angle.sin()])[:count].view(shape)
        return torch.randn(shape, generator=self._torch, dtype=torch.float64, device=self._device)

    def uniform(self, *shape: int) -> Tensor:
        """Return independent uniform numbers from [0, 1), float64."""
        if self._on_cpu:
            bits = np.frombuffer(self._cipher.update(bytes(8 * math.prod(shape))), dtype="<u8")
            return torch.from_numpy((bits >> 11) * 2.0**-53).view(shape)
        return torch.rand(shape, generator=self._torch, dtype=torch.float64, device=self._device)

    def integers(self, below: int, *shape: int) -> Tensor:
        """Return independent int64 numbers, uniform from 0 to ``below - 1``.

        On a CPU, each number is computed from 53 random bits, so the distribution is uniform only up to this
        resolution.
        """
        if self._on_cpu:
            return (self.uniform(*shape) * below).long()
        return torch.randint(below, shape, generator=self._torch, device=self._device)

    def orders(self, members: Tensor, trials: int) -> Tensor:
        """Return independent uniform orders.

        Args:
            members: Members to order, shape ``(n,)``.
            trials: Number of orders.

        Returns:
            The orders, shape ``(trials, n)``.
        """
        return members[self.uniform(trials, len(members)).argsort(dim=1)]

    def subsets(self, members: Tensor, size: int, *shape: int) -> Tensor:
        """Return independent uniform subsets, without replacement.

        Args:
            members: Members to choose from, shape ``(n,)``, all different.
            size: Number of members of a subset, at most ``n``.
            shape: Shape of the array of subsets.

        Returns:
            The members of each subset, shape ``(*shape, size)``. Their order is meaningless.

        Raises:
            ParameterError: There are fewer members than a subset needs.
        """
        n = len(members)
        if not 0 <= size <= n:
            raise ParameterError(f"the size of a subset of {n} members must be from 0 to {n}, got {size}")
        chosen = torch.empty(*shape, size, dtype=torch.int64, device=self._device)
        # Floyd's algorithm: a random number up to the top joins the subset; if it is a member already, the top itself
        # joins.
        for number in range(size):
            top = n - size + number
            drawn = self.integers(top + 1, *shape)
            taken = (chosen[..., :number] == drawn[..., None]).any(dim=-1)
            chosen[..., number] = drawn.masked_fill_(taken, top)
        return members[chosen]
