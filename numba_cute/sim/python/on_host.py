# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of `cute.jit` functions that the host calls: on the CPU, at once. Leaves are `dtypes.Scalar`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import seam
from ...dtypes import DType, Int32, Scalar
from ...isa.form.instr import THREAD, Instr
from ...seam import CuteError, Regs
from ...seam.ground.naming import shown
from ..hardware.collective import issue_alone, span
from ..hardware.machine import Machine
from .arithmetic.number import CLASSES, Number, elements, leaf_type
from .host_memory import HostMemory
from .values import CASTABLE, Values, as_number, printed


def _needs_threads(what: str) -> CuteError:
    return CuteError(
        f"{what}: a @cute.jit function that the host calls runs on the CPU, where there are no threads, blocks or "
        "shared memory: call it in a @cute.kernel, which the function launches"
    )


class _Absent:
    """A placeholder for the thread of a host function, which has none of a thread's parts."""

    def __init__(self, what: str) -> None:
        self.what = what

    def __getattr__(self, name: str) -> Any:
        raise _needs_threads(self.what)


class _OneThread:
    """As much of a run as an instruction of numbers alone looks at."""

    def __init__(self, what: str) -> None:
        absent: Any = _Absent(what)
        self.thread: Any = type("Thread", (), {"cta": type("Cta", (), {"rank": 0, "cluster": absent})(), "index": 0})()
        self.memory = self.watch = absent


def _number(x: Any) -> Any:
    """A scalar as the simulator's arithmetic has it."""
    if not isinstance(x, Scalar):
        return x
    held = leaf_type(x.dtype)
    value = x.value if held is x.dtype else as_number(x.value, held)
    return CLASSES[held].make(value, *((x.divisor,) if held.is_integer else ()))


def _scalar(x: Any) -> Any:
    """A number of the simulator's arithmetic as the host has it."""
    return Scalar(x.dtype, x.value, x.divisor if x.dtype.is_integer else 1) if isinstance(x, Number) else x


class HostBackend(Values):
    """Answers the code of host functions. trial: what is stored and printed is for nobody."""

    def __init__(self, trial: bool = False) -> None:
        self.trial = trial
        self.memory = HostMemory(trial)

    def __getattr__(self, name: str) -> Any:
        if name not in {*dir(seam.Backend), *seam.Backend.__annotations__} or name.startswith("_"):
            raise AttributeError(name)
        raise _needs_threads(_WORDS.get(name, name))

    # instructions
    def issue(self, instr: Instr, statics: dict[str, Any], operands: dict[str, Any]) -> Any:
        """Compute what an instruction makes of numbers alone; CuteError of any other."""
        if instr.issuer != THREAD or not instr.pure:
            raise _needs_threads(f"the instruction {instr.name}")
        given = {n: _number(x) for n, x in operands.items()}
        made = issue_alone(_OneThread(f"the instruction {instr.name}"), instr, statics, given)
        return tuple(map(_scalar, made)) if isinstance(made, tuple) else _scalar(made)

    def _machine(self) -> Machine:
        run = _OneThread("this operation")
        return Machine(run, None, [run.thread])

    # memory
    def load(self, dtype: DType, space: str, address: Any, count: int, align: int) -> tuple[Any, ...]:
        raw = self._read(space, address, count * dtype.bytes)
        held = leaf_type(dtype)
        return tuple(Scalar(held, x) for x in elements(raw.view(dtype.numpy)))

    def store(self, dtype: DType, space: str, address: Any, values: Sequence[Any], align: int) -> None:
        data = np.array([as_number(v, dtype) for v in values], dtype.numpy)
        self._write(space, address, data.view(np.uint8))

    def _read(self, space: str, address: Any, nbytes: int) -> Any:
        _check_space(space)
        return self.memory.read(address, nbytes)

    def _write(self, space: str, address: Any, data: Any) -> None:
        _check_space(space)
        self.memory.write(address, data)

    def view(self, address: Any, nbytes: int, writes: bool) -> Any:
        """Return the bytes at an address in an array, to be read or written; None of memory that a number names."""
        return self.memory.view(address, nbytes, writes)

    def swizzled(self, swizzle: Any, address: Any, width: int) -> Any:
        """Give the address's own kind, which knows its array."""
        return address + (int(swizzle(int(address))) - int(address))

    def part_by_swizzle(self, swizzle: Any, addresses: Any, width: int) -> None:
        """Do nothing: nothing is watched here."""

    def reinterprets(self, address: Any, width: int, other: int) -> None:
        """Do nothing: nothing is watched here."""

    def copy_to_regs(self, space: str, address: Any, dst: Regs, align: int) -> None:
        part = span(dst)
        part.view(np.uint8)[...] = self._read(space, address, part.nbytes)

    def copy_from_regs(self, src: Regs, space: str, address: Any, align: int) -> None:
        self._write(space, address, span(src).view(np.uint8))

    # registers
    def registers(self, dtype: DType, count: int) -> Any:
        nbytes = count * np.dtype(dtype.numpy).itemsize
        return np.full(nbytes, 0xFF, np.uint8).view(dtype.numpy)

    def _registers(self, regs: Regs, verb: str) -> Any:
        return span(regs)

    def read(self, regs: Regs) -> Any:
        return _scalar(super().read(regs))

    def lane(self, vector: Any, index: int) -> Any:
        return _scalar(super().lane(vector, index))

    def elementwise(self, op: Any, dtype: DType, *operands: Any) -> Any:
        with np.errstate(all="ignore"):
            return _scalar(super().elementwise(op, dtype, *map(_number, operands)))

    # scalars
    def cast(self, value: Any, dtype: DType) -> Any:
        if not isinstance(value, CASTABLE):
            raise CuteError(f"{dtype}({shown(value)}): only numbers convert to an element type")
        return dtype(value)

    def select(self, cond: Any, a: Any, b: Any) -> Any:
        return _scalar(super().select(*map(_number, (cond, a, b))))

    def compare(self, op: str, a: Any, b: Any) -> Any:
        return _scalar(super().compare(op, _number(a), _number(b)))

    def loop(self, start: Any, stop: Any, body: Callable[[Any], None]) -> None:
        for i in range(int(start), int(stop)):
            body(Scalar(Int32, i))

    # words
    def loses(self, why: Callable[[], str | None]) -> None:
        """Do nothing: nothing is compiled here."""

    def gave(self, fn: Any, result: Any) -> None:
        """Do nothing: Python drops what it wants."""

    def tells(self) -> bool:
        return not self.trial

    def printf(self, fmt: str, args: Sequence[Any]) -> None:
        if not self.trial:
            print(printed(fmt, args), end="")


def _check_space(space: str) -> None:
    if space not in ("gmem", "generic"):
        raise _needs_threads(f"an access of memory in {space}")


_WORDS = {
    "static_smem": "shared memory", "smem_base": "shared memory", "smem_needs": "shared memory",
    "allocate_smem": "shared memory", "allocates_smem": "shared memory", "known_launch": "the launch",
    "flag": "a carry", "at_exit": "the kernel's end", "arch": "the target", "tensor_map": "a tensor map",
    "told": "an event", "timeline": "an event",
}  # fmt: skip
"""The subject of each request of `seam.Backend`, in words."""
