# SPDX-License-Identifier: Apache-2.0
"""Convolutions as products of matrices: TMA loads the rows of the im2col matrix, which is never stored. sm_90.

The matrix A of a convolution has a row for each output pixel and a column for each channel of each tap of the filter.
`make_im2col_tma_atom` gives the atom that loads tiles of it from the image and the tensor of its coordinates,
(pixels, (channels, taps along W, H, D)): `local_tile` and `tma_partition` take that as any other TMA tensor. A load
takes consecutive pixels, row after row and image after image, at one tap: so one tile is at most one tap's channels.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ... import layout, seam
from ...atoms.copy_atom import CopyAtom
from ...atoms.mma_atom import TiledMma
from ...dtypes import DType, Int32, Uint16
from ...isa.facts.tensormap import Im2col, TensorMapRecord
from ...layout import ComposedLayout, Layout, ScaledBasis
from ...seam import CuteError, frozen, known_as
from ...tensor.address import place_of
from ...tensor.fastdivmod import fast_divmod_create_divisor
from ...tensor.pointer import check_writable
from ...tensor.tensor import Tensor
from ..common.checks import need
from ..common.choices import CtaGroup
from .mma_tile import mma_tile
from .slices import slice_of
from .tma import TmaInfo, global_pointer, multicast_slice, one_stage, split_swizzle
from .tma_form import TmaForm, box_form
from .tma_ops import Load, Store, TmaCopyOp

_WHAT = "make_im2col_tma_atom"

__all__ = [
    "CopyBulkTensorIm2ColG2SMulticastOp", "CopyBulkTensorIm2ColG2SOp", "CopyBulkTensorIm2ColS2GOp",
    "make_im2col_tma_atom",
]  # fmt: skip


@frozen
class Pixels:
    """The output pixels of a convolution, whose index becomes coordinates. extents: output pixels along W, H, D, or
    divisors by them; step: between them in the image; lower: the first one's place."""

    extents: tuple[Any, ...]
    step: tuple[int, ...]
    lower: tuple[int, ...]

    def coordinates(self, m: Any) -> list[Any]:
        """Give the place of pixel `m` along W, H, D, and its image."""
        out = []
        for extent, step, lower in zip(self.extents, self.step, self.lower):
            out.append(m % extent * step + lower)
            m = m // extent
        return [*out, m]


class _Im2col(TmaCopyOp):
    im2col = True
    pixels: Any = None

    def place(self, t: Tensor, what: str) -> tuple[dict[str, Any], int]:
        """Give the operands that say where in the image `t` begins, and its rank. what: "src" or "dst"."""
        if self.pixels is None or not isinstance(t.iterator, tuple):
            raise CuteError(f"copy: {what} {t!r} must be a part of the tensor that make_im2col_tma_atom gave")
        channel, pixel, *taps = t.iterator
        *along, image = self.pixels.coordinates(pixel)
        at = (*along, channel, image) if self.interleaved else (channel, *along, image)
        return {"at": at, "offsets": tuple(Uint16(x) for x in taps)}, len(at)


@frozen
class CopyBulkTensorIm2ColG2SOp(_Im2col, Load):
    """Load a tile of the im2col matrix of an image by TMA. A whole converged warp, of which one lane issues.
    PTX cp.async.bulk.tensor.im2col, sm_90.

    cta_group: as of CopyBulkTensorTileG2SOp. pixels, interleaved, recast: set by make_im2col_tma_atom.

    See the example of `make_im2col_tma_atom`.
    """

    cta_group: CtaGroup = CtaGroup.ONE
    pixels: Any = None


@frozen
class CopyBulkTensorIm2ColG2SMulticastOp(_Im2col, Load):
    """Load a tile of the im2col matrix of an image by TMA to the same place in several blocks of a cluster, those of
    `mcast_mask`. A whole converged warp, of which one lane issues. PTX cp.async.bulk.tensor.im2col.multicast, sm_90.

    cta_group: as of CopyBulkTensorTileG2SMulticastOp. pixels, interleaved, recast: set by make_im2col_tma_atom.

    >>> x = cute.runtime.from_dlpack(np.zeros((2, 21, 16), np.float16), assumed_align=16)
    >>> image = cute.make_tensor(x.iterator, cute.group_modes(cute.select(x.layout, [1, 0, 2]), 0, 2))
    >>> op, box = nvgpu.cpasync.CopyBulkTensorIm2ColG2SMulticastOp(), cute.make_layout((16, 16), stride=(16, 1))
    >>> taps = (-1,), (-1,), (1,), (1,), (1,), (0,), (1,)
    >>> atom, coords = nvgpu.cpasync.make_im2col_tma_atom(op, image, box, (16, 16), *taps)
    >>> coords.shape
    (42, (16, 3))
    """

    cta_group: CtaGroup = CtaGroup.ONE
    pixels: Any = None

    multicast = True


@frozen
class CopyBulkTensorIm2ColS2GOp(_Im2col, Store):
    """Store a tile of pixels of an image, without padding, by TMA. A whole converged warp, of which one lane issues,
    after the writers' proxy fences and a barrier. PTX cp.async.bulk.tensor.im2col_no_offs, sm_90.

    pixels, interleaved, recast: set by make_im2col_tma_atom.

    >>> x = cute.runtime.from_dlpack(np.zeros((2, 21, 16), np.float16), assumed_align=16)
    >>> image = cute.make_tensor(x.iterator, cute.group_modes(cute.select(x.layout, [1, 0, 2]), 0, 2))
    >>> op, box = nvgpu.cpasync.CopyBulkTensorIm2ColS2GOp(), cute.make_layout((16, 16), stride=(16, 1))
    >>> taps = (0,), (0,), (0,), (0,), (1,), (0,), (1,)
    >>> atom, coords = nvgpu.cpasync.make_im2col_tma_atom(op, image, box, (16, 16), *taps)
    >>> coords.shape
    (42, (16, 1))
    """

    pixels: Any = None


@known_as("cute_nvgpu.cpasync")
def make_im2col_tma_atom(
    op: TmaCopyOp,
    gmem_tensor: Tensor,
    smem_layout: Layout | ComposedLayout,
    cta_tiler: Any,
    lower_corner_whd: tuple[int, ...],
    upper_corner_whd: tuple[int, ...],
    lower_padding_whd: tuple[int, ...],
    upper_padding_whd: tuple[int, ...],
    stride_whd: tuple[int, ...],
    lower_srt: tuple[int, ...],
    stride_srt: tuple[int, ...],
    num_multicast: int = 1,
    *,
    internal_type: DType | None = None,
    oob_fill: str = "zero",
    interleave: str = "none",
) -> TmaInfo:
    """Make the TMA atom that copies tiles of an image's im2col matrix, and the tensor of its coordinates.

    op: an im2col operation such as CopyBulkTensorIm2ColG2SOp(). gmem_tensor: the image as ((W, H, D, N), C), with one
    to three of W, H, D and stride 1 along C. smem_layout: of a tile (pixels, channels) with channels contiguous;
    further modes are stages. cta_tiler: (pixels, channels). The others have an entry for each of W, H, D. C is static
    in the kernel.

    lower_corner_whd, upper_corner_whd: the box of pixels where the filter's first tap may stand, relative to the first
    and to the last pixel. lower_padding_whd, upper_padding_whd: the image's padding; upper_padding - upper_corner gives
    the number of taps. stride_whd: between output pixels. lower_srt, stride_srt: the offset of the first tap, and from
    tap to tap. num_multicast: how many blocks share a tile. internal_type: the type that TMA takes the elements for, of
    the same width. oob_fill: what padding reads as, "zero" or "nan".
    interleave: "16B" or "32B" for images of slices of so many bytes, whose C is (slice, C / slice):(1, …) and whose W
    has the stride of a slice: in shared memory all pixels of one slice lie together, slice after slice. Call it on the
    host. Raises CuteError for an image, tile or filter that TMA cannot load so. PTX cp.async.bulk.tensor.im2col, sm_90.

    >>> x = cute.runtime.from_dlpack(np.zeros((2, 21, 16), np.float16), assumed_align=16)
    >>> image = cute.make_tensor(x.iterator, cute.group_modes(cute.select(x.layout, [1, 0, 2]), 0, 2))
    >>> op, box = nvgpu.cpasync.CopyBulkTensorIm2ColG2SOp(), cute.make_layout((16, 16), stride=(16, 1))
    >>> taps = (-1,), (-1,), (1,), (1,), (1,), (0,), (1,)
    >>> atom, coords = nvgpu.cpasync.make_im2col_tma_atom(op, image, box, (16, 16), *taps)
    >>> coords.shape
    (42, (16, 3))
    """
    tiler = cta_tiler if isinstance(cta_tiler, tuple) else (cta_tiler,)
    sizes = tuple(int(layout.size(t)) for t in tiler)
    need(_WHAT, len(sizes) == 2, f"cta_tiler {cta_tiler} must be (pixels, channels)")
    swizzle, plain = split_swizzle(smem_layout)
    geometry = (lower_corner_whd, upper_corner_whd, lower_padding_whd, upper_padding_whd, stride_whd, lower_srt)
    return _info(
        op, gmem_tensor, smem_layout, one_stage(plain, 2), layout.make_identity_layout(sizes), sizes[1], swizzle,
        (*geometry, stride_srt), num_multicast, internal_type, {"oob_fill": oob_fill, "interleave": interleave},
    )  # fmt: skip


def make_im2col_tma_atom_A(  # noqa: N802 - CuTe's name
    op: TmaCopyOp,
    gmem_tensor: Tensor,
    smem_layout: Layout | ComposedLayout,
    mma_tiler_mnk: Any,
    tiled_mma: TiledMma,
    filter_trs: tuple[int, ...],
    upper_padding_dhw: tuple[int, ...],
    lower_padding_dhw: tuple[int, ...],
    stride_dhw: tuple[int, ...],
    dilation_dhw: tuple[int, ...],
    cluster_shape_vmnk: Any = None,
    *,
    internal_type: DType | None = None,
) -> TmaInfo:
    """Make the TMA atom of an im2col operation `op` that loads operand A of a convolution by `tiled_mma`, and the
    tensor of its coordinates.

    gmem_tensor: the image as ((W, H, D, N), C), with one to three of W, H, D. smem_layout: of a tile (M, K), or of its
    parts (MMA, MMA_M, MMA_K); further modes are stages. mma_tiler_mnk: the tile (M, N, K). filter_trs: the filter's
    extents (T, R, S). upper_padding_dhw, lower_padding_dhw, stride_dhw, dilation_dhw: along D, H, W, outermost first,
    as many as the image has. cluster_shape_vmnk: blocks of a cluster; those along N share a tile if `op` is multicast.
    internal_type: the type that TMA takes the elements for, of the same width. Call it on the host. Raises CuteError as
    make_im2col_tma_atom does. PTX cp.async.bulk.tensor.im2col, sm_90.

    >>> K = nvgpu.OperandMajorMode.K
    >>> x = cute.runtime.from_dlpack(np.zeros((2, 9, 7, 64), np.float16), assumed_align=16)
    >>> image = cute.make_tensor(x.iterator, cute.group_modes(cute.select(x.layout, [2, 1, 0, 3]), 0, 3))
    >>> mma = utils.make_trivial_tiled_mma(cute.Float16, cute.Float16, K, K, cute.Float32, (1, 1, 1), (64, 64))
    >>> kind = nvgpu.warpgroup.SmemLayoutAtomKind.K_SW128
    >>> atom = nvgpu.warpgroup.make_smem_layout_atom(kind, cute.Float16)
    >>> smem = cute.tile_to_shape(atom, (64, 64), (0, 1))
    >>> op = nvgpu.cpasync.CopyBulkTensorIm2ColG2SOp()
    >>> conv = (3, 3), (1, 1), (1, 1), (1, 1), (1, 1)
    >>> nvgpu.make_im2col_tma_atom_A(op, image, smem, (64, 64, 64), mma, *conv).tma_tensor.shape
    (126, (64, 3, 3))
    """
    given = (filter_trs, upper_padding_dhw, lower_padding_dhw, stride_dhw, dilation_dhw)
    taps, upper, lower, step, dilation = (tuple(reversed(x)) for x in given)
    lower_corner = tuple(-p for p in lower)
    upper_corner = tuple(p - (t - 1) * d for p, t, d in zip(upper, taps, dilation))
    swizzle, plain = split_swizzle(smem_layout)
    pixels, channels = int(layout.size(mma_tiler_mnk[0])), int(layout.size(mma_tiler_mnk[2]))
    tile, plain = mma_tile(tiled_mma, "A", layout.make_identity_layout((pixels, channels)), plain)
    shared = 1 if cluster_shape_vmnk is None or not op.multicast else int(layout.size(cluster_shape_vmnk[2]))
    geometry = (lower_corner, upper_corner, lower, upper, step, (0,) * len(taps), dilation)
    return _info(op, gmem_tensor, smem_layout, plain, tile, channels, swizzle, geometry, shared, internal_type, {})


def _info(
    op: TmaCopyOp, gmem: Tensor, smem_layout: Any, plain: Layout, tile: Layout, width: int, swizzle: str,
    geometry: tuple[Any, ...], num_multicast: int, internal_type: DType | None, options: dict[str, Any],
) -> TmaInfo:  # fmt: skip
    need(_WHAT, isinstance(op, _Im2col), f"op {op!r} is not an im2col operation such as CopyBulkTensorIm2ColG2SOp()")
    need(_WHAT, seam.current_or(None) is None, "call it on the host and pass the atom and the tensor to the kernel")
    ptr = global_pointer(gmem)
    if op.writes:
        check_writable(ptr, f"{_WHAT}: {type(op).__name__}")
    dtype = internal_type or ptr.dtype
    same = dtype.width == ptr.dtype.width >= 8
    need(_WHAT, same, f"internal_type {dtype} of {ptr.dtype} elements: im2col takes elements of whole bytes, as wide")
    interleave = options.get("interleave", "none")
    sliced = 0 if interleave == "none" else slice_of(interleave, dtype, _WHAT)
    dims, strides = _image(gmem, sliced)
    spatial = len(dims) - 2
    for x in geometry:
        ok = isinstance(x, tuple) and len(x) == spatial and all(type(n) is int for n in x)
        need(_WHAT, ok, f"{x!r} must have one number for each of the {spatial} spatial dimensions of gmem_tensor")
    lower, upper, _, upper_padding, step, first_tap, tap_step = geometry
    need(
        _WHAT,
        not isinstance(op, Store) or (min(lower) >= 0 and max(upper) <= 0),
        f"lower_corner {lower} must not be negative, nor upper_corner {upper} positive, for {type(op).__name__}: "
        "stores have no padding; make an atom without it for them",
    )
    taps = _taps(upper, upper_padding, tap_step)
    every = int(dims[0]) * max(1, sliced)
    need(
        _WHAT,
        every % width == 0 or layout.product(taps) == 1 or not sliced,
        f"the tile has {width} channels, which do not divide the {every} of gmem_tensor's slices: a tile cannot go on "
        "with the next tap; use a divisor",
    )
    channels, pixels = _box(tile, plain)
    need(
        _WHAT,
        channels == sliced or not sliced,
        f"smem_layout {plain} has {channels} channels in a row; with interleave {interleave!r} it must be the {sliced} "
        "of one slice, for all pixels, and then the next slice",
    )
    part = multicast_slice([channels, pixels], num_multicast)
    extents = tuple(_like(n, (int(n) + up - lo - 1) // s + 1) for n, lo, up, s in zip(dims[1:], lower, upper, step))
    order = list(range(len(dims)))  # (C, W, H, D, N), or (W, H, D, C, N) of slices
    if sliced:
        order.insert(len(dims) - 2, order.pop(0))
    record = TensorMapRecord(
        dtype, int(ptr.address), tuple(int(dims[i]) for i in order),
        tuple(int(strides[i]) * dtype.bytes for i in order[1:]), element_strides=tuple((1, *step, 1)[i] for i in order),
        swizzle=swizzle, im2col=Im2col(lower, upper, *part), place=place_of(ptr.address), **options,
    )  # fmt: skip
    op = replace(op, pixels=Pixels(tuple(map(_divisor, extents)), step, lower), interleaved=sliced > 0)  # type: ignore[call-arg]
    form = _form(ptr.dtype, smem_layout, channels, pixels, sliced)
    atom = CopyAtom(op, ptr.dtype, channels * pixels * ptr.dtype.width, record, form=form, source=gmem)
    whole = width if layout.product(taps) > 1 and not sliced else 1
    channel, of_channel = -(-int(dims[0]) // whole) * whole, ScaledBasis(1, (0,))
    c_shape, c_stride = ((sliced, channel), (0, of_channel)) if sliced else (channel, of_channel)
    shape = (_product((*extents, dims[-1])), (c_shape, *taps))
    basis = (ScaledBasis(1, (1,)), (c_stride, *(ScaledBasis(d, (2 + i,)) for i, d in enumerate(tap_step))))
    return TmaInfo(atom, Tensor((0, 0, *first_tap), Layout(shape, basis)), smem_layout)


def _form(dtype: DType, smem_layout: Any, channels: int, pixels: int, sliced: int) -> TmaForm:
    within = 0 if sliced else ScaledBasis(1, (0,))
    return box_form(dtype, smem_layout, Layout((channels, pixels), (within, ScaledBasis(1, (1,)))))


def _image(t: Tensor, sliced: int) -> tuple[list[Any], list[Any]]:
    """Extents and strides, C (or its slices) first, then W, H, D, N."""
    lay = t.layout
    ok = layout.rank(lay) == 2 and isinstance(lay.shape[0], tuple) and 2 <= len(lay.shape[0]) <= 4
    shape, stride = (layout.flatten_to_tuple(x[1]) for x in (lay.shape, lay.stride)) if ok else ((), ())
    need(
        _WHAT,
        ok and len(shape) == (2 if sliced else 1),
        f"gmem_tensor {lay} must be ((W, H, D, N), C) with one to three of W, H, D, and C (slice, C / slice) if it is "
        "interleaved; permute with cute.select and group_modes",
    )
    need(
        _WHAT,
        type(stride[0]) is int and stride[0] == 1,
        f"gmem_tensor {lay} must have stride 1 along C, not {stride[0]}",
    )
    along_w = lay.stride[0][0]
    need(
        _WHAT,
        not sliced or (shape[0] == sliced and int(along_w) == sliced),
        f"gmem_tensor {lay} must have slices of {sliced} elements, next to each other along W (stride {sliced})",
    )
    return [shape[-1], *lay.shape[0]], [stride[-1], *lay.stride[0]]


def _taps(upper: Any, padding: Any, step: Any) -> tuple[int, ...]:
    taps = []
    for up, pad, d in zip(upper, padding, step):
        need(
            _WHAT,
            d != 0 and pad >= up and (pad - up) % abs(d) == 0,
            f"upper_padding {padding} less upper_corner {upper} must be multiples of stride_srt {step}: the taps "
            "beyond the first",
        )
        taps.append((pad - up) // abs(d) + 1)
    return tuple(taps)


def _box(tile: Layout, smem: Layout) -> tuple[int, int]:
    """Channels and pixels of one copy: how far both go along shared memory."""
    need(
        _WHAT,
        layout.size(tile) == layout.size(smem),
        f"smem_layout {smem} has {layout.size(smem)} elements, but the tile has {layout.size(tile)}",
    )
    along = layout.flatten(layout.coalesce(layout.composition(tile, layout.right_inverse(smem))))
    found = [(int(s), d) for s, d in zip(layout.wrap(along.shape), layout.wrap(along.stride))]
    channel, pixel = ScaledBasis(1, (1,)), ScaledBasis(1, (0,))
    need(_WHAT, bool(found) and found[0][1] == channel, f"smem_layout {smem} must have channels contiguous (K-major)")
    return found[0][0], found[1][0] if len(found) > 1 and found[1][1] == pixel else 1


def _divisor(n: Any) -> Any:
    return n if type(n) is int else fast_divmod_create_divisor(n)


def _like(n: Any, value: int) -> Any:
    """A number known only at run time where `n` is."""
    return value if type(n) is int else Int32(value)


def _product(values: tuple[Any, ...]) -> Any:
    out = 1
    for v in values:
        out *= int(v)
    return out if seam.is_static(values) else Int32(out)
