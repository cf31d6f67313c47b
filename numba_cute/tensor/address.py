# SPDX-License-Identifier: Apache-2.0
"""Addresses of arrays, as tensors and pointers of the host hold them."""

from __future__ import annotations

import copy
import math
from typing import Any

from ..dtypes import Int64, Scalar
from ..seam import CuteError
from ..seam.hooks.driver import DRIVER
from .dlpack import gpu_of, inspect_array, on_host


class Address(Scalar):
    """An address in global memory. It keeps the array alive whose memory that is, and so does what is computed from it.

    owner: the object in which `dlpack.inspect_array` found it; None if it was given as a number. memory: the addresses
    where that array begins and ends, whatever is made of it; None if that is not known.
    """

    __slots__ = ("memory", "owner")
    memory: tuple[int, int] | None
    owner: Any

    def __init__(self, value: int, owner: Any = None, divisor: int = 1, memory: tuple[int, int] | None = None) -> None:
        super().__init__(Int64, value, divisor)
        _set_owner(self, owner)
        _set_memory(self, memory)

    def __deepcopy__(self, memo: Any) -> Address:
        """Return the address in a copy of the array."""
        if self.owner is None:
            return self
        held = self.owner[0] if isinstance(self.owner, tuple) else self.owner
        before, after = inspect_array(held), inspect_array(copy.deepcopy(held, memo))
        if (before.dtype, before.shape, before.strides) != (after.dtype, after.shape, after.strides):
            raise CuteError(
                f"copy.deepcopy of {self._whose()}: its copy has strides {after.strides}, and not {before.strides}: "
                "copy the array yourself, and make a tensor of that"
            )
        moved = after.address - before.address
        ends = None if self.memory is None else (self.memory[0] + moved, self.memory[1] + moved)
        return Address(self.value + moved, after.owner, self.divisor, ends)

    def __reduce__(self) -> Any:
        if self.owner is not None:
            raise CuteError(f"{self._whose()} cannot be pickled: its address is this process's own; pickle the array")
        return Address, (self.value, None, self.divisor, self.memory)

    def __add__(self, o: Any) -> Any:
        return self._moved(super().__add__(o))

    __radd__ = __add__

    def __sub__(self, o: Any) -> Any:
        return self._moved(super().__sub__(o))

    def plus(self, nbytes: int) -> Address:
        """Return the address so many bytes on, as `+` does, at once."""
        new = object.__new__(Address)
        Scalar.__init__(new, Int64, self.value + nbytes, math.gcd(self.divisor, nbytes) or 1)
        _set_owner(new, self.owner)
        _set_memory(new, self.memory)
        return new

    def within(self, address: int, nbytes: int) -> tuple[int, int]:
        """Return the first address, and how many bytes, of what of these bytes is the array's: a tile of it may reach
        past its end."""
        if self.memory is None:
            return address, nbytes
        first, end = max(address, self.memory[0]), min(address + nbytes, self.memory[1])
        return first, max(0, end - first)

    def reached(self, nbytes: int) -> tuple[int, int] | None:
        """Return where the array begins and ends, of whose memory a host function accesses so many bytes from here on;
        None if the address was given as a number. CuteError: they are not all the array's, or lie on a GPU."""
        if self._on_gpu():
            raise CuteError(
                f"{self._whose()} lies on a GPU, where a @cute.jit function that the host calls cannot read or write "
                "it: do that in a kernel which it launches, or pass a copy of the CPU (x.cpu())"
            )
        if not self.value or self.owner is None and self.memory is not None:
            raise CuteError("a tensor without memory is read or written: it only stands for a tensor at compile time")
        if self.memory is None:
            return None
        first, end = self.memory
        if not first <= self.value <= self.value + nbytes <= end:
            raise CuteError(
                f"out of bounds: {nbytes} bytes at {self.value:#x} are read or written, and the memory of "
                f"{self._whose()} begins at {first:#x} and ends at {end:#x}: keep coordinates within its shape"
            )
        return self.memory

    def _moved(self, found: Any) -> Any:
        return Address(found.value, self.owner, found.divisor, self.memory) if isinstance(found, Scalar) else found

    def assumed(self, divisor: int) -> Scalar:
        super().assumed(divisor)
        return Address(self.value, self.owner, math.lcm(self.divisor, divisor), self.memory)

    def checked(self, simulated: bool = False) -> Any:
        """Return the address, for a kernel that is launched: an error if the memory is not where the kernel runs."""
        if simulated and self._on_gpu():
            raise CuteError(
                f"{self._whose()} lies on a GPU, and the simulator runs on the host: pass a copy (copy_to_host(), "
                "torch's x.cpu())"
            )
        if not simulated and self._on_host():
            raise CuteError(
                f"{self._whose()} lies in the host's memory, which a GPU cannot read: copy it there "
                "(cuda.to_device(x), torch's x.cuda()) and make the tensor of the copy, or of managed or pinned memory"
            )
        return super().checked(simulated)

    def captured(self, simulated: bool = False) -> Any:
        """Return the address as a constant of a kernel: an error if it is not one of memory of the GPU."""
        if self._on_host():
            raise CuteError(
                f"{self._whose()} lies in the host's memory, and is captured as a global or closure variable: its "
                "address would be a constant of the kernel, which a GPU cannot read; pass the tensor as an argument"
            )
        return self.checked(simulated) if simulated else self.value

    def _on_gpu(self) -> bool:
        return of_gpu(self)

    def _on_host(self) -> bool:
        """Return whether the memory is the host's, neither pinned nor managed. Of a mere number only the driver knows
        it."""
        if not self.value or self._on_gpu():
            return False
        known = DRIVER.known(self.value)
        return known is False if self.owner is None else known is not True

    def _whose(self) -> str:
        if self.owner is None:
            return f"what a pointer to {self.value:#x} points at"
        held = self.owner[0] if isinstance(self.owner, tuple) else self.owner
        return f"a tensor of {type(held).__module__.split('.')[0]}'s {type(held).__name__}"


def of_gpu(address: object) -> bool:
    """Return whether what owns the memory of an address says that it lies on a GPU: False of a mere number."""
    return isinstance(address, Address) and address.owner is not None and not on_host(address.owner)


def place_of(address: object) -> tuple[type, int | None] | None:
    """Return the class of the array that owns the memory of an address, and the number of the GPU where that lies, None
    if the array does not say it; None for the host's memory, and a mere number."""
    if not isinstance(address, Address) or not of_gpu(address):
        return None
    held = address.owner[0] if isinstance(address.owner, tuple) else address.owner
    return type(held), gpu_of(held)


_set_owner, _set_memory = (vars(Address)[n].__set__ for n in ("owner", "memory"))
