# SPDX-License-Identifier: Apache-2.0
"""Memory of every kind, by type and layout; copies by an atom that mind a tensor's bounds.

Names and parameters are those that NVIDIA documents of `cute.experimental`."""

from __future__ import annotations

from functools import partial
from typing import Any

from .. import layout
from ..arch.tmem import fence_view_async_tmem_load, fence_view_async_tmem_store
from ..atoms.copy import autovec_copy, copy as copy_by
from ..atoms.copy_atom import CopyAtom, ThrCopy, TiledCopy, check_covers
from ..atoms.mma_atom import check_whole_tiles
from ..dtypes import DType
from ..layout import Layout, Swizzle
from ..layout.pure import pure
from ..nvgpu.tcgen05 import get_s2t_smem_desc_tensor
from ..seam import CuteError, current, divisor, traced
from ..tensor.pointer import AddressSpace, Pointer
from ..tensor.storage import bytes_of, static_layout, swizzled_tensor
from ..tensor.tensor import Tensor, element, make_rmem_tensor, slice_tensor
from .shared import smem_bytes
from .tensor_memory import allocate_tmem
from .tensors import GlobalTensor

__all__ = ["allocate", "copy", "partition", "partition_and_copy", "simt_auto_vec_copy"]


@traced
def allocate(
    type: DType, address_space: AddressSpace, layout: Any, *, alignment: int = 16, is2cta: bool = False,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Allocate a tensor in shared memory, tensor memory or registers, its contents undefined. All threads, in the
    kernel itself.

    type: the elements. address_space: AddressSpace.smem, .tmem or .rmem. layout: static; for shared memory a swizzled
    one too, whose swizzle is here of the bytes of addresses, as TMA and matrix instructions have it. alignment: in
    bytes, a power of two of at most 1024, for shared memory. is2cta: the tensor memory is that of a pair of blocks,
    which both call. name: for the simulator's reports.

    Each call in a kernel gets shared memory of its own, and the launch is given the total; an SmemAllocator gives out
    the same memory, so a kernel uses one of them. Of several tensors in tensor memory the largest comes first; they are
    freed when the kernel ends, to which all threads of the block must come. Raises CuteError for other memories and
    layouts, in a device function, and where memory does not suffice. PTX tcgen05.alloc for tensor memory, sm_100f; any
    target else.

    >>> from numba_cute import experimental as ext
    >>> @ext.kernel
    ... def kernel(x):
    ...     s = ext.allocate(cute.Int32, cute.AddressSpace.smem, (4, 8), alignment=128)
    ...     s[arch.thread_idx()[0]] = arch.thread_idx()[0]
    ...     arch.sync_warp()
    ...     if arch.thread_idx()[0] == 0:
    ...         x[0] = s[1, 2]  # the first mode is contiguous
    >>> x = np.zeros(1, np.int32)
    >>> cute.simulate(kernel)[1, 32](x)
    >>> x
    array([9], dtype=int32)
    """
    what = "allocate"
    if not isinstance(type, DType):
        raise CuteError(f"{what}: type {type!r} is not an element type; use one like cute.Float32")
    if address_space is AddressSpace.rmem:
        return make_rmem_tensor(layout, type)
    if address_space is AddressSpace.tmem:
        return allocate_tmem(type, layout, is2cta)
    if address_space is not AddressSpace.smem:
        raise CuteError(
            f"{what}: address_space {address_space!r} must be AddressSpace.smem, .tmem or .rmem; global memory is the "
            "host's to allocate"
        )
    return _allocate_smem(type, layout, alignment, name)


def _allocate_smem(dtype: DType, lay: Any, alignment: int, name: str | None) -> Tensor:
    if not isinstance(alignment, int) or not 1 <= alignment <= 1024 or alignment & (alignment - 1):
        raise CuteError(f"allocate: alignment {alignment!r} must be a power of two of at most 1024")
    lay = static_layout(lay, "allocate")
    plain, swizzle = _of_addresses(lay)
    align = max(alignment, dtype.width // 8)
    nbytes = bytes_of(plain, dtype, swizzle)
    address, _ = smem_bytes(nbytes, align, name or "shared memory")
    return swizzled_tensor(Pointer(dtype, AddressSpace.smem, address, 0, align), plain, swizzle, "allocate")


def _of_addresses(lay: Any) -> tuple[Layout, Swizzle | None]:
    """The plain layout, and the swizzle of addresses, of a layout for TMA and matrix instructions."""
    if isinstance(lay, Layout):
        return lay, None
    plain, swizzle = lay.outer, lay.inner
    if isinstance(plain, Layout) and isinstance(swizzle, Swizzle) and type(lay.offset) is int and lay.offset == 0:
        if not swizzle.bits or swizzle.base >= 4:
            return plain, swizzle
    raise CuteError(
        f"allocate: layout {lay} must be one, or S o 0 o one, as make_smem_layout_a and its like give: its swizzle "
        "is of the bytes of addresses, and keeps 16 of them together; for one of elements take "
        "SmemAllocator.allocate_tensor"
    )


@traced
def partition(tensor: Tensor, index: Any, *, layout_tv: Layout, tiler: Any) -> Tensor:
    """Give the part of `tensor` that belongs to thread `index`: (values, rest…), the values of its part of a tile.

    tensor: of at least the modes of the tile. index: the thread, counted from 0. layout_tv: from (thread, value) to
    the elements of the tile, counted column-major: each of them, or of a tiled copy's source, of which several
    values are one element (stride 0), as many values. tiler: the tile, a number or layout for each mode. Any thread.
    Raises CuteError for other tensors. No instruction.

    >>> from numba_cute import experimental as ext
    >>> tv = cute.make_layout((4, 2), stride=(2, 1))
    >>> ext.partition(cute.make_identity_tensor((8,)), 3, layout_tv=tv, tiler=(8,))
    Tensor((6,), (2,1):(1@0,0))
    """
    tiler = tiler if isinstance(tiler, tuple) else (tiler,)
    if not isinstance(tensor, Tensor) or layout.rank(tensor.layout) < len(tiler):
        raise CuteError(f"partition: {tensor!r} must be a tensor of at least {len(tiler)} modes, as the tile {tiler}")
    if not isinstance(layout_tv, Layout) or layout.rank(layout_tv) != 2:
        raise CuteError(f"partition: layout_tv {layout_tv!r} must be a layout of two modes, (thread, value)")
    sizes = tuple(map(layout.size, tiler))
    if not _repeats(layout_tv, layout.product(sizes)):
        check_covers(layout_tv, tiler, "partition")
    extents = tuple(layout.size(tensor.layout, (i,)) for i in range(len(tiler)))
    if not layout.is_static((extents, sizes)) or not _reaches(layout_tv, sizes, extents):
        check_whole_tiles(tensor, sizes, "partition")

    def by_threads(lay: Any) -> Any:
        return layout.composition(layout.zipped_divide(lay, tiler), (layout_tv, None))

    parts = tensor._relaid(by_threads)
    rest = layout.shape(parts.layout)[1]
    nones = (None,) * len(rest) if isinstance(rest, tuple) else None
    return slice_tensor(parts, ((index, None), nones))


@pure
def _reaches(layout_tv: Layout, sizes: tuple[int, ...], extents: tuple[int, ...]) -> bool:
    """Check whether the elements that a layout reaches lie in the tensor, where that is smaller than the tile."""
    if not layout.is_static(layout_tv) or not any(n < size for n, size in zip(extents, sizes)):
        return False
    places = {layout.crd2idx(i, layout_tv) for i in range(layout.size(layout_tv))}
    return all(at < n for x in places for at, n in zip(layout.idx2crd(x, sizes), extents))


def _repeats(layout_tv: Layout, elements: Any) -> bool:
    """Check whether a layout repeats one element, has as many values as the tile elements, and stays inside it."""
    leaves = zip(layout.flatten_to_tuple(layout_tv.shape), layout.flatten_to_tuple(layout_tv.stride))
    static = layout.is_static(layout_tv) and type(elements) is int
    if not static or layout_tv.maps_to_coordinates or layout.size(layout_tv) != elements:
        return False
    return any(d == 0 and n > 1 for n, d in leaves) and int(layout.cosize(layout_tv)) <= elements


@traced
def copy(src: Tensor, dst: Tensor, *, copy_atom: CopyAtom, pred: Tensor | None = None) -> None:
    """Copy `src` to `dst` by `copy_atom`; of a part of a kernel's tensor argument, what lies outside of the argument is
    left out.

    src, dst: partitioned alike, as `partition` gives them; from shared to tensor memory too. copy_atom: an atom for
    both. pred: as of `cute.copy`, in place of the bounds. Executed by the threads that the operation names. Raises
    CuteError as `cute.copy` does, and where one access may be half inside: the extents must then be known to be
    multiples of its elements (mark_compact_shape_dynamic(divisibility=…)). PTX and least target: the operation's.

    >>> from numba_cute import experimental as ext
    >>> out = np.zeros(6, np.int32)
    >>> @ext.kernel
    ... def kernel(out):
    ...     r = cute.make_rmem_tensor(4, cute.Int32)
    ...     r.fill(7)
    ...     atom = cute.make_copy_atom(nvgpu.CopyUniversalOp(), cute.Int32)
    ...     ext.copy(r, cute.local_tile(out, (4,), (1,)), copy_atom=atom)
    >>> cute.simulate(kernel)[1, 1](cute.runtime.from_dlpack(out, assumed_align=16))
    >>> out
    array([0, 0, 0, 0, 7, 7], dtype=int32)
    """
    atom = copy_atom.atom if isinstance(copy_atom, TiledCopy) else copy_atom
    if not isinstance(atom, CopyAtom):
        raise CuteError(f"copy: copy_atom {copy_atom!r} is no copy atom; make it with cute.make_copy_atom")
    values = int(layout.size(atom.layout_src_tv, (1,)))
    bounded = next((t for t in (src, dst) if isinstance(t, GlobalTensor) and not t.maps.made), None)
    if pred is not None or bounded is None:
        copy_by(atom, _described(atom, src, dst), dst, pred=pred)
        return
    a, b = (t._relaid(lambda lay: _by_instructions(lay, values)) for t in (src, dst))
    where = next(t for t in (a, b) if isinstance(t, GlobalTensor))
    for i in range(int(layout.size(a.layout, (1,)))):
        parts = tuple(slice_tensor(t, (None, i)) for t in (a, b, where))
        current().when(_inside(parts[2], values), partial(copy_by, atom, *parts[:2]))


def _by_instructions(lay: Any, values: int) -> Any:
    """A layout as (values of an instruction, instructions)."""
    return layout.logical_divide(layout.composition(lay, layout.make_layout(layout.size(lay))), values)


def _inside(part: Any, values: int) -> Any:
    """Say whether all elements of one access lie in the argument: they do if the first does."""
    places, whole = part.coordinates, part.whole
    extents = layout.flatten_to_tuple(whole.shape)
    first, last = (layout.flatten_to_tuple(layout.wrap(element(places, i))) for i in (0, values - 1))
    inside: Any = True
    for at, end, extent in zip(first, last, extents):
        if not _never_half(at, end, extent, values):
            raise CuteError(
                f"copy: an access of {values} elements may reach over the end of a mode of extent {extent}: say that "
                f"it is a multiple, mark_compact_shape_dynamic(mode, divisibility={values}), or copy fewer elements at "
                "once"
            )
        if not _always(at, extent):
            within = current().compare("<", at, extent)
            inside = within if inside is True else within & inside
    return inside


def _never_half(first: Any, last: Any, extent: Any, values: int) -> bool:
    """Say whether an access that begins inside a mode ends there."""
    return first is last or _same(first, last) or values == 1 or divisor(extent) % values == 0


def _same(a: Any, b: Any) -> bool:
    return type(a) is int and type(b) is int and a == b


def _always(at: Any, extent: Any) -> bool:
    return type(at) is int and type(extent) is int and at < extent


@traced
def partition_and_copy(thr_copy: ThrCopy, src: Tensor, dst: Tensor) -> None:
    """Copy a thread's part of `src` to its part of `dst`, as `thr_copy`, a thread's slice of a tiled copy, says.

    src, dst: the whole tiles; what lies in registers is the thread's own already, and only retiled. Copies between
    registers and tensor memory are complete when it returns. Executed by all threads of the tiled copy. Raises
    CuteError as `cute.copy` does. PTX and least target: the operation's.

    >>> from numba_cute import experimental as ext
    >>> atom = cute.make_copy_atom(nvgpu.CopyUniversalOp(), cute.Float32, num_bits_per_copy=128)
    >>> tiled = cute.make_tiled_copy_tv(atom, cute.make_layout(32), cute.make_layout(4))
    >>> a, b = np.arange(128, dtype=np.float32), np.zeros(128, np.float32)
    >>> tensors = [cute.runtime.from_dlpack(x, assumed_align=16) for x in (a, b)]
    >>> def kernel(a, b):
    ...     ext.partition_and_copy(tiled.get_slice(arch.thread_idx()[0]), a, b)
    >>> cute.simulate(kernel)[1, 32](*tensors)
    >>> bool((a == b).all())
    True
    """
    if not isinstance(thr_copy, ThrCopy):
        raise CuteError(f"partition_and_copy: {thr_copy!r} is not a thread's slice; give tiled_copy.get_slice(thread)")
    for t, name in ((src, "src"), (dst, "dst")):
        if not isinstance(t, Tensor):
            raise CuteError(f"partition_and_copy: {name} {t!r} is not a tensor")
    s = src if _in_registers(src) else thr_copy.partition_S(src)
    d = dst if _in_registers(dst) else thr_copy.partition_D(dst)
    traits = thr_copy.tiled_copy.atom.traits
    if s is src:
        s = _retiled(thr_copy, s, d, traits.src)
    if d is dst:
        d = _retiled(thr_copy, d, s, traits.dst)
    s = _described(thr_copy.tiled_copy, s, d)
    copy_by(thr_copy.tiled_copy, *_alike(s, d))
    if _space(src) is AddressSpace.tmem:
        fence_view_async_tmem_load()
    if _space(dst) is AddressSpace.tmem and _in_registers(src):
        fence_view_async_tmem_store()


def _space(t: Tensor) -> Any:
    return t.iterator.space if isinstance(t.iterator, Pointer) else None


def _described(atom: CopyAtom | TiledCopy, src: Tensor, dst: Tensor) -> Tensor:
    """The source as the operation takes it: from shared to tensor memory by descriptors."""
    if _space(src) is AddressSpace.smem and _space(dst) is AddressSpace.tmem:
        return get_s2t_smem_desc_tensor(atom, src)
    return src


def _in_registers(t: Tensor) -> bool:
    return _space(t) is AddressSpace.rmem


def _retiled(thr_copy: ThrCopy, t: Tensor, other: Tensor, side: Layout) -> Tensor:
    """A thread's registers as the copy takes them: of one mode, in the order of the other side's part. Where the lanes
    of a warp copy together (`side` is not what the copy is tiled by), they are as its partition gives them."""
    values = layout.size(side, (1,))
    together = values != layout.size(thr_copy.tiled_copy.atom.traits.ref, (1,))
    if layout.rank(t.layout) == 1:
        shape = other.layout.shape
        shape = ((values, shape[0][1]), *shape[1:]) if together else shape
        return t._relaid(lambda lay: layout.composition(lay, layout.make_layout(shape)))
    return t if together else thr_copy.retile(t)


def _alike(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Both with as many modes."""
    rank = max(layout.rank(a.layout), layout.rank(b.layout))
    return tuple(t._relaid(lambda lay: layout.append_ones(lay, rank)) for t in (a, b))  # type: ignore[return-value]


@traced
def simt_auto_vec_copy(src: Tensor, dst: Tensor) -> None:
    """Copy all elements of `src` to `dst` by this thread, in accesses as wide as layouts and alignment prove: the same
    as `cute.autovec_copy`, whose errors it has. PTX ld, st and mov, any target.

    >>> from numba_cute import experimental as ext
    >>> a, b = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    >>> tensors = [cute.runtime.from_dlpack(x, assumed_align=16) for x in (a, b)]
    >>> cute.simulate(lambda a, b: ext.simt_auto_vec_copy(a, b))[1, 1](*tensors)
    >>> b
    array([0., 1., 2., 3.], dtype=float32)
    """
    autovec_copy(src, dst)
