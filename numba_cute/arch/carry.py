# SPDX-License-Identifier: Apache-2.0
"""Integers of several words: sums, differences and products whose carry the next call takes up. Any thread; sm_70.

There is one carry for each kernel or device function: `add_cc` sets it, `addc` adds and sets it again, so that a chain
is the calls in their order in one function, whatever stands between them. Words have 32 bits, or 64 with width=64.
"""

from __future__ import annotations

from typing import Any

from .. import isa, seam
from ..dtypes import Uint32, Uint64
from ..isa import Instr
from ..seam import CuteError, Int, traced

__all__ = ["add_cc", "addc", "mad_cc", "madc", "sub_cc", "subc"]


def _step(row: Instr, what: str, width: Any, words: tuple[Any, ...], takes: bool) -> Any:
    if width not in (32, 64):
        raise CuteError(f"{what}: width {width!r} must be 32 or 64, the bits of a word")
    b = seam.current()
    flag = b.flag()
    word = Uint32 if width == 32 else Uint64
    result, carry = row(*(word(x) for x in words), b.read(flag) if takes else Uint32(0), width=width)
    b.write(flag, carry)
    return result


@traced
def add_cc(a: Int, b: Int, width: int = 32) -> Any:
    """Compute `a` + `b` and set the carry. width: 32 (Uint32) or 64 (Uint64). PTX add.cc, sm_70.

    >>> cute.simulate(lambda: print(arch.add_cc(2**32 - 1, 1), arch.addc(0, 0)))[1, 1]()
    0 1
    """
    return _step(isa.add_carry, "add_cc", width, (a, b), False)


@traced
def addc(a: Int, b: Int, width: int = 32) -> Any:
    """Compute `a` + `b` + the carry and set the carry. width: 32 (Uint32) or 64 (Uint64). PTX addc.cc, sm_70.

    >>> cute.simulate(lambda: print(arch.add_cc(2**32 - 1, 1), arch.addc(0, 0)))[1, 1]()
    0 1
    """
    return _step(isa.add_carry, "addc", width, (a, b), True)


@traced
def sub_cc(a: Int, b: Int, width: int = 32) -> Any:
    """Compute `a` - `b` and set the carry to the borrow. width: 32 (Uint32) or 64 (Uint64). PTX sub.cc, sm_70.

    >>> cute.simulate(lambda: print(arch.sub_cc(0, 1), arch.subc(0, 0)))[1, 1]()
    4294967295 4294967295
    """
    return _step(isa.sub_borrow, "sub_cc", width, (a, b), False)


@traced
def subc(a: Int, b: Int, width: int = 32) -> Any:
    """Compute `a` - `b` - the borrow and set the carry to the borrow. width: 32 (Uint32) or 64 (Uint64). PTX subc.cc,
    sm_70.

    >>> cute.simulate(lambda: print(arch.sub_cc(0, 1), arch.subc(0, 0)))[1, 1]()
    4294967295 4294967295
    """
    return _step(isa.sub_borrow, "subc", width, (a, b), True)


@traced
def mad_cc(a: Int, b: Int, c: Int, width: int = 32) -> Any:
    """Compute the low word of `a` * `b`, plus `c`, and set the carry. width: 32 (Uint32) or 64 (Uint64). PTX mad.lo.cc,
    sm_70.

    >>> def kernel():
    ...     low = arch.mad_cc(0xFFFFFFFF, 1, 1)
    ...     print(low, arch.addc(0, 0))
    >>> cute.simulate(kernel)[1, 1]()
    0 1
    """
    return _step(isa.mad_carry, "mad_cc", width, (a, b, c), False)


@traced
def madc(a: Int, b: Int, c: Int, width: int = 32) -> Any:
    """Compute the low word of `a` * `b`, plus `c` and the carry, and set the carry. width: 32 (Uint32) or 64 (Uint64).
    PTX madc.lo.cc, sm_70.

    >>> def kernel():
    ...     arch.add_cc(0xFFFFFFFF, 1)
    ...     print(arch.madc(3, 4, 5))
    >>> cute.simulate(kernel)[1, 1]()
    18
    """
    return _step(isa.mad_carry, "madc", width, (a, b, c), True)
