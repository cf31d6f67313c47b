# SPDX-License-Identifier: Apache-2.0
"""Names of `cutlass.cute.arch` by which files of earlier releases call what is called otherwise now; texts of PTX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import arch
from ...arch import map_dsmem_ptr
from ...dtypes import DType, Int32
from ...seam import Int, frozen, traced
from ...tensor.pointer import Pointer
from ..ptx_text import meaning as meaning_of, numbered

__all__ = ["ProxyKind", "SharedSpace", "inline_ptx", "log2_of_pow2_int", "mapa"]


@frozen
class ProxyKind:
    """The kinds of proxies that `fence_proxy` takes: texts today."""

    alias = "alias"
    async_ = "async"
    async_global = "async.global"
    async_shared = "async.shared"


@frozen
class SharedSpace:
    """The parts of shared memory that `fence_proxy` takes: texts today."""

    shared_cta = "cta"
    shared_cluster = "cluster"


@traced
def inline_ptx(
    ptx: str, *, write_only_types: Sequence[DType] = (), read_only_args: Sequence[Any] = (),
    meaning: Callable[..., Any] | None = None, loc: Any = None, ip: Any = None,
) -> Any:  # fmt: skip
    """Call `numba_cute.arch.inline_ptx`; without a meaning the simulator does what the instructions of the text do.

    ptx, write_only_types, read_only_args, meaning: those of it. loc, ip: taken. CuteError: as there; in the simulator
    an instruction that it does not know.
    """
    if meaning is None and isinstance(ptx, str) and isinstance(write_only_types, (tuple, list)):
        meaning = meaning_of(numbered(ptx, len(write_only_types)), tuple(write_only_types))
    return arch.inline_ptx(ptx, write_only_types=write_only_types, read_only_args=read_only_args, meaning=meaning)


@traced
def log2_of_pow2_int(a: Int, *, loc: Any = None, ip: Any = None) -> Int32:
    """Give the exponent of a power of two (Int32). a: that number, of 32 bits. PTX bfind, sm_70."""
    return arch.bfind(a)


@traced
def mapa(ptr: Pointer, cta_rank_in_cluster: Int = 0, *, loc: Any = None, ip: Any = None) -> Pointer:
    """Call `map_dsmem_ptr(ptr, cta_rank_in_cluster)`: its older name. loc, ip: taken."""
    mapped: Pointer = map_dsmem_ptr(ptr, cta_rank_in_cluster)
    return mapped
