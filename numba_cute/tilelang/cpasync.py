# SPDX-License-Identifier: Apache-2.0
"""Asynchronous copies and mbarriers as tilelang.contrib.cutedsl.cpasync has them: one instruction each, issued by every
thread that calls (nothing elects a lane), on raw pointers whose alignment is the caller's affair.

tma_desc: a TMA atom (`nvgpu.cpasync.make_tiled_tma_atom`), a Pointer to a tensor map in memory, or a Tensor that begins
with one. dst, src, smem_ptr: Pointers or Tensors. Signatures are those of TileLang (MIT).
"""

from __future__ import annotations

from typing import Any

from .. import arch, isa, seam
from ..atoms.copy_atom import CopyAtom
from ..dtypes import Int32, Uint16, Uint32, Uint64
from ..isa.facts.tensormap_bits import BYTES as BYTES_PER_TENSORMAP
from ..layout import ComposedLayout
from ..nvgpu.common import LoadCacheMode
from ..nvgpu.common.checks import plain_layout
from ..nvgpu.hopper.tma_form import check_raw
from ..seam import CuteError, traced
from ..seam.guards.messages import how_static
from ..tensor.pointer import AddressSpace, Pointer, check_writable, physical, shared_address
from ..tensor.swizzled import by_address
from ..tensor.tensor import Tensor

__all__ = [
    "BYTES_PER_POINTER",
    "BYTES_PER_TENSORMAP",
    "arrive_and_expect_tx",
    "cp_async_commit",
    "cp_async_gs",
    "cp_async_gs_conditional",
    "cp_async_shared_global",
    "cp_async_wait",
    "extract_tensormap_ptr",
    "fence_barrier_init",
    "fence_proxy_async",
    "mbarrier_arrive",
    "mbarrier_cp_async_arrive",
    "mbarrier_cp_async_arrive_noinc",
    "mbarrier_expect_tx",
    "mbarrier_init",
    "mbarrier_wait",
    "prefetch_tma_descriptor",
    "tma_load",
    "tma_reduce",
    "tma_store",
    "tma_store_arrive",
    "tma_store_wait",
]

BYTES_PER_POINTER = 8
_GLOBAL = (AddressSpace.gmem, AddressSpace.generic)


# ---------------------------------------------------------------- cp.async


def _pointer(x: Any, what: str, name: str, *spaces: AddressSpace) -> Pointer:
    """The pointer in `x`, a Pointer or a Tensor of one of these memories."""
    p, lay = by_address(x.iterator, x.layout) if isinstance(x, Tensor) else (x, None)
    if isinstance(lay, ComposedLayout):
        plain_layout(x, f"{what}: {name}")
    if not isinstance(p, Pointer) or p.space not in spaces:
        where = " or ".join(dict.fromkeys(s.name for s in spaces))
        raise CuteError(f"{what}: {name} {x!r} must be a Pointer to, or a Tensor in, {where} memory")
    return p


@traced
def cp_async_shared_global(dst: Any, src: Any, cp_size: int, modifier: LoadCacheMode, *, src_size: Any = None) -> None:
    """Copy `cp_size` (4, 8 or 16) bytes from `src` in global to `dst` in shared memory, asynchronously. Each thread.

    modifier: LoadCacheMode.ALWAYS, or GLOBAL (16 bytes). src_size: copy that many bytes, and zeros for the others. PTX
    cp.async, sm_80.

    >>> from numba_cute.tilelang import cpasync as tl
    >>> x = cute.runtime.from_dlpack(np.arange(4, dtype=np.float32), assumed_align=16)
    >>> def kernel(x):
    ...     s = cute.make_tensor(arch.alloc_smem(cute.Float32, 4, alignment=16), cute.make_layout(4))
    ...     tl.cp_async_shared_global(s.iterator, x.iterator, 16, nvgpu.LoadCacheMode.GLOBAL, src_size=8)
    ...     tl.cp_async_commit()
    ...     tl.cp_async_wait(0)
    ...     print(s[1], s[3])
    >>> cute.simulate(kernel)[1, 1](x)
    1.0 0.0
    """
    what = "cp_async_shared_global"
    to, at = _pointer(dst, what, "dst", AddressSpace.smem), _pointer(src, what, "src", *_GLOBAL)
    if modifier not in (LoadCacheMode.ALWAYS, LoadCacheMode.GLOBAL):
        raise CuteError(f"{what}: modifier {modifier!r} must be LoadCacheMode.ALWAYS or LoadCacheMode.GLOBAL")
    legal = (16,) if modifier is LoadCacheMode.GLOBAL else (4, 8, 16)
    if cp_size not in legal:
        raise CuteError(f"{what}: cp_size {cp_size!r} must be {' or '.join(map(str, legal))} for {modifier!r}")
    statics = {"nbytes": cp_size, "cache": modifier.value, "prefetch": 0}
    isa.cp_async(physical(to, cp_size), physical(at), None if src_size is None else Uint32(src_size), **statics)


def _gs_operands(args: tuple[Any, ...], src: Any, dst_offset: Any, src_offset: Any, what: str) -> tuple[Any, Any, Any]:
    """(dst_offset, src, src_offset) of `(src)`, or of `(dst_offset, src, src_offset)` as older versions pass them."""
    if len(args) == 3:
        dst_offset, src, src_offset = args
    elif len(args) == 1:
        (src,) = args
    elif args or src is None:
        raise CuteError(f"{what}: give (size, dst, src), or (size, dst, dst_offset, src, src_offset)")
    return dst_offset, src, src_offset


@traced
def cp_async_gs(
    size: int, dst: Any, *args: Any, src: Any = None, dst_offset: Any = 0, src_offset: Any = 0
) -> None:  # fmt: skip
    """Copy `size` (4, 8 or 16) bytes as `cp_async_shared_global` does, those of 16 past L1. Each thread.

    dst, src: Pointers or Tensors. dst_offset, src_offset: elements to move them by. args: `src` alone, or (dst_offset,
    src, src_offset), as older versions pass them. PTX cp.async, sm_80.

    >>> from numba_cute.tilelang import cpasync as tl
    >>> x = cute.runtime.from_dlpack(np.arange(4, dtype=np.float32), assumed_align=16)
    >>> def kernel(x):
    ...     s = cute.make_tensor(arch.alloc_smem(cute.Float32, 4, alignment=16), cute.make_layout(4))
    ...     tl.cp_async_gs(16, s.iterator, x.iterator)
    ...     tl.cp_async_commit()
    ...     tl.cp_async_wait(0)
    ...     print(s[3])
    >>> cute.simulate(kernel)[1, 1](x)
    3.0
    """
    what = "cp_async_gs"
    dst_offset, src, src_offset = _gs_operands(args, src, dst_offset, src_offset, what)
    if size not in (4, 8, 16):
        raise CuteError(f"{what}: size {size!r} must be static: 4, 8 or 16 bytes{how_static(size)}")
    to, at = _pointer(dst, what, "dst", AddressSpace.smem), _pointer(src, what, "src", *_GLOBAL)
    mode = LoadCacheMode.GLOBAL if size == 16 else LoadCacheMode.ALWAYS
    cp_async_shared_global(to + dst_offset, at + src_offset, size, mode)


@traced
def cp_async_gs_conditional(
    size: int, dst: Any, *args: Any, src: Any = None, cond: Any = None, dst_offset: Any = 0, src_offset: Any = 0
) -> None:
    """Copy as `cp_async_gs(size, dst, *args)` does where `cond`, the last argument, holds; elsewhere shared memory
    keeps what it has. src, dst_offset, src_offset: as for `cp_async_gs`. PTX cp.async, sm_80.

    >>> from numba_cute.tilelang import cpasync as tl
    >>> x = cute.runtime.from_dlpack(np.arange(4, dtype=np.float32), assumed_align=16)
    >>> def kernel(x):
    ...     s = cute.make_tensor(arch.alloc_smem(cute.Float32, 4, alignment=16), cute.make_layout(4))
    ...     s.fill(-1)
    ...     tl.cp_async_gs_conditional(8, s.iterator, x.iterator, True)
    ...     tl.cp_async_gs_conditional(8, s.iterator + 2, x.iterator + 2, False)
    ...     tl.cp_async_commit()
    ...     tl.cp_async_wait(0)
    ...     print(s[1], s[3])
    >>> cute.simulate(kernel)[1, 1](x)
    1.0 -1.0
    """
    if cond is None:
        if not args:
            raise CuteError("cp_async_gs_conditional: cond is missing: give (size, dst, src, cond)")
        *args, cond = args  # type: ignore[assignment]
    rest = _gs_operands(tuple(args), src, dst_offset, src_offset, "cp_async_gs_conditional")
    seam.current().when(cond, lambda: cp_async_gs(size, dst, *rest))


@traced
def cp_async_commit() -> None:
    """Close the group of all cp.async that this thread issued since the last one. PTX cp.async.commit_group, sm_80.

    See the example of `cp_async_gs`.
    """
    arch.cp_async_commit_group()


@traced
def cp_async_wait(n: int) -> None:
    """Wait until at most the `n` latest groups of cp.async of this thread are incomplete. PTX cp.async.wait_group,
    sm_80.

    See the example of `cp_async_gs`.
    """
    arch.cp_async_wait_group(n)


# ---------------------------------------------------------------- TMA


@traced
def extract_tensormap_ptr(tma_atom: CopyAtom) -> Pointer:
    """Return the address of the tensor map of `tma_atom`, a TMA atom, as a Pointer to Uint64, aligned to 64 bytes.

    >>> from numba_cute.tilelang import cpasync as tl
    >>> x = cute.runtime.from_dlpack(np.arange(64, dtype=np.float32).reshape(8, 8), assumed_align=16)
    >>> box = cute.make_layout((2, 4), stride=(4, 1))
    >>> atom, _ = nvgpu.cpasync.make_tiled_tma_atom(nvgpu.cpasync.CopyBulkTensorTileG2SOp(), x, box, (2, 4))
    >>> def kernel(atom, x):
    ...     print(tl.extract_tensormap_ptr(atom))
    >>> cute.simulate(kernel)[1, 1](atom, x)
    ptr<Uint64, generic, align 64>
    """
    if not isinstance(tma_atom, CopyAtom) or tma_atom.tensor_map is None:
        raise CuteError(f"extract_tensormap_ptr: tma_atom {tma_atom!r} is not a TMA atom")
    return Pointer(Uint64, AddressSpace.generic, Uint64(tma_atom.tensor_map), 0, 64)


def _tensor_map(tma_desc: Any, what: str) -> Any:
    if isinstance(tma_desc, CopyAtom):
        return extract_tensormap_ptr(tma_desc).address
    return _pointer(tma_desc, what, "tma_desc", *_GLOBAL).address


def _shared(ptr: Any, what: str, tma_desc: Any = None) -> Any:
    """The address of `smem_ptr`, which must be as the atom `tma_desc` was made for, if that is one."""
    p = _pointer(ptr, what, "smem_ptr", AddressSpace.smem)
    check_raw(tma_desc, ptr, p, what)
    return p.address


def _coordinates(crd: Any, what: str) -> tuple[Any, ...]:
    crd = crd if isinstance(crd, tuple) else (crd,)
    if not 1 <= len(crd) <= 5:
        raise CuteError(f"{what}: crd {crd} has {len(crd)} coordinates; a tensor map has 1 to 5, innermost first")
    return tuple(Int32(c) for c in crd)


def _mode(tma_desc: Any, at: tuple[Any, ...]) -> dict[str, Any]:
    """Return the mode in which coordinates name the data to copy: a box, or, with an atom of `make_gather4_tma_atom`,
    four rows."""
    mode = tma_desc.op.mode if isinstance(tma_desc, CopyAtom) else "tile"  # type: ignore[attr-defined]
    return {"rank": len(at) if mode == "tile" else 2, "mode": mode}


@traced
def tma_load(
    tma_desc: Any, mbar: Any, smem_ptr: Any, crd: Any, use_2cta: bool = False, im2col_offsets: Any = None
) -> None:  # fmt: skip
    """Load the box at coordinates `crd` (innermost first) to `smem_ptr`, then complete its bytes on `mbar`, which
    expects them. One thread.

    tma_desc: the tensor map, as for the module; of an atom of `make_gather4_tma_atom`, `crd` is the first column and
    four rows. use_2cta: `mbar` may be in the other block of the pair (sm_100).
    im2col_offsets: of a tensor map of im2col mode. `tma_load(smem_ptr, gmem_ptr, mbar, nbytes)` copies consecutive
    bytes without a tensor map. PTX cp.async.bulk.tensor, cp.async.bulk, sm_90.

    >>> from numba_cute.tilelang import cpasync as tl
    >>> x = cute.runtime.from_dlpack(np.arange(64, dtype=np.float32).reshape(8, 8), assumed_align=16)
    >>> box = cute.make_layout((2, 4), stride=(4, 1))
    >>> atom, _ = nvgpu.cpasync.make_tiled_tma_atom(nvgpu.cpasync.CopyBulkTensorTileG2SOp(), x, box, (2, 4))
    >>> def kernel(atom, x):
    ...     s = cute.make_tensor(arch.alloc_smem(cute.Float32, 8, alignment=128), box)
    ...     bar = arch.alloc_smem(cute.Uint64, 1)
    ...     tl.mbarrier_init(bar, 1)
    ...     tl.fence_barrier_init()
    ...     tl.arrive_and_expect_tx(bar, 32)
    ...     tl.tma_load(atom, bar, s.iterator, (4, 2))
    ...     tl.mbarrier_wait(bar, 0)
    ...     print(s[0, 0])
    >>> cute.simulate(kernel)[1, 1](atom, x)
    20.0
    """
    what = "tma_load"
    if isinstance(tma_desc, Pointer) and tma_desc.space is AddressSpace.smem:
        source = _pointer(mbar, what, "gmem_ptr", *_GLOBAL)
        isa.cp_async_bulk_g2s(tma_desc.address, source.address, Uint32(crd), shared_address(smem_ptr, what))
        return
    at = _coordinates(crd, what)
    operands: dict[str, Any] = {
        "dst": _shared(smem_ptr, what, tma_desc), "map": _tensor_map(tma_desc, what), "at": at,
        "bar": shared_address(mbar, what),
    }  # fmt: skip
    if im2col_offsets is not None:
        operands["offsets"] = tuple(Uint16(x) for x in im2col_offsets)
    how = _mode(tma_desc, at) if im2col_offsets is None else {"rank": len(at), "mode": "im2col"}
    isa.cp_async_bulk_tensor_g2s(**operands, **how, pair=bool(use_2cta))


@traced
def tma_store(tma_desc: Any, smem_ptr: Any, crd: Any) -> None:
    """Store `smem_ptr` to the box at coordinates `crd` (innermost first) of the tensor map `tma_desc`, or to the four
    rows of an atom of `make_gather4_tma_atom`, as of `tma_load`. One thread, after the writers' `fence_proxy_async` and
    a barrier; `tma_store_arrive` follows.

    `tma_store(gmem_ptr, smem_ptr, nbytes)` copies consecutive bytes without a tensor map. PTX cp.async.bulk.tensor,
    cp.async.bulk, sm_90.

    >>> from numba_cute.tilelang import cpasync as tl
    >>> x = cute.runtime.from_dlpack(np.arange(64, dtype=np.float32).reshape(8, 8), assumed_align=16)
    >>> box = cute.make_layout((2, 4), stride=(4, 1))
    >>> atom, _ = nvgpu.cpasync.make_tiled_tma_atom(nvgpu.cpasync.CopyBulkTensorTileS2GOp(), x, box, (2, 4))
    >>> def kernel(atom, x):
    ...     s = cute.make_tensor(arch.alloc_smem(cute.Float32, 8, alignment=128), box)
    ...     s.fill(-1)
    ...     tl.fence_proxy_async()
    ...     tl.tma_store(atom, s.iterator, (4, 2))
    ...     tl.tma_store_arrive()
    ...     tl.tma_store_wait(0)
    ...     print(x[2, 4], x[4, 2])
    >>> cute.simulate(kernel)[1, 1](atom, x)
    -1.0 34.0
    """
    what = "tma_store"
    if isinstance(tma_desc, Pointer) and not isinstance(crd, tuple):
        to = _pointer(tma_desc, what, "gmem_ptr", *_GLOBAL)
        check_writable(to, what)
        isa.cp_async_bulk_s2g(to.address, _shared(smem_ptr, what), Uint32(crd))
        return
    at = _coordinates(crd, what)
    source = _shared(smem_ptr, what, tma_desc)
    isa.cp_async_bulk_tensor_s2g(map=_tensor_map(tma_desc, what), at=at, src=source, **_mode(tma_desc, at))


@traced
def tma_reduce(tma_desc: Any, smem_ptr: Any, crd: Any) -> None:
    """Add `smem_ptr` to the box at coordinates `crd` (innermost first) of the tensor map `tma_desc`, atomically for
    each element. One thread, as for `tma_store`. PTX cp.reduce.async.bulk.tensor, sm_90.

    >>> from numba_cute.tilelang import cpasync as tl
    >>> x = cute.runtime.from_dlpack(np.arange(64, dtype=np.float32).reshape(8, 8), assumed_align=16)
    >>> box = cute.make_layout((2, 4), stride=(4, 1))
    >>> atom, _ = nvgpu.cpasync.make_tiled_tma_atom(nvgpu.cpasync.CopyReduceBulkTensorTileS2GOp(), x, box, (2, 4))
    >>> def kernel(atom, x):
    ...     s = cute.make_tensor(arch.alloc_smem(cute.Float32, 8, alignment=128), box)
    ...     s.fill(100)
    ...     tl.fence_proxy_async()
    ...     tl.tma_reduce(atom, s.iterator, (4, 2))
    ...     tl.tma_store_arrive()
    ...     tl.tma_store_wait(0)
    ...     print(x[2, 4], x[4, 2])
    >>> cute.simulate(kernel)[1, 1](atom, x)
    120.0 34.0
    """
    what = "tma_reduce"
    at, source = _coordinates(crd, what), _shared(smem_ptr, what, tma_desc)
    isa.cp_reduce_async_bulk_tensor_s2g(
        map=_tensor_map(tma_desc, what), at=at, src=source, rank=len(at), op="add"
    )  # fmt: skip


@traced
def tma_store_arrive() -> None:
    """Close the group of all stores that this thread issued since the last one. PTX cp.async.bulk.commit_group,
    sm_90.

    >>> from numba_cute.tilelang import cpasync as tl
    >>> x = cute.runtime.from_dlpack(np.arange(4, dtype=np.float32), assumed_align=16)
    >>> def kernel(x):
    ...     s = cute.make_tensor(arch.alloc_smem(cute.Float32, 4, alignment=16), cute.make_layout(4))
    ...     s.fill(1)
    ...     tl.fence_proxy_async()
    ...     tl.tma_store(x.iterator, s.iterator, 16)
    ...     tl.tma_store_arrive()
    ...     tl.tma_store_wait(0)
    ...     print(x[3])
    >>> cute.simulate(kernel)[1, 1](x)
    1.0
    """
    arch.cp_async_bulk_commit_group()


@traced
def tma_store_wait(count: int, *, read: bool | None = None) -> None:
    """Wait until at most the `count` latest groups of this thread are incomplete; with `read`, until only those have
    still to read their sources. PTX cp.async.bulk.wait_group, sm_90.

    See the example of `tma_store_arrive`.
    """
    arch.cp_async_bulk_wait_group(count, read=bool(read))


@traced
def prefetch_tma_descriptor(tma_desc: Any) -> None:
    """Fetch the tensor map `tma_desc` ahead of its first use. One thread. PTX prefetch.tensormap, sm_90.

    >>> from numba_cute.tilelang import cpasync as tl
    >>> x = cute.runtime.from_dlpack(np.arange(64, dtype=np.float32).reshape(8, 8), assumed_align=16)
    >>> box = cute.make_layout((2, 4), stride=(4, 1))
    >>> atom, _ = nvgpu.cpasync.make_tiled_tma_atom(nvgpu.cpasync.CopyBulkTensorTileG2SOp(), x, box, (2, 4))
    >>> def kernel(atom, x):
    ...     tl.prefetch_tma_descriptor(atom)
    >>> cute.simulate(kernel)[1, 1](atom, x)
    """
    isa.prefetch_tensormap(_tensor_map(tma_desc, "prefetch_tma_descriptor"))


# ---------------------------------------------------------------- mbarriers and fences


@traced
def mbarrier_init(mbar_ptr: Any, arrive_count: Any) -> None:
    """Initialise the barrier at `mbar_ptr`, whose phases complete after `arrive_count` arrivals. One thread. PTX
    mbarrier.init, sm_80.

    >>> from numba_cute.tilelang import cpasync as tl
    >>> def kernel():
    ...     bar = arch.alloc_smem(cute.Uint64, 1)
    ...     if arch.thread_idx()[0] == 0:
    ...         tl.mbarrier_init(bar, 32)
    ...         tl.fence_barrier_init()
    ...     arch.sync_threads()
    ...     tl.mbarrier_arrive(bar)
    ...     tl.mbarrier_wait(bar, 0)
    >>> cute.simulate(kernel)[1, 32]()
    """
    arch.mbarrier_init(mbar_ptr, arrive_count)


@traced
def mbarrier_expect_tx(mbar_ptr: Any, tx_count: Any) -> None:
    """Add `tx_count` bytes to what the phase of `mbar_ptr` waits for. One thread. PTX mbarrier.expect_tx, sm_90.

    >>> from numba_cute.tilelang import cpasync as tl
    >>> x = cute.runtime.from_dlpack(np.arange(4, dtype=np.float32), assumed_align=16)
    >>> def kernel(x):
    ...     s = cute.make_tensor(arch.alloc_smem(cute.Float32, 4, alignment=16), cute.make_layout(4))
    ...     bar = arch.alloc_smem(cute.Uint64, 1)
    ...     tl.mbarrier_init(bar, 1)
    ...     tl.fence_barrier_init()
    ...     tl.mbarrier_expect_tx(bar, 16)
    ...     tl.tma_load(s.iterator, x.iterator, bar, 16)
    ...     tl.mbarrier_arrive(bar)
    ...     tl.mbarrier_wait(bar, 0)
    ...     print(s[3])
    >>> cute.simulate(kernel)[1, 1](x)
    3.0
    """
    arch.mbarrier_expect_tx(mbar_ptr, tx_count)


@traced
def arrive_and_expect_tx(mbar_ptr: Any, tx_count: Any, cta_id: Any = None, pred: Any = None) -> None:
    """Add `tx_count` bytes to what the phase of `mbar_ptr` waits for, then arrive once, here or in block `cta_id` of
    the cluster. pred: a condition; where it is given and false, nothing happens. One thread. PTX
    mbarrier.arrive.expect_tx, sm_90.

    >>> from numba_cute.tilelang import cpasync as tl
    >>> x = cute.runtime.from_dlpack(np.arange(4, dtype=np.float32), assumed_align=16)
    >>> def kernel(x):
    ...     s = cute.make_tensor(arch.alloc_smem(cute.Float32, 4, alignment=16), cute.make_layout(4))
    ...     bar = arch.alloc_smem(cute.Uint64, 1)
    ...     tl.mbarrier_init(bar, 1)
    ...     tl.fence_barrier_init()
    ...     tl.arrive_and_expect_tx(bar, 16)
    ...     tl.tma_load(s.iterator, x.iterator, bar, 16)
    ...     tl.mbarrier_wait(bar, 0)
    ...     print(s[3])
    >>> cute.simulate(kernel)[1, 1](x)
    3.0
    """
    if pred is None:
        arch.mbarrier_arrive_and_expect_tx(mbar_ptr, tx_count, cta_id)
    else:
        seam.current().when(pred, lambda: arch.mbarrier_arrive_and_expect_tx(mbar_ptr, tx_count, cta_id))


@traced
def mbarrier_arrive(mbar_ptr: Any, cta_id: Any = None) -> None:
    """Arrive once at `mbar_ptr`, here or in block `cta_id` of the cluster. Any thread. PTX mbarrier.arrive, sm_80;
    sm_90 with `cta_id`.

    See the example of `mbarrier_init`.
    """
    arch.mbarrier_arrive(mbar_ptr, cta_id)


@traced
def mbarrier_wait(mbar_ptr: Any, phase: Any, timeout_ns: int = 10000000) -> None:
    """Wait until the phase of parity `phase` of `mbar_ptr` has completed, however long that takes. timeout_ns:
    accepted; the hardware decides the time between two looks. Any thread. PTX mbarrier.try_wait, sm_90.

    See the example of `mbarrier_init`.
    """
    arch.mbarrier_wait(mbar_ptr, phase)


@traced
def mbarrier_cp_async_arrive(mbar_ptr: Any) -> None:
    """Keep the phase of `mbar_ptr` open until all cp.async that this thread issued so far are complete; the thread
    arrives too. Each thread. PTX cp.async.mbarrier.arrive, sm_80.

    >>> from numba_cute.tilelang import cpasync as tl
    >>> x = cute.runtime.from_dlpack(np.arange(4, dtype=np.float32), assumed_align=16)
    >>> def kernel(x):
    ...     s = cute.make_tensor(arch.alloc_smem(cute.Float32, 4, alignment=16), cute.make_layout(4))
    ...     bar = arch.alloc_smem(cute.Uint64, 1)
    ...     tl.mbarrier_init(bar, 1)
    ...     tl.fence_barrier_init()
    ...     tl.cp_async_gs(16, s.iterator, x.iterator)
    ...     tl.mbarrier_cp_async_arrive(bar)
    ...     tl.mbarrier_arrive(bar)
    ...     tl.mbarrier_wait(bar, 0)
    ...     print(s[3])
    >>> cute.simulate(kernel)[1, 1](x)
    3.0
    """
    isa.cp_async_mbarrier_arrive(shared_address(mbar_ptr, "mbarrier_cp_async_arrive"))


@traced
def mbarrier_cp_async_arrive_noinc(mbar_ptr: Any) -> None:
    """Arrive once at `mbar_ptr` when all cp.async that this thread issued so far are complete. Each thread. PTX
    cp.async.mbarrier.arrive.noinc, sm_80.

    >>> from numba_cute.tilelang import cpasync as tl
    >>> x = cute.runtime.from_dlpack(np.arange(4, dtype=np.float32), assumed_align=16)
    >>> def kernel(x):
    ...     s = cute.make_tensor(arch.alloc_smem(cute.Float32, 4, alignment=16), cute.make_layout(4))
    ...     bar = arch.alloc_smem(cute.Uint64, 1)
    ...     tl.mbarrier_init(bar, 1)
    ...     tl.fence_barrier_init()
    ...     tl.cp_async_gs(16, s.iterator, x.iterator)
    ...     tl.mbarrier_cp_async_arrive_noinc(bar)
    ...     tl.mbarrier_wait(bar, 0)
    ...     print(s[3])
    >>> cute.simulate(kernel)[1, 1](x)
    3.0
    """
    arch.cp_async_mbarrier_arrive_noinc(mbar_ptr)


@traced
def fence_proxy_async() -> None:
    """Order this thread's accesses of shared memory before later ones of TMA. PTX fence.proxy.async.shared::cta,
    sm_90.

    See the example of `tma_store_arrive`.
    """
    arch.fence_proxy("async.shared", space="cta")


@traced
def fence_barrier_init() -> None:
    """Make this thread's barrier initialisations visible to the cluster and to TMA. PTX fence.mbarrier_init, sm_90.

    >>> from numba_cute.tilelang import cpasync as tl
    >>> x = cute.runtime.from_dlpack(np.arange(4, dtype=np.float32), assumed_align=16)
    >>> def kernel(x):
    ...     s = cute.make_tensor(arch.alloc_smem(cute.Float32, 4, alignment=16), cute.make_layout(4))
    ...     bar = arch.alloc_smem(cute.Uint64, 1)
    ...     tl.mbarrier_init(bar, 1)
    ...     tl.fence_barrier_init()
    ...     tl.mbarrier_arrive(bar)
    ...     tl.mbarrier_wait(bar, 0)
    ...     print(x[3])
    >>> cute.simulate(kernel)[1, 1](x)
    3.0
    """
    arch.mbarrier_init_fence()
