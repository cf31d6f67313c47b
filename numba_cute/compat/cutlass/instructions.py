# SPDX-License-Identifier: Apache-2.0
"""Functions of single instructions, and a base of operations, that have other names here."""

from __future__ import annotations

from typing import Any

from ... import arch
from ...dtypes import Int64
from ...nvgpu.ampere.warp_mma import WarpMma as WarpMmaOp
from ...nvgpu.common.smem_descriptor import SmemDescriptor
from ...seam import CuteError, traced
from ...seam.ground.naming import shown

__all__ = ["WarpMmaOp", "atomicAdd", "smem_descriptor_to_int"]


@traced
def atomicAdd(dst_ptr: Any, val: Any, *, loc: Any = None, ip: Any = None) -> Any:  # noqa: N802 - the CuTe DSL's name
    """Add a number to what a pointer points to, as `cute.arch.atomic_add(dst_ptr, val)`; gives what was there. PTX
    atom.add, sm_70."""
    return arch.atomic_add(dst_ptr, val)


@traced
def smem_descriptor_to_int(desc: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """Give the 64 bits of a matrix descriptor (Int64). desc: of `tcgen05.make_umma_smem_desc`. CuteError: it is
    none."""
    if not isinstance(desc, SmemDescriptor):
        raise CuteError(
            f"smem_descriptor_to_int: desc {shown(desc)} is not a descriptor; make_umma_smem_desc makes one"
        )
    return Int64(desc.word())
