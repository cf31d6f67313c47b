# SPDX-License-Identifier: Apache-2.0
"""The main loop of a product on Blackwell, by one warp.

Names and parameters are those that NVIDIA's examples use of `cute.experimental`."""

from __future__ import annotations

from typing import Any

from .. import layout
from ..atoms.mma_atom import TiledMma
from ..nvgpu.tcgen05 import Field
from ..seam import CuteError, Int, current, traced
from ..seam.guards.messages import how_static
from ..tensor.tensor import Tensor, slice_tensor
from .math import dot
from .pipelines import GenericPipelineBase

__all__ = ["mainloop_mma"]


@traced
def mainloop_mma(
    tiled_mma: TiledMma, a: Tensor, b: Tensor, accumulators: Tensor, first_k_tile: int, k_tiles: Int,
    mma_inst_tile_k: int, a_pipe: GenericPipelineBase, b_pipe: GenericPipelineBase,
) -> tuple[Any, Any]:  # fmt: skip
    """Multiply all tiles of K as they come: accumulators = a @ b.T. Gives (a_pipe, b_pipe), which have gone on by
    `k_tiles` stages. One whole converged warp, of a pair that of the leading block.

    tiled_mma: a tiled tcgen05 operation. a, b: shared memory as it was allocated, (V, M or N, K, stages). accumulators:
    of one stage, (V, M, N), in tensor memory; the first multiply overwrites them. first_k_tile: 0. k_tiles: how many
    tiles. mma_inst_tile_k: multiplies of a tile (static). a_pipe, b_pipe: the pipelines that fill a and b, or one for
    both: each stage is waited for, multiplied and released. It commits nothing else. Raises CuteError for others, and
    as `dot` does. PTX tcgen05.mma, sm_100f."""
    what = "mainloop_mma"
    if not isinstance(tiled_mma, TiledMma):
        raise CuteError(f"{what}: tiled_mma {tiled_mma!r} is not a TiledMma")
    for name, t, rank in (("a", a, 4), ("b", b, 4), ("accumulators", accumulators, 3)):
        if not isinstance(t, Tensor) or layout.rank(t.layout) != rank:
            raise CuteError(f"{what}: {name} {t!r} must be a tensor of {rank} modes")
    for name, pipe in (("a_pipe", a_pipe), ("b_pipe", b_pipe)):
        if not isinstance(pipe, GenericPipelineBase):
            raise CuteError(f"{what}: {name} {pipe!r} is no pipeline of cute.experimental")
    if type(first_k_tile) is not int or first_k_tile != 0:
        raise CuteError(f"{what}: first_k_tile {first_k_tile!r} must be 0")
    if type(mma_inst_tile_k) is not int or mma_inst_tile_k < 1:
        raise CuteError(
            f"{what}: mma_inst_tile_k {mma_inst_tile_k!r} must be a static number of at least 1"
            f"{how_static(mma_inst_tile_k)}"
        )
    shared = _are_one(a_pipe, b_pipe)

    def tile(k: Any) -> None:
        _, at = a_pipe.consumer_wait_and_get_stage()
        _unless(shared, b_pipe.consumer_wait)
        of_b = current().select(shared, at, b_pipe.consumer_state.index)
        for block in range(mma_inst_tile_k):
            goes_on = True if block else current().compare("!=", k, 0)
            atom = tiled_mma.set(Field.ACCUMULATE, goes_on)
            dot(atom, _block(a, block, at), _block(b, block, of_b), accumulators)
        a_pipe.consumer_release_and_advance()
        _unless(shared, b_pipe.consumer_release_and_advance)

    current().loop(0, k_tiles, tile)
    return a_pipe, b_pipe


def _block(t: Tensor, block: int, stage: Any) -> Tensor:
    part = slice_tensor(t, (None, None, block, stage))
    return part._relaid(lambda lay: layout.append_ones(lay, 3))


def _are_one(a: Any, b: Any) -> Any:
    """Compare two pipelines by the addresses of their barriers; gives whether they are the same."""
    if a is b:
        return True
    x, y = (p.raw_pipeline.sync_object_full.get_barrier(0).address for p in (a, b))
    return current().compare("==", x, y)


def _unless(shared: Any, do: Any) -> None:
    if shared is not True:
        current().when(current().compare("==", shared, False), do)
