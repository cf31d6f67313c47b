# SPDX-License-Identifier: Apache-2.0
"""Changing tensor maps in a kernel: copy one to memory, change its tensor, release it, acquire it, use it.

In global memory: `copy_tensormap`, `update_tma_descriptor`, `fence_tma_desc_release` by one thread, then
`fence_tma_desc_acquire` by the warp that copies with it. Through shared memory: the map is copied and updated there,
and `cp_fence_tma_desc_release` by the whole warp brings it to global memory. Then
`cute.copy(…, tma_desc_ptr=pointer)`. Maps in memory take 128 bytes, at multiples of 128.
"""

from __future__ import annotations

from typing import Any

from ... import isa, layout, seam
from ...atoms.copy_atom import CopyAtom
from ...dtypes import Int64, Uint32, Uint64
from ...isa.facts.tensormap_bits import BYTES
from ...layout import Layout
from ...seam import CuteError, known_as, traced
from ...seam.guards.messages import how_static
from ...tensor.pointer import AddressSpace, Pointer, check_writable
from ...tensor.tensor import Tensor
from .new_map import NewTensorMap
from .tma_ops import TmaCopyOp

__all__ = [
    "copy_tensormap", "cp_fence_tma_desc_release", "fence_tma_desc_acquire", "fence_tma_desc_release",
    "update_tma_descriptor",
]  # fmt: skip

_GLOBAL = (AddressSpace.gmem, AddressSpace.generic)


def _operation(atom: Any, what: str) -> TmaCopyOp:
    """The operation of a TMA atom."""
    if not isinstance(atom, CopyAtom) or atom.tensor_map is None or not isinstance(atom.op, TmaCopyOp):
        raise CuteError(f"{what}: tma_atom {atom!r} is not a TMA atom; make it with cpasync.make_tiled_tma_atom")
    return atom.op


def _place(ptr: Any, what: str, name: str, *spaces: AddressSpace) -> Any:
    """The address that a pointer to a tensor map holds."""
    if not isinstance(ptr, Pointer) or ptr.space not in spaces:
        where = " or ".join(dict.fromkeys(s.name for s in spaces))
        raise CuteError(f"{what}: {name} {ptr!r} must be a Pointer to {where} memory")
    if ptr.alignment % BYTES:
        raise CuteError(
            f"{what}: {name} {ptr!r} must be aligned to {BYTES} bytes; allocate it so, and say it with assumed_align "
            "or byte_alignment"
        )
    return ptr.address


@traced
@known_as("cute_nvgpu.cpasync")
def copy_tensormap(tma_atom: CopyAtom, tensormap_ptr: Pointer) -> None:
    """Copy the tensor map of `tma_atom` to `tensormap_ptr`, 128 bytes of global or shared memory, aligned to as many.
    One thread, or several to places of their own; before the map is used from there it is released and acquired. That
    of an atom which the kernel made (`make_tiled_tma_atom`) is written there field by field. Raises CuteError for other
    atoms and pointers. PTX ld and st, 8 of 16 bytes each, any target; of the latter tensormap.replace, sm_90a, and
    sm_100f and later families.

    >>> from numba_cute.nvgpu import cpasync
    >>> x, y = [cute.runtime.from_dlpack(np.full((2, 4), i, np.float32), assumed_align=16) for i in (1, 2)]
    >>> box = cute.make_layout((2, 4), stride=(4, 1))
    >>> atom, coords = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), x, box, (2, 4))
    >>> raw = np.zeros(256, np.uint8)
    >>> at = -raw.ctypes.data % 128
    >>> maps = cute.runtime.from_dlpack(raw[at : at + 128], assumed_align=128)
    >>> def kernel(atom, coords, y, maps):
    ...     bar = arch.alloc_smem(cute.Int64, 1)
    ...     s = cute.make_tensor(arch.alloc_smem(cute.Float32, 8, alignment=128), box)
    ...     with arch.elect_one():
    ...         cpasync.copy_tensormap(atom, maps.iterator)
    ...         cpasync.update_tma_descriptor(atom, y, maps.iterator)
    ...         cpasync.fence_tma_desc_release()
    ...         arch.mbarrier_init(bar, 1)
    ...         arch.mbarrier_init_fence()
    ...         arch.mbarrier_arrive_and_expect_tx(bar, 32)
    ...     arch.sync_warp()
    ...     cpasync.fence_tma_desc_acquire(maps.iterator)
    ...     to, source = cute.group_modes(s, 0, 2), cute.group_modes(coords, 0, 2)
    ...     cute.copy(atom, source, to, tma_bar_ptr=bar, tma_desc_ptr=maps.iterator)
    ...     arch.mbarrier_wait(bar, 0)
    ...     if arch.lane_idx() == 0:
    ...         print(s[0, 0])
    >>> cute.simulate(kernel)[1, 32](atom, coords, y, maps)
    2.0
    """
    _operation(tma_atom, "copy_tensormap")
    to = _place(tensormap_ptr, "copy_tensormap", "tensormap_ptr", AddressSpace.smem, *_GLOBAL)
    check_writable(tensormap_ptr, "copy_tensormap: tensormap_ptr")
    if isinstance(tma_atom.tensor_map, NewTensorMap):
        tma_atom.tensor_map.write("smem" if tensormap_ptr.space is AddressSpace.smem else "gmem", to)
        return
    b = seam.current()
    words = seam.Regs(b.registers(Uint32, 4), Uint32, 0, 4)
    for at in range(0, BYTES, 16):
        b.copy_to_regs("generic", tma_atom.tensor_map + at, words, 16)
        b.copy_from_regs(words, tensormap_ptr.space.name, to + at, 16)


@traced
@known_as("cute_nvgpu.cpasync")
def update_tma_descriptor(tma_atom: CopyAtom, gmem_tensor: Tensor, tma_desc_ptr: Pointer) -> None:
    """Give the tensor map at `tma_desc_ptr` (global or shared memory) the address, shape and strides of `gmem_tensor`;
    all else stays as it is. One thread.

    tma_atom: the atom whose map was copied there: gmem_tensor has the modes of the tensor it was made for, the same
    element type, and the same mode of stride 1 (of a stride that is known only at run time the simulator says whether
    it is). Raises CuteError for other tensors, and for im2col and interleaved atoms. PTX tensormap.replace, sm_90a, and
    sm_100f and later families.

    See the example of `copy_tensormap`.
    """
    what = "update_tma_descriptor"
    op = _operation(tma_atom, what)
    address = _place(tma_desc_ptr, what, "tma_desc_ptr", AddressSpace.smem, *_GLOBAL)
    check_writable(tma_desc_ptr, f"{what}: tma_desc_ptr")
    space = "smem" if tma_desc_ptr.space is AddressSpace.smem else "gmem"
    shape, stride = _modes(tma_atom, gmem_tensor, what)
    source = gmem_tensor.iterator
    if op.writes:
        check_writable(source, f"{what}: gmem_tensor of {type(op).__name__}")
    width = source.dtype.width
    if op.recast > 1:
        shape[0] = shape[0] // op.recast
    isa.tensormap_replace(address, Uint64(source.address), space=space, field="global_address")
    for i, n in enumerate(shape):
        isa.tensormap_replace(address, Uint32(n), space=space, field="global_dim", ord=i)
    for i, d in enumerate(stride[1:]):
        isa.tensormap_replace(address, _in_bytes(d, width), space=space, field="global_stride", ord=i)


def _in_bytes(stride: Any, width: int) -> Any:
    """A stride of elements of `width` bits; those below a byte make whole bytes."""
    return Uint64(Int64(stride) * (width // 8) if width >= 8 else Int64(stride) * width // 8)


def _modes(atom: CopyAtom, t: Any, what: str) -> tuple[list[Any], list[Any]]:
    """The tensor's extents and strides in the order of the map's dimensions."""
    order = atom.tma_modes
    ok = isinstance(t, Tensor) and isinstance(t.iterator, Pointer) and isinstance(t.layout, Layout)
    if not ok or t.iterator.space not in _GLOBAL:
        raise CuteError(f"{what}: gmem_tensor {t!r} must be a tensor in global memory")
    if t.iterator.dtype != atom.value_type and t.iterator.dtype.width >= 8:
        raise CuteError(f"{what}: gmem_tensor has {t.iterator.dtype} elements, but the atom copies {atom.value_type}")
    shape = layout.flatten_to_tuple(t.shape)
    stride = layout.flatten_to_tuple(t.stride)
    if order is None:
        raise CuteError(
            f"{what}: tma_atom {atom!r} is of an im2col or interleaved map, which takes no other tensor; make another "
            "atom on the host"
        )
    dims_of = [of if isinstance(of, tuple) else (of,) for of in order]
    if max(max(of) for of in dims_of) >= len(shape):
        raise CuteError(
            f"{what}: gmem_tensor {t.layout} does not have the modes of the tensor that the atom was made for"
        )
    _check_contiguous(stride[dims_of[0][0]], dims_of[0][0], t, what)
    dims = [_dimension([(shape[i], stride[i]) for i in of], what) for of in dims_of]
    return [n for n, _ in dims], [d for _, d in dims]


def _check_contiguous(stride: Any, mode: int, t: Tensor, what: str) -> None:
    """Raise a CuteError if the mode that is contiguous in the map is not so in the tensor: where it is static, and in
    the simulator; the map has no place for that stride."""

    def refuse(d: Any) -> None:
        if d != 1:
            raise CuteError(
                f"{what}: gmem_tensor {t.layout} must have the stride 1 in mode {mode}, as the tensor that the atom "
                f"was made for; it has {d} there"
            )

    if type(stride) is int:
        refuse(stride)
    else:
        seam.current().either(lambda: None, lambda: refuse(stride))


def _dimension(modes: list[tuple[Any, Any]], what: str) -> tuple[Any, Any]:
    """The extent and stride of modes that share a dimension, whose strides are multiples of the first one's."""
    (extent, unit), *more = modes
    for n, d in more:
        if type(unit) is not int or type(d) is not int or d % unit:
            raise CuteError(
                f"{what}: strides {unit} and {d} of modes that share a dimension of TMA must be static, and the latter "
                "a multiple of the former"
                f"{how_static(d)}"
            )
        extent = extent + (n - 1) * (d // unit)
    return extent, unit


@traced
@known_as("cute_nvgpu.cpasync")
def fence_tma_desc_acquire(tma_desc_ptr: Pointer) -> None:
    """Let this thread's later copies see the tensor map at `tma_desc_ptr` (global memory) as it is now. Before its
    first use, and after each change. Every thread that copies with it. Raises CuteError for other pointers. PTX
    fence.proxy.tensormap acquire, sm_90.

    See the example of `copy_tensormap`.
    """
    isa.fence_proxy_tensormap_acquire(
        Uint64(_place(tma_desc_ptr, "fence_tma_desc_acquire", "tma_desc_ptr", *_GLOBAL)), scope="gpu"
    )


@traced
@known_as("cute_nvgpu.cpasync")
def fence_tma_desc_release() -> None:
    """Release this thread's changes of tensor maps in global memory to those that acquire them. PTX
    fence.proxy.tensormap release, sm_90.

    See the example of `copy_tensormap`.
    """
    isa.fence_proxy_tensormap_release(scope="gpu")


@traced
@known_as("cute_nvgpu.cpasync")
def cp_fence_tma_desc_release(tma_desc_global_ptr: Pointer, tma_desc_shared_ptr: Pointer) -> None:
    """Copy the tensor map at `tma_desc_shared_ptr` (shared memory) to `tma_desc_global_ptr` (global memory), both
    aligned to 128 bytes, and release it to those that acquire it. A whole converged warp. Raises CuteError for other
    pointers. PTX tensormap.cp_fenceproxy, sm_90.

    >>> from numba_cute.nvgpu import cpasync
    >>> x = cute.runtime.from_dlpack(np.zeros((2, 4), np.float32), assumed_align=16)
    >>> box = cute.make_layout((2, 4), stride=(4, 1))
    >>> atom, _ = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), x, box, (2, 4))
    >>> raw = np.zeros(256, np.uint8)
    >>> at = -raw.ctypes.data % 128
    >>> def kernel(atom, maps):
    ...     staged = arch.alloc_smem(cute.Uint8, 128, alignment=128)
    ...     with arch.elect_one():
    ...         cpasync.copy_tensormap(atom, staged)
    ...     arch.sync_warp()
    ...     cpasync.cp_fence_tma_desc_release(maps.iterator, staged)
    >>> cute.simulate(kernel)[1, 32](atom, cute.runtime.from_dlpack(raw[at : at + 128], assumed_align=128))
    >>> bool(raw.any())
    True
    """
    what = "cp_fence_tma_desc_release"
    to = _place(tma_desc_global_ptr, what, "tma_desc_global_ptr", *_GLOBAL)
    check_writable(tma_desc_global_ptr, f"{what}: tma_desc_global_ptr")
    source = _place(tma_desc_shared_ptr, what, "tma_desc_shared_ptr", AddressSpace.smem)
    isa.tensormap_cp_fenceproxy(Uint64(to), source, scope="gpu")
