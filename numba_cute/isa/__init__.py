# SPDX-License-Identifier: Apache-2.0
"""The instruction table. Every row is an attribute of this package, called to issue it: `isa.mbarrier_init(bar, 1)`."""

from typing import TYPE_CHECKING

from .form.instr import TABLE, Instr, supports
from .rows import (  # noqa: F401 - importing a family declares its rows
    approx,
    atomic,
    bitwise,
    bulk,
    cache,
    clc,
    clock,
    cluster,
    control,
    convert,
    copy_async,
    fence,
    invariant,
    matrix,
    mbarrier,
    memory,
    mma,
    mma_sparse,
    multimem,
    packed,
    registers,
    scalar,
    special,
    spin,
    sync,
    tcgen05,
    tcgen05_copy,
    tcgen05_mma,
    tcgen05_mma_scaled,
    tcgen05_mma_ws,
    tensormap_update,
    tma,
    wgmma,
    wgmma_sparse,
    widen,
)

__all__ = ["TABLE", "Instr", "supports"]

if TYPE_CHECKING:

    def __getattr__(name: str) -> Instr: ...


globals().update(TABLE)
