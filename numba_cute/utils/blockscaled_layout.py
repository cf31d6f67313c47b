# SPDX-License-Identifier: Apache-2.0
"""Layouts of scale factors: in global memory, in shared memory, and in tensor memory as block-scaled multiplies read
them.

The factors of 128 rows and 4 blocks of K are 512 bytes: row i has its 4 at byte 16 * (i % 32) + 4 * (i // 32), so
that a tcgen05.cp of 32 rows of 16 bytes puts them into 4 columns of tensor memory, a word for each row."""

from __future__ import annotations

from typing import Any

from .. import layout
from ..atoms.mma_atom import TiledMma
from ..isa.facts.tensor_memory import lane_stride
from ..layout import Layout, make_layout
from ..nvgpu.common import OperandMajorMode
from ..seam import CuteError, frozen, known_as, traced
from ..seam.guards.messages import how_static

__all__ = [
    "BlockScaledBasicChunk", "make_smem_layout_sfa", "make_smem_layout_sfb", "make_tmem_layout_sfa",
    "make_tmem_layout_sfb", "sm120_make_smem_layout_sfa", "sm120_make_smem_layout_sfb", "tile_atom_to_shape_SF",
]  # fmt: skip

_ROWS, _FACTORS, _LANES = 128, 4, 32
_CHUNK = _ROWS * _FACTORS
_LANE = lane_stride(8)


def _need(ok: bool, what: str, message: str) -> None:
    if not ok:
        raise CuteError(f"blockscaled_layout.{what}: {message}")


@frozen
@known_as("cute_utils.blockscaled_layout")
class BlockScaledBasicChunk:
    """Describe the factors that lie together: of 128 rows, 4 of each.

    sf_vec_size: the elements along K that have one factor, 16 or 32 (sparse: 32 or 64). major_mode:
    OperandMajorMode.K, or MN where rows are the second mode. Raises CuteError for others."""

    sf_vec_size: int
    major_mode: OperandMajorMode = OperandMajorMode.K

    def __post_init__(self) -> None:
        _need(
            self.sf_vec_size in (16, 32),
            "BlockScaledBasicChunk",
            f"sf_vec_size {self.sf_vec_size!r} must be 16, 32 or 64",
        )
        ok = isinstance(self.major_mode, OperandMajorMode)
        _need(ok, "BlockScaledBasicChunk", f"major_mode {self.major_mode!r} is not an OperandMajorMode")

    @property
    def layout(self) -> Layout:
        """From (row, element along K), or (element, row), to the factor."""
        rows, along = ((_LANES, 4), (16, 4)), ((self.sf_vec_size, _FACTORS), (0, 1))
        first, second = (rows, along) if self.major_mode is OperandMajorMode.K else (along, rows)
        return make_layout((first[0], second[0]), stride=(first[1], second[1]))


@traced
def tile_atom_to_shape_SF(Shape: Any, sf_vec_size: int) -> Layout:  # noqa: N802, N803
    """Make the layout of all scale factors of a matrix, from (row, element along K, batch) to the factor.

    Shape: (M or N, K, L) of the matrix, not of its factors. sf_vec_size: 16 or 32 (sparse: 32 or 64). Chunks of 128
    rows and 4 factors follow each other along K first. Raises CuteError for a shape of other modes."""
    ok = isinstance(Shape, tuple) and len(Shape) == 3
    _need(ok, "tile_atom_to_shape_SF", f"Shape {Shape!r} must have 3 modes: M or N, K, L")
    return layout.tile_to_shape(BlockScaledBasicChunk(sf_vec_size).layout, Shape, (1, 0, 2))  # type: ignore[no-any-return]


def _checked(what: str, tiled_mma: Any, tile: Any, sf_vec_size: Any) -> tuple[tuple[int, int, int], int]:
    """(the tile's extents, the factors of a row in one multiply)"""
    _need(isinstance(tiled_mma, TiledMma), what, f"tiled_mma {tiled_mma!r} is not a TiledMma")
    _need(isinstance(tile, tuple) and len(tile) == 3, what, f"tile {tile!r} must have 3 modes: M, N, K")
    _need(sf_vec_size in (16, 32, 64), what, f"sf_vec_size {sf_vec_size!r} must be 16, 32 or 64")
    m, n, k = layout.product_each(tile)
    one = tiled_mma.shape_mnk[2]
    _need(k % one == 0 and k % (_FACTORS * sf_vec_size) == 0, what,
          f"K {k} must be a multiple of the multiply's {one}, and of the {_FACTORS * sf_vec_size} elements of a "
          "chunk's 4 factors")  # fmt: skip
    return (m, n, k), one // sf_vec_size


def _along_k(k: int, sf_vec_size: int, per_k: int, chunk: int) -> tuple[Layout, Layout]:
    """K of one multiply, and the multiplies along K, whose chunks are `chunk` factors apart."""
    chunks = k // sf_vec_size // _FACTORS
    inner = make_layout((sf_vec_size, per_k), stride=(0, 1 if per_k > 1 else 0))
    steps = _FACTORS // per_k
    outer = _mode(chunks, chunk)
    if steps == 1:
        return inner, outer
    within = make_layout(steps, stride=per_k)
    return inner, within if chunks == 1 else make_layout((steps, chunks), stride=(per_k, chunk))


def _mode(extent: int, stride: int) -> Layout:
    return make_layout(extent, stride=stride if extent > 1 else 0)


def _in_shared(what: str, tiled_mma: Any, tile: Any, sf_vec_size: Any, num_stages: Any, operand: str) -> Layout:
    (m, n, k), per_k = _checked(what, tiled_mma, tile, sf_vec_size)
    _need(_FACTORS % per_k == 0, what, f"{per_k} factors of a row in one multiply do not make up chunks of 4")
    _need(
        type(num_stages) is int and num_stages > 0,
        what,
        f"num_stages {num_stages!r} must be a static number >= 1{how_static(num_stages)}",
    )
    ctas = layout.size(tiled_mma.thr_id)
    rows, one = (m // ctas, tiled_mma.shape_mnk[0] // ctas) if operand == "A" else (n, tiled_mma.shape_mnk[1])
    whole, padded = layout.round_up(rows, _ROWS), layout.round_up(one, _ROWS)
    row_chunk = k // sf_vec_size // _FACTORS * _CHUNK
    inner, steps = _along_k(k, sf_vec_size, per_k, _CHUNK)
    v = make_layout((make_layout((_LANES, 4), stride=(16, 4)), _mode(padded // _ROWS, row_chunk)))
    if operand == "A" and one < _ROWS:  # 64 rows of each CTA of a pair: two multiplies' rows are in one chunk
        count, apart = whole // one, one // _LANES * 4
    else:
        count, apart = whole // padded, padded // _ROWS * row_chunk
    one_stage = make_layout((make_layout((v, inner)), _mode(count, apart), steps))
    return make_layout((*(one_stage[i] for i in range(3)), make_layout(num_stages, stride=layout.cosize(one_stage))))


@traced
def make_smem_layout_sfa(tiled_mma: TiledMma, mma_tiler_mnk: Any, sf_vec_size: int, num_stages: int) -> Layout:
    """Make the shared memory layout of a CTA's scale factors of A: ((M, K), rest M, rest K, stages).

    tiled_mma: a tiled block-scaled operation. mma_tiler_mnk: the tile (M, N, K) of all its CTAs. sf_vec_size: 16 or
    32. num_stages: a static count. Where a pair has 64 rows each they are padded to 128. Raises CuteError for a K
    that is not of whole chunks of 4 factors."""
    return _in_shared("make_smem_layout_sfa", tiled_mma, mma_tiler_mnk, sf_vec_size, num_stages, "A")


@traced
def make_smem_layout_sfb(tiled_mma: TiledMma, mma_tiler_mnk: Any, sf_vec_size: int, num_stages: int) -> Layout:
    """Make the shared memory layout of a CTA's scale factors of B, those of the whole tile, padded to 128: ((N, K),
    rest N, rest K, stages). tiled_mma, mma_tiler_mnk, sf_vec_size, num_stages: as for `make_smem_layout_sfa`."""
    return _in_shared("make_smem_layout_sfb", tiled_mma, mma_tiler_mnk, sf_vec_size, num_stages, "B")


def _in_tensor_memory(what: str, tiled_mma: Any, tile: Any, sf_vec_size: Any, smem_layout: Any, operand: str) -> Layout:
    _checked(what, tiled_mma, tile, sf_vec_size)
    ok = isinstance(smem_layout, Layout) and layout.rank(smem_layout) == 3 and layout.rank(smem_layout[0]) == 2
    _need(ok, what, f"smem_layout {smem_layout!r} must have 3 modes: (MN, K), rest MN, rest K, of one stage")
    ctas, rest = layout.size(tiled_mma.thr_id), layout.size(smem_layout, (1,))
    per_k, of_k = layout.size(smem_layout, (0, 1)) // sf_vec_size, layout.size(smem_layout, (2,))
    whole = per_k > 0 and _FACTORS % per_k == 0 and per_k * of_k % _FACTORS == 0
    _need(whole, what, f"smem_layout {smem_layout!r}: its K must be 1, 2 or 4 factors, and with rest K chunks of 4")
    paired = operand == "B" and ctas == 2 and tiled_mma.shape_mnk[0] == _ROWS
    padded = _ROWS if operand == "A" else layout.round_up(tiled_mma.shape_mnk[1], _ROWS)
    words, k = padded // _LANES // (2 if paired else 1), per_k * of_k * sf_vec_size
    inner, steps = _along_k(k, sf_vec_size, per_k, 4 * words)
    if paired:
        inner = make_layout((sf_vec_size, per_k), stride=(0, 1))
        rows = make_layout(((_LANES, words), 2, 2), stride=((_LANE, 4), 2 * _LANES * _LANE, _LANES * _LANE))
    else:
        rows = make_layout(((_LANES, words), 4), stride=((_LANE, 4), _LANES * _LANE))
    chunks = k // sf_vec_size // _FACTORS
    return make_layout((make_layout((rows, inner)), _mode(rest, 4 * words * chunks), steps))


@traced
def make_tmem_layout_sfa(
    tiled_mma: TiledMma, mma_tiler_mnk: Any, sf_vec_size: int, smem_layout: Layout
) -> Layout:  # fmt: skip
    """Make the layout of A's scale factors in tensor memory, ((M, K), rest M, rest K), as bytes.

    tiled_mma, mma_tiler_mnk, sf_vec_size: as for `make_smem_layout_sfa`. smem_layout: one stage of what that makes, or
    of a part of K, whose shape the result has: its K is 1, 2 or 4 factors. Each row's are in a word, in each of four
    times 32 lanes. Raises CuteError for others."""
    return _in_tensor_memory("make_tmem_layout_sfa", tiled_mma, mma_tiler_mnk, sf_vec_size, smem_layout, "A")


@traced
def make_tmem_layout_sfb(
    tiled_mma: TiledMma, mma_tiler_mnk: Any, sf_vec_size: int, smem_layout: Layout
) -> Layout:  # fmt: skip
    """Make the layout of B's scale factors in tensor memory, ((N, K), rest N, rest K), as bytes.

    tiled_mma, mma_tiler_mnk, sf_vec_size, smem_layout: as for `make_tmem_layout_sfa`. Where a pair has 128 rows,
    lanes 64 and up have those of the second half of N."""
    return _in_tensor_memory("make_tmem_layout_sfb", tiled_mma, mma_tiler_mnk, sf_vec_size, smem_layout, "B")


def _of_warps(what: str, tiled_mma: Any, tile: Any, sf_vec_size: Any, num_stages: Any, mode: int) -> Layout:
    extents, per_k = _checked(what, tiled_mma, tile, sf_vec_size)
    rows, k = extents[mode], extents[2]
    _need(_FACTORS % per_k == 0, what, f"{per_k} factors of a row in one multiply do not make up chunks of 4")
    _need(rows % _ROWS == 0, what, f"the tile's {rows} rows must be a multiple of {_ROWS}")
    _need(
        type(num_stages) is int and num_stages > 0,
        what,
        f"num_stages {num_stages!r} must be a static number >= 1{how_static(num_stages)}",
    )
    blocks, chunks = rows // _ROWS, k // sf_vec_size // _FACTORS
    along_mn = make_layout((_mode(blocks, _CHUNK), make_layout((_LANES, 4), stride=(16, 4))))
    one = make_layout((sf_vec_size, per_k), stride=(0, 1))
    steps = make_layout((_FACTORS // per_k, chunks), stride=(per_k, blocks * _CHUNK))
    mn = make_layout((along_mn[1][0], along_mn[1][1], along_mn[0]))
    along_k = make_layout((*(one[i] for i in range(2)), *(steps[i] for i in range(2))))
    return make_layout((mn, along_k, make_layout(num_stages, stride=blocks * chunks * _CHUNK)))


@traced
def sm120_make_smem_layout_sfa(
    tiled_mma: TiledMma, tile_shape_mnk: Any, sf_vec_size: int, num_stages: int
) -> Layout:  # fmt: skip
    """Make the shared memory layout of A's scale factors for the operations of warps, (M, K, stages).

    tiled_mma: a tiled block-scaled operation of nvgpu.warp. tile_shape_mnk: the tile. sf_vec_size: 16 or 32 (sparse:
    32 or 64). num_stages: a static count. Raises CuteError for an M that is not a multiple of 128, or a K not of whole
    chunks of 4 factors."""
    return _of_warps("sm120_make_smem_layout_sfa", tiled_mma, tile_shape_mnk, sf_vec_size, num_stages, 0)


@traced
def sm120_make_smem_layout_sfb(
    tiled_mma: TiledMma, tile_shape_mnk: Any, sf_vec_size: int, num_stages: int
) -> Layout:  # fmt: skip
    """Make the shared memory layout of B's scale factors for the operations of warps, (N, K, stages). tiled_mma,
    tile_shape_mnk, sf_vec_size, num_stages: as for `sm120_make_smem_layout_sfa`."""
    return _of_warps("sm120_make_smem_layout_sfb", tiled_mma, tile_shape_mnk, sf_vec_size, num_stages, 1)
