# SPDX-License-Identifier: Apache-2.0
"""PTX as text, for an instruction that this library does not have."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from .. import seam
from ..dtypes import DType, Float32, Float64, Int32, Int64, Uint16
from ..isa.form.kinds import Kind, f32, f64, s32, u16, u32, u64
from ..isa.form.text import text_row
from ..seam import CuteError, traced
from ..seam.ground.naming import described, is_unicode, shown
from ..tensor.ssa import TensorSSA, bitcast

__all__ = ["inline_ptx"]

_KINDS = {16: u16, 32: u32, 64: u64}


@traced
def inline_ptx(
    ptx: str, *, write_only_types: Sequence[DType] = (), read_only_args: Sequence[Any] = (),
    meaning: Callable[..., Any] | None = None,
) -> Any:  # fmt: skip
    """Put PTX into the kernel as it stands, once for each thread that calls, for the targets that the text itself
    needs. Gives what it writes: nothing, a number, or a tuple of numbers.

    ptx: the text, static. `{$w0}`, `{$w1}`, … stand for what it writes and `{$r0}`, `{$r1}`, … for what it reads; or
    `$0`, `$1`, … for both, those that are written first. write_only_types: the element types of what it writes, of 16,
    32 or 64 bits. read_only_args: the numbers that it reads; an int of Python's is an Int32, or an Int64 where it must
    be. meaning: what the text does, for the simulator, which knows no PTX: a function that is given the numbers that
    are read and returns those that are written. The text stays where it stands among accesses to memory, also where
    nothing uses what it writes.

    CuteError: a type that has no register, a place of the text without an operand, an operand that is not in the text;
    in the simulator also a text without a meaning, and a meaning that returns another number of values.

    >>> text = "add.s32 {$w0}, {$r0}, {$r1};"
    >>> def kernel():
    ...     args = {"write_only_types": (cute.Int32,), "read_only_args": (2, 3)}
    ...     print(arch.inline_ptx(text, meaning=lambda a, b: a + b, **args))
    >>> cute.simulate(kernel)[1, 1]()
    5
    """
    if not isinstance(ptx, str) or not ptx.strip() or "\0" in ptx or not is_unicode(ptx):
        raise CuteError(f"inline_ptx: ptx {described(ptx)}: give a static text, of one instruction or more")
    if meaning is not None and not callable(meaning):
        raise CuteError(f"inline_ptx: meaning {described(meaning)}: give a function")
    types = [_written(t) for t in _several("write_only_types", write_only_types)]
    read = [_typed(x) for x in _several("read_only_args", read_only_args)]
    row = text_row(ptx, tuple(map(_kind, types)), tuple(_kind(t) for t, _ in read))

    def compiled() -> tuple[Any, ...]:
        words = seam.current().issue(row, {}, {f"r{i}": _word(x, t) for i, (t, x) in enumerate(read)})
        words = words if isinstance(words, tuple) else (words,) * len(types)
        return tuple(bitcast(w, Uint16, t) if _is_half(t) else t(w) for w, t in zip(words, types))

    def simulated() -> tuple[Any, ...]:
        if meaning is None:
            raise CuteError(
                f"inline_ptx: the simulator knows no PTX: say what {ptx!r} does, meaning=a function that is given "
                f"the {len(read)} numbers that it reads and returns the {len(types)} that it writes"
            )
        try:
            inspect.signature(meaning).bind(*(x for _, x in read))
        except TypeError as e:
            raise CuteError(f"inline_ptx: meaning is given the {len(read)} numbers that are read: {e}") from None
        except ValueError:  # of a builtin, whose parameters are not known
            pass
        gave = meaning(*(x for _, x in read))
        values = () if gave is None else gave if isinstance(gave, tuple) else (gave,)
        if len(values) != len(types):
            raise CuteError(f"inline_ptx: meaning returns {len(values)} numbers, but the text writes {len(types)}")
        return tuple(t(x) for t, x in zip(types, values))

    made = seam.current().either(compiled, simulated)
    return None if not made else made[0] if len(made) == 1 else made


def _several(name: str, values: Any) -> tuple[Any, ...]:
    if not isinstance(values, (tuple, list)):
        raise CuteError(f"inline_ptx: {name} {described(values)}: give several, in brackets")
    return tuple(values)


def _written(dtype: Any) -> DType:
    if not isinstance(dtype, DType) or dtype.width not in _KINDS:
        raise CuteError(f"inline_ptx: write_only_types has {shown(dtype)}: registers have element types of {_WIDTHS}")
    return dtype


def _typed(x: Any) -> tuple[DType, Any]:
    """Return the type of a number that is read, and the number as one of it."""
    if type(x) is int and not -(1 << 63) <= x < 1 << 63:
        raise CuteError(f"inline_ptx: read_only_args has {shown(x)}: registers hold numbers of {_WIDTHS}")
    if type(x) is int and not -(1 << 31) <= x < 1 << 31:
        dtype = Int64
    elif isinstance(x, (bool, TensorSSA)) or not isinstance(x, (int, float, seam.Leaf)):
        raise CuteError(f"inline_ptx: read_only_args has {described(x)}: registers hold numbers of {_WIDTHS}")
    else:
        dtype = seam.current().type_of(x)
    if dtype.width not in _KINDS:
        raise CuteError(f"inline_ptx: read_only_args has {shown(x)} of {dtype}: registers hold numbers of {_WIDTHS}")
    return dtype, x if isinstance(x, seam.Leaf) else dtype(x)


_WIDTHS = "16, 32 or 64 bits, so convert it, as cute.Uint32(x)"


def _is_half(dtype: DType) -> bool:
    return dtype.is_float and dtype.width == 16


def _kind(dtype: DType) -> Kind:
    if dtype == Float32:
        return f32
    return f64 if dtype == Float64 else s32 if dtype == Int32 else _KINDS[dtype.width]


def _word(x: Any, dtype: DType) -> Any:
    """Return a number as the instruction's register has it."""
    return bitcast(x, dtype, Uint16) if _is_half(dtype) else x
