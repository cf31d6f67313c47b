# SPDX-License-Identifier: Apache-2.0
"""What makes memory, layouts, atoms and parts of tensors refuses what does not fit, in words, alike in both engines.

The functions are found by their signatures; `REFUSED` has the mismatches of each: the type, the swizzle, the order, the
box (tile and extents), the alignment, the target."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import experimental, nvgpu, utils
from numba_cute.nvgpu import cpasync, tcgen05, warp, warpgroup
from numba_cute.runtime import from_dlpack
from numba_cute.seam import traced
from numba_cute.utils import sm90, sm100

from ..api import names
from ..nvgpu.test_tma_modes import aligned

F16, BF16, F32, F64, I8 = cute.Float16, cute.BFloat16, cute.Float32, cute.Float64, cute.Int8
ROW, COLUMN = utils.LayoutEnum.ROW_MAJOR, utils.LayoutEnum.COL_MAJOR
K, MN = warpgroup.OperandMajorMode.K, warpgroup.OperandMajorMode.MN
S128, S64, OF_ELEMENTS = cute.make_swizzle(3, 4, 3), cute.make_swizzle(2, 4, 3), cute.make_swizzle(3, 3, 3)
ROWS, COLUMNS = cute.make_layout((64, 64), stride=(64, 1)), cute.make_layout((64, 64))
FOUR = cute.make_layout((4, 64), stride=(64, 1))
SQUARE = cute.make_layout((16, 16), stride=(16, 1))
SPARSE = cute.make_layout((64, 8), stride=(64, 1))
"""Of the last row its swizzle moves elements beyond those of the layout."""
TV = cute.make_layout((32, 8), stride=(8, 1))
ATOM = tcgen05.make_smem_layout_atom(tcgen05.SmemLayoutAtomKind.K_SW128, F16)
COPY = cute.make_copy_atom(nvgpu.CopyUniversalOp(), F16, num_bits_per_copy=128)
LOAD, WIDE = (cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), t) for t in (F16, I8))
WARP = cute.make_tiled_mma(warp.MmaF16BF16Op(F16, F32, (16, 8, 16)))
TILED = cute.make_tiled_copy_tv(COPY, cute.make_layout((8, 4), stride=(4, 1)), cute.make_layout((1, 8)))
SMEM = warpgroup.OperandSource.SMEM
WGMMA = cute.make_tiled_mma(warpgroup.MmaF16BF16Op(F16, F32, (64, 64, 16), SMEM, K, K))
UMMA = cute.make_tiled_mma(
    tcgen05.MmaF16BF16Op(
        F16, F32, (128, 64, 16), tcgen05.CtaGroup.ONE, tcgen05.OperandSource.SMEM, tcgen05.OperandMajorMode.K,
        tcgen05.OperandMajorMode.K,
    )
)  # fmt: skip


@cute.struct
class Storage:
    before: cute.Int64
    odd: cute.struct.Align[cute.struct.MemRange[cute.Float16, 4096], 8]
    tile: cute.struct.Align[cute.struct.MemRange[cute.Float16, 63 * 64 + 8], 1024]


# ------------------------------------------------------------------ which functions

LAID_OUT = {
    "smem_layout", "swizzle", "swizzle_", "layout_tv", "atom_layout_tv", "trg_shape", "mma_tile_shape",
    "smem_tile_shape", "smem_shape_mn_k", "major_mode_size", "epi_layout",
}  # fmt: skip
ATOMS = ({"atom", "tiled_mma"}, {"atom", "mma"}, {"atom", "tiled_copy"}, {"atom", "thr_layout"})
OF_MEMORY = {"type", "element_type", "dtype"}
PARTS = {"input", "input_mk", "input_nk", "input_mn", "src", "dst", "copy", "mma", "smem_tensor"}


def fits_things_together(function, of_class):
    """Whether a function makes something of a layout or swizzle for memory, of an atom and what it is tiled by, or a
    part of a tensor for an atom."""
    signature = inspect.signature(function)
    given, gives = set(signature.parameters), str(signature.return_annotation)
    if given & LAID_OUT or any(pair <= given for pair in ATOMS) or "layout" in given and given & OF_MEMORY:
        return True
    if "ComposedLayout" in gives and given & {"mma_tiler_mnk", "smem_shape"}:
        return True
    return "Tensor" in gives and bool(given & PARTS) and (of_class or bool(given & {"copy", "mma", "smem_tensor"}))


def found():
    """The public names of all such functions: of one with several, the first."""
    seen = {}
    for module, name, value in names():
        inside = inspect.isclass(value)
        for method, function in vars(value).items() if inside else [(None, value)]:
            plain = inspect.unwrap(function) if callable(function) else function
            if inspect.isfunction(plain) and not (method or "").startswith("_"):
                if fits_things_together(function, inside):
                    short = f"{module.removeprefix('numba_cute').removeprefix('.')}.{name}".removeprefix(".")
                    seen.setdefault(plain, f"{short}.{method}" if inside else short)
    return set(seen.values())


ELSEWHERE = {
    "ThrMma.make_fragment_A": "is TiledMma's", "ThrMma.make_fragment_B": "is TiledMma's",
    "ThrMma.make_fragment_C": "is TiledMma's", "mma_make_fragment_a": "is TiledMma's",
    "mma_make_fragment_b": "is TiledMma's", "mma_make_fragment_c": "is TiledMma's", "partition_s": "is ThrCopy's",
    "partition_d": "is ThrCopy's", "TiledCopy.retile": "is ThrCopy's", "nvgpu.MmaOp.fragment": "is make_fragment_A",
    "nvgpu.MmaUniversalOp.fragment": "is make_fragment_A", "size_in_bytes": "makes nothing",
    "utils.compute_tmem_cols_from_layout": "makes nothing", "utils.print_latex_tv": "prints",
    "nvgpu.cpasync.tma_partition": "test_tma_form.py", "make_tiled_copy_S": "is make_tiled_copy of what is tiled",
    "make_tiled_copy_D": "is make_tiled_copy of what is tiled",
    "nvgpu.tcgen05.get_s2t_smem_desc_tensor": "test_s2t_copies.py", "utils.get_smem_layout_scale": "has no tile",
    "utils.TmemBufferPool.allocate": "tests/utils/test_tmem_allocator.py",
    "utils.TmemBufferPool.allocate_tensor": "tests/utils/test_tmem_allocator.py",
    "utils.sm80.get_smem_load_op": "chooses",
    "nvgpu.make_im2col_tma_atom_A": "is make_im2col_tma_atom of the tile of an operand",
}  # fmt: skip


# ------------------------------------------------------------------ calls


def memory(dtype=F16, lay=ROWS, align=1024, swizzle=S128):
    return utils.SmemAllocator().allocate_tensor(dtype, lay, align, swizzle)


def element(dtype, lay, align, swizzle):
    s = memory(dtype, lay, align, swizzle)
    s[0] = dtype(1)


def composed(swizzle, lay=ROWS, offset=0):
    return cute.make_composed_layout(swizzle, offset, lay)


def member(name, *args, **more):
    return getattr(utils.SmemAllocator().allocate(Storage), name).get_tensor(*args, **more)


def copied(src, dst):
    """Copy a part of shared memory of one type to another's."""
    part, lay = TILED.get_slice(cute.arch.thread_idx()[0]), cute.make_layout((8, 32), stride=(32, 1))
    cute.copy(TILED, part.partition_S(memory(src, lay, 128, None)), part.partition_D(memory(dst, lay, 128, None)))


def loaded(dtype=F16, lay=SQUARE, align=128, swizzle=None, atom=LOAD, make=cute.make_tiled_copy_A, mma=WARP):
    """Load A by a tiled copy. align: None for that of an element."""
    if align is None:
        s = cute.make_tensor(utils.SmemAllocator().allocate_array(dtype, cute.cosize(lay)), lay)
    else:
        s = memory(dtype, lay, align, swizzle)
    thread = cute.arch.thread_idx()[0]
    held = mma.make_fragment_A(mma.get_slice(thread).partition_A(s))
    tiled = make(atom, mma)
    cute.copy(tiled, tiled.get_slice(thread).partition_S(s), tiled.get_slice(thread).retile(held))


def operand(mma, which, *args, part=None):
    """The operand `which` of shared memory, and one product where it is of the wrong target."""
    thread = mma.get_slice(cute.arch.thread_idx()[0])
    s = memory(*args)
    return getattr(mma, f"make_fragment_{which}")(getattr(thread, f"partition_{part or which}")(s))


def product(mma):
    a, b = operand(mma, "A"), operand(mma, "B")
    acc = mma.make_fragment_C(mma.partition_shape_C((64, 64)))
    cute.gemm(mma, acc, a, b, acc)


def tma(make=cpasync.make_tiled_tma_atom, op=None, array=None, lay=ROWS, tile=(64, 64), **more):
    x = aligned((64, 64), np.float16) if array is None else array()
    more = {"args": (), **more}
    op = cpasync.CopyBulkTensorTileG2SOp() if op is None else op
    args = more.pop("args")
    return make(op, from_dlpack(x, assumed_align=2), lay, *((tile,) if tile else ()), *args, **more)


def of_mma(make, **more):
    return tma(make, tile=(64, 64, 64), args=(WGMMA,), **more)


def unaligned():
    return aligned((80, 64), np.float16).reshape(-1)[4 : 4 + 4096].reshape(64, 64)


def shifted_image():
    return aligned((3, 21, 16), np.float16).reshape(-1)[4 : 4 + 672].reshape(2, 21, 16)


def padded():
    return aligned((64, 65), np.float16)[:, :64]


def four_rows(op=None, lay=None, **more):
    op = cpasync.CopyBulkTensorGather4G2SOp() if op is None else op
    return tma(cpasync.make_gather4_tma_atom, op=op, lay=FOUR if lay is None else lay, tile=None, **more)


def im2col(op=None, lay=SQUARE, array=None, **more):
    """Three taps along a row of pixels."""
    x = aligned((2, 21, 16), np.float16) if array is None else array()
    t = from_dlpack(x, assumed_align=2)
    image = cute.make_tensor(t.iterator, cute.group_modes(cute.select(t.layout, [1, 0, 2]), 0, 2))
    op, taps = cpasync.CopyBulkTensorIm2ColG2SOp() if op is None else op, ((-1,), (-1,), (1,), (1,), (1,), (0,), (1,))
    return cpasync.make_im2col_tma_atom(op, image, lay, (16, 16), *taps, **more)


MAKERS_OF_TMA = (
    ("swizzle", "TMA's swizzles are", {"lay": composed(OF_ELEMENTS)}),
    ("order", "several elements of gmem_tensor in one place", {"lay": cute.make_layout((64, 64), stride=(32, 1))}),
    ("box", "elements, but .* has|has 2048 elements", {"lay": cute.make_layout((64, 32), stride=(32, 1))}),
    ("alignment", "not a multiple of 16 bytes", {"array": unaligned}),
    ("type", "internal_type Int8 has 8 bits", {"internal_type": I8}),
    ("target", "not a TMA tensor operation", {"op": cpasync.CopyG2SOp()}),
)


def makers_of_tma(make, leave=(), **given):
    return [
        (kind, words, lambda given={**given, **change}: tma(make, **given))
        for kind, words, change in MAKERS_OF_TMA
        if kind not in leave
    ]


REFUSED = {
    "utils.SmemAllocator.allocate_tensor": [
        ("type", "keeps only 4 together", lambda: element(F64, ROWS, 1024, cute.make_swizzle(1, 2, 3))),
        ("swizzle", "swizzles its elements, and swizzle=", lambda: memory(F16, composed(S128), 1024, S64)),
        ("alignment", "the memory is aligned to 8", lambda: memory(lay=cute.make_layout(4), align=8)),
        ("alignment", "must be a power of two", lambda: memory(align=24)),
        ("box", "must be static", lambda: memory(lay=cute.make_layout((cute.arch.thread_idx()[0], 64)))),
        ("target", "exceed the 166912 bytes of a CTA on sm_80", lambda: memory(lay=cute.make_layout((64, 64, 64)))),
    ],
    "experimental.allocate": [
        ("type", "not an element type", lambda: experimental.allocate(np.float16, cute.AddressSpace.smem, ROWS)),
        ("swizzle", "keeps 16 of them together",
         lambda: experimental.allocate(F16, cute.AddressSpace.smem, composed(OF_ELEMENTS), alignment=1024)),
        ("order", "must be one, or S o 0 o one",
         lambda: experimental.allocate(F16, cute.AddressSpace.smem, composed(S128, ROWS, 64), alignment=1024)),
        ("alignment", "power of two", lambda: experimental.allocate(F16, cute.AddressSpace.smem, ROWS, alignment=48)),
        ("box", "must be static", lambda: experimental.allocate(
            F16, cute.AddressSpace.smem, cute.make_layout((cute.arch.thread_idx()[0], 64)))),
    ],
    "get_tensor": [
        ("type", "takes 16384 bytes, but", lambda: member("odd", ROWS, dtype=F32)),
        ("swizzle", "swizzles its elements, and swizzle=", lambda: member("odd", composed(S128), swizzle=S64)),
        ("box", "bytes where swizzle=S<3,4,3> puts them", lambda: member("tile", SPARSE, swizzle=S128)),
        ("alignment", "the memory is aligned to 8", lambda: member("odd", ROWS, swizzle=S128)),
    ],
    "recast_ptr": [
        ("type", "keeps only 4 together",
         lambda: cute.recast_ptr(memory(F32).iterator, cute.make_swizzle(1, 2, 3), F64).load()),
        ("swizzle", "give a Swizzle or None", lambda: cute.recast_ptr(memory().iterator, 3)),
    ],
    "recast_tensor": [
        ("type", "not an element type", lambda: cute.recast_tensor(memory(), np.float32)),
        ("box", "do not make one", lambda: cute.recast_tensor(memory(lay=cute.make_layout((3, 3)), swizzle=None), F32)),
        ("order", "not known to lie together",
         lambda: cute.recast_tensor(memory(lay=cute.make_layout((4, 4), stride=(4, 2)), swizzle=None), F32)),
    ],
    "tile_to_shape": [
        ("box", "not made of whole atoms", lambda: cute.tile_to_shape(ATOM, (60, 64), (0, 1))),
        ("order", "one rank of order for each mode", lambda: cute.tile_to_shape(ATOM, (64, 64), (0, 1, 2))),
    ],
    "nvgpu.tcgen05.tile_to_mma_shape": [
        ("box", "not made of whole atoms", lambda: tcgen05.tile_to_mma_shape(ATOM, ((60, 16), 1, 4))),
        ("order", "must be .*MN, K", lambda: tcgen05.tile_to_mma_shape(ATOM, (128, 64))),
    ],
    "make_tiled_copy": [
        ("box", "none beyond", lambda: cute.make_tiled_copy(COPY, TV, (8, 16))),
        ("box", "none beyond", lambda: cute.make_tiled_copy(COPY, TV, (16, 32))),
        ("order", "none beyond",
         lambda: cute.make_tiled_copy(COPY, cute.make_layout((32, 8), stride=(8, 2)), (16, 16))),
        ("type", "not a CopyAtom", lambda: cute.make_tiled_copy(nvgpu.CopyUniversalOp(), TV, (16, 16))),
    ],
    "make_tiled_copy_tv": [
        ("order", "must be compact",
         lambda: cute.make_tiled_copy_tv(COPY, cute.make_layout((8, 4), stride=(2, 1)), cute.make_layout((1, 8)))),
    ],
    "make_cotiled_copy": [
        ("box", "reaches offsets outside",
         lambda: cute.make_cotiled_copy(COPY, cute.make_layout((64, 8), stride=(8, 1)), SQUARE)),
    ],
    "make_tiled_copy_A": [
        ("type", "BFloat16, whose bits are other numbers|holds BFloat16 and dst Float16", lambda: loaded(BF16)),
        ("type", "multiple of the copy atom's 16", lambda: loaded(atom=WIDE)),
        ("swizzle", "16-byte aligned", lambda: loaded(swizzle=cute.make_swizzle(1, 3, 3))),
        ("order", "must be a row of 16 bytes", lambda: loaded(lay=cute.make_layout((16, 16)))),
        ("alignment", "16-byte aligned", lambda: loaded(align=None)),
        ("box", "no multiple of the tile's 16", lambda: loaded(lay=cute.make_layout((16, 24), stride=(24, 1)))),
    ],
    "make_tiled_copy_B": [
        ("order", "not a multiple of the copy atom's 8", lambda: loaded(make=cute.make_tiled_copy_B)),
    ],
    "make_tiled_copy_C": [
        ("order", "not a multiple of the copy atom's 8", lambda: loaded(make=cute.make_tiled_copy_C)),
    ],
    "make_tiled_copy_C_atom": [("box", "copies 8 values, but", lambda: cute.make_tiled_copy_C_atom(COPY, WARP))],
    "ThrCopy.partition_S": [
        ("box", "12 elements along mode 0, no multiple of the tile's 8", lambda: TILED.get_slice(0).partition_S(
            memory(lay=cute.make_layout((12, 32), stride=(32, 1)), swizzle=None))),
        ("order", "must be a tensor of at least 2 modes",
         lambda: TILED.get_slice(0).partition_S(memory(lay=cute.make_layout(64), swizzle=None))),
        ("type", "Float16 and dst BFloat16, whose bits are other", lambda: copied(F16, BF16)),
    ],
    "ThrCopy.partition_D": [
        ("box", "along mode 1, no multiple", lambda: TILED.get_slice(0).partition_D(
            memory(lay=cute.make_layout((16, 40), stride=(40, 1)), swizzle=None))),
        ("type", "Float16 cannot be copied to Float32", lambda: copied(F16, F32)),
    ],
    "ThrCopy.retile": [("order", "instructions, but|mode|tiler", lambda: TILED.get_slice(0).retile(memory(lay=TV[1])))],
    "experimental.partition": [
        ("order", "none beyond", lambda: experimental.partition(
            memory(lay=SQUARE, swizzle=None), 0, layout_tv=cute.make_layout((32, 4), stride=(8, 2)), tiler=(16, 16))),
        ("box", "no multiple of the tile's 12", lambda: experimental.partition(
            memory(lay=SQUARE, swizzle=None), 0, layout_tv=cute.make_layout((32, 6), stride=(6, 1)), tiler=(12, 16))),
    ],
    "ThrMma.partition_A": [
        ("box", "48 elements along mode 0, no multiple of the tile's 64",
         lambda: operand(WGMMA, "A", F16, cute.make_layout((48, 64), stride=(64, 1)))),
        ("box", "40 elements along mode 1",
         lambda: operand(WGMMA, "A", F16, cute.make_layout((64, 40), stride=(64, 1)))),
    ],
    "ThrMma.partition_B": [
        ("box", "48 elements along mode 0",
         lambda: operand(WGMMA, "B", F16, cute.make_layout((48, 64), stride=(64, 1)))),
    ],
    "ThrMma.partition_C": [
        ("box", "24 elements along mode 0, no multiple of the tile's 16", lambda: WARP.get_slice(0).partition_C(
            memory(F32, cute.make_layout((24, 8), stride=(8, 1)), 128, None))),
        ("order", "one mode", lambda: WARP.get_slice(0).partition_C(cute.make_rmem_tensor(8, F32))),
    ],
    "TiledMma.make_fragment_A": [
        ("type", "elements are BFloat16, but", lambda: operand(WGMMA, "A", BF16)),
        ("type", "elements are Float32, but", lambda: operand(UMMA, "A", F32, cute.make_layout((128, 64)))),
        ("swizzle", "a 0-byte swizzle: element", lambda: operand(WGMMA, "A", F16, ROWS, 1024, None)),
        ("swizzle", "a 64-byte swizzle: element", lambda: operand(WGMMA, "A", F16, ROWS, 1024, S64)),
        ("swizzle", "is none that wgmma has", lambda: operand(WGMMA, "A", F16, ROWS, 1024, OF_ELEMENTS)),
        ("order", "K-major operand has it at", lambda: operand(WGMMA, "A", F16, COLUMNS)),
        ("order", "must be .*as partition_A gives it|first mode must be", lambda: operand(WGMMA, "A", part="C")),
        ("order", "must be .*as partition_A gives it",
         lambda: operand(UMMA, "A", F16, cute.make_layout((128, 64), stride=(64, 1)), part="C")),
        ("alignment", "must be aligned to 32 bytes", lambda: operand(WGMMA, "A", F16, ROWS, 16)),
        ("target", "sm_90a|sm_100", lambda: product(WGMMA)),
    ],
    "TiledMma.make_fragment_B": [
        ("type", "elements are Int8, but", lambda: operand(WGMMA, "B", I8)),
        ("swizzle", "a 0-byte swizzle: element", lambda: operand(WGMMA, "B", F16, ROWS, 1024, None)),
        ("order", "K-major operand has it at", lambda: operand(WGMMA, "B", F16, COLUMNS)),
        ("alignment", "must be aligned to 32 bytes", lambda: operand(WGMMA, "B", F16, ROWS, 16)),
    ],
    "TiledMma.make_fragment_C": [
        ("order", "must be .*V, rest, rest", lambda: WARP.make_fragment_C(memory(F32, SQUARE, 128, None))),
    ],
    "nvgpu.cpasync.make_tiled_tma_atom": [
        *makers_of_tma(cpasync.make_tiled_tma_atom),
        ("box", "more than the 64 of swizzle", lambda: tma(lay=composed(S64))),
        ("box", "must be a multiple of 16", lambda: tma(lay=cute.make_layout((64, 4), stride=(4, 1)), tile=(64, 4))),
        ("order", "no run of elements", lambda: tma(lay=cute.make_layout((32, 128), stride=(128, 1)))),
        ("alignment", "stride of dimension 1 is 130 bytes", lambda: tma(array=padded)),
    ],
    **{
        f"nvgpu.make_tiled_tma_atom_{operand}": [
            *makers_of_tma(make, leave=("box", "target"), tile=(64, 64, 64), args=(WGMMA,)),
            ("box", "must hold a tile of shape", lambda make=make: of_mma(make, lay=cute.make_layout((64, 32)))),
            ("target", "must be a TMA operation", lambda make=make: of_mma(make, op=cpasync.CopyG2SOp())),
        ]
        for operand, make in zip("ABC", (
            nvgpu.make_tiled_tma_atom_A, nvgpu.make_tiled_tma_atom_B, nvgpu.make_tiled_tma_atom_C))
    },
    "nvgpu.cpasync.make_gather4_tma_atom": [
        ("swizzle", "TMA's swizzles are", lambda: four_rows(lay=composed(OF_ELEMENTS, FOUR))),
        ("box", "smem_layout", lambda: four_rows(lay=ROWS)),
        ("alignment", "not a multiple of 16 bytes", lambda: four_rows(array=unaligned)),
        ("target", "none that gathers", lambda: four_rows(op=cpasync.CopyBulkTensorTileG2SOp())),
    ],
    "nvgpu.cpasync.make_im2col_tma_atom": [
        ("swizzle", "TMA's swizzles are", lambda: im2col(lay=composed(OF_ELEMENTS, SQUARE))),
        ("box", "smem_layout", lambda: im2col(lay=ROWS)),
        ("alignment", "not a multiple of 16 bytes", lambda: im2col(array=shifted_image)),
        ("type", "internal_type Int8 of Float16", lambda: im2col(internal_type=I8)),
        ("target", "im2col|TMA", lambda: im2col(op=cpasync.CopyBulkTensorGather4G2SOp())),
    ],
    "utils.blackwell_helpers.make_smem_layout_a": [
        ("type", "is not a DType", lambda: sm100.make_smem_layout_a(UMMA, (128, 64, 64), np.float16, 2)),
        ("box", "M must be multiples of tiled_mma's", lambda: sm100.make_smem_layout_a(UMMA, (64, 64, 64), F16, 2)),
        ("box", "K must be multiples", lambda: sm100.make_smem_layout_a(UMMA, (128, 64, 24), F16, 2)),
        ("box", "num_stages 0", lambda: sm100.make_smem_layout_a(UMMA, (128, 64, 64), F16, 0)),
    ],
    "utils.blackwell_helpers.make_smem_layout_b": [
        ("box", "N must be multiples of tiled_mma's", lambda: sm100.make_smem_layout_b(UMMA, (128, 32, 64), F16, 2)),
    ],
    "utils.blackwell_helpers.make_smem_layout_epi": [
        ("type", "is not a DType", lambda: sm100.make_smem_layout_epi(np.float16, ROW, (128, 32), 2)),
        ("order", "is not a LayoutEnum", lambda: sm100.make_smem_layout_epi(F16, "row", (128, 32), 2)),
    ],
    "utils.make_smem_layout_a": [
        ("type", "is not one", lambda: sm90.make_smem_layout_a(ROW, (128, 128, 64), np.float16, 2)),
        ("order", "is not a LayoutEnum", lambda: sm90.make_smem_layout_a("row", (128, 128, 64), F16, 2)),
        ("box", "not made of whole atoms", lambda: sm90.make_smem_layout_a(ROW, (60, 128, 64), F16, 2)),
        ("box", "static multiple of 8 elements", lambda: sm90.make_smem_layout_a(COLUMN, (60, 128, 64), F16, 2)),
    ],
    "utils.make_smem_layout_b": [
        ("box", "not made of whole atoms", lambda: sm90.make_smem_layout_b(ROW, (128, 60, 64), F16, 2)),
    ],
    "utils.compute_smem_layout": [
        ("box", "M must be multiples of tiled_mma's",
         lambda: utils.compute_smem_layout(UMMA, (64, 64, 64), I8, F16, 2, 2)),
    ],
    "utils.make_smem_layout_epi": [
        ("order", "is not a LayoutEnum", lambda: sm90.make_smem_layout_epi(F16, "row", (64, 32), 2)),
        ("box", "static multiple of 8 elements", lambda: sm90.make_smem_layout_epi(F16, ROW, (64, 20), 2)),
        ("box", "not made of whole atoms", lambda: sm90.make_smem_layout_epi(F16, ROW, (60, 32), 2)),
    ],
    "utils.make_smem_layout": [
        ("box", "not made of whole atoms", lambda: utils.make_smem_layout(K, (60, 64), F16, 2)),
        ("box", "a multiple of 128", lambda: utils.make_smem_layout(K, (64, 20), F16, 2)),
    ],
    "utils.get_smem_layout_atom_ab": [
        ("box", "a multiple of 128", lambda: sm100.get_smem_layout_atom_ab(K, F16, (128, 20))),
    ],
    "utils.sm90_get_smem_layout_atom": [
        ("box", "static multiple of 8 elements", lambda: sm90.get_smem_layout_atom(ROW, F16, 20)),
    ],
}  # fmt: skip
HOST = ("tma_atom",)
"""Makers that the host alone calls."""
TARGETS = {"target": "sm_80"}


def test_no_function_that_fits_things_together_is_left_out():
    known = REFUSED.keys() | ELSEWHERE.keys()
    assert found() - known == set()
    assert known - found() - {"get_tensor"} == set()


def cases():
    for name, of in REFUSED.items():
        for at, (kind, words, call) in enumerate(of):
            yield pytest.param(name, kind, words, call, id=f"{name}-{kind}-{at}")


@pytest.mark.parametrize("name, kind, words, call", list(cases()))
def test_what_does_not_fit_is_refused(name, kind, words, call):
    if any(x in name for x in HOST):
        with pytest.raises(cute.CuteError, match=words):
            call()
        return
    call = traced(call)

    @cuda.jit
    def kernel():
        call()

    arch, said = TARGETS.get(kind, "sm_90a"), []
    engines = (lambda: cute.compile(kernel, (), arch=arch), lambda: cute.simulate(kernel, arch=arch)[1, 128]())
    for engine in engines:
        with pytest.raises(cute.CuteError, match=words) as error:
            engine()
        said.append(re.split(r" in kernel ", str(error.value))[0])
    assert said[0] == said[1]
