# SPDX-License-Identifier: Apache-2.0
"""Dynamic tile schedulers: a cluster that is done early takes more of the work.

Both write a response of 16 bytes into shared memory of every CTA of the cluster and complete it on the mbarrier there,
so that a `pipeline.PipelineClcFetchAsync` hands it over: one warp of the CTA of rank 0 acquires, calls
`advance_to_next_work` with the stage's barrier, and all who follow the schedule wait, call `get_current_work`, and
release.
"""

from __future__ import annotations

from typing import Any

from .. import dtypes
from ..dtypes import Int32, Uint64
from ..isa.rows.atomic import atom
from ..isa.rows.clc import RESPONSE_BYTES, clc_query, clc_try_cancel
from ..isa.rows.cluster import mapa, st_async
from ..isa.rows.fence import fence_acq_rel, fence_proxy_async
from ..isa.rows.mbarrier import mbarrier_complete_tx
from ..isa.rows.sync import elect_sync
from ..seam import CuteError, Int, current, frozen, quotient, remainder, struct, traced
from ..tensor.pointer import AddressSpace, Pointer, check_writable, shared_address
from ..tensor.tensor import Tensor, make_tensor
from .tile_scheduler import PersistentTileSchedulerParams, WorkTileInfo, check_params, work_at

__all__ = [
    "ClcDynamicPersistentTileScheduler", "ClcDynamicPersistentTileSchedulerParams", "DynamicPersistentTileScheduler",
]  # fmt: skip


@frozen
class ClcDynamicPersistentTileSchedulerParams(PersistentTileSchedulerParams):
    """The tiles of a problem and their order, for a grid of one cluster for each piece of work.

    problem_shape_ntile_mnl, cluster_shape_mnk, swizzle_size, raster_along_m: as for `PersistentTileSchedulerParams`.

    >>> params = utils.ClcDynamicPersistentTileSchedulerParams((4, 2, 1), (1, 1, 1))
    >>> utils.ClcDynamicPersistentTileScheduler.get_grid_shape(params)
    (4, 2, 1)
    """

    def get_grid_shape(self, max_active_clusters: int = 1) -> tuple[int, int, int]:
        """Return the grid: a CTA for each tile, in whole clusters. Most clusters never start: others take their work
        over. max_active_clusters: accepted; it changes nothing."""
        m, n, batch = (int(x) for x in self.problem_shape_ncluster_mnl)
        cm, cn, _ = self.cluster_shape_mnk
        return m * cm, n * cn, batch


@struct
class ClcDynamicPersistentTileScheduler:
    """A schedule that takes over the work of clusters of the grid that have not started. `create` makes one for each
    warp that follows it. PTX clusterlaunchcontrol, sm_100.

    >>> params = utils.ClcDynamicPersistentTileSchedulerParams((3, 1, 1), (1, 1, 1))
    >>> def kernel():
    ...     responses = arch.alloc_smem(cute.Int32, 4, alignment=16)
    ...     one = pipeline.CooperativeGroup(pipeline.Agent.Thread)
    ...     pipe = pipeline.PipelineClcFetchAsync.create(num_stages=1, producer_group=one, consumer_group=one)
    ...     producer, consumer = pipe.make_participants()
    ...     create = utils.ClcDynamicPersistentTileScheduler.create
    ...     scheduler = create(params, arch.block_idx(), arch.grid_dim(), responses)
    ...     work = scheduler.initial_work_tile_info()
    ...     while work.is_valid_tile:
    ...         print(work.tile_idx[0])
    ...         ahead = producer.acquire_and_advance()
    ...         scheduler.advance_to_next_work(ahead.barrier, ahead.index)
    ...         stage = consumer.wait_and_advance()
    ...         work = scheduler.get_current_work(stage.index)
    ...         stage.release()
    ...     producer.tail()
    >>> cute.simulate(kernel, arch="sm_100a")[3, 1]()
    0
    1
    2
    """

    params: ClcDynamicPersistentTileSchedulerParams
    response: Pointer
    cta_m: Int32
    cta_n: Int32
    first_work_linear_idx: Int32
    num_tiles_executed: Int32

    @staticmethod
    @traced
    def create(
        params: ClcDynamicPersistentTileSchedulerParams,
        block_idx: tuple[Int, Int, Int],
        grid_dim: tuple[Int, Int, Int],
        clc_response_ptr: Pointer,
    ) -> ClcDynamicPersistentTileScheduler:
        """Make the scheduler of this CTA.

        params: a ClcDynamicPersistentTileSchedulerParams. block_idx, grid_dim: `arch.block_idx()` and `arch.grid_dim()`
        of a grid of the shape that `params` gives. clc_response_ptr: 16 bytes of shared memory for each stage, 16-byte
        aligned, at the same place in all CTAs.
        """
        check_params("ClcDynamicPersistentTileScheduler", params, ClcDynamicPersistentTileSchedulerParams)
        _check_response("ClcDynamicPersistentTileScheduler", clc_response_ptr)
        cm, cn, _ = params.cluster_shape_mnk
        x, y, z = (dtypes.Int32(i) for i in block_idx)
        first = _linear(params, x, y, z)
        at = remainder(x, cm), remainder(y, cn)
        return ClcDynamicPersistentTileScheduler(params, clc_response_ptr, *at, first, 0)

    @staticmethod
    def get_grid_shape(params: ClcDynamicPersistentTileSchedulerParams) -> tuple[int, int, int]:
        """Return `params.get_grid_shape()`, the grid to launch: a CTA for each tile, in whole clusters. On the host."""
        check_params("get_grid_shape", params, ClcDynamicPersistentTileSchedulerParams)
        return params.get_grid_shape()

    @traced
    def initial_work_tile_info(self) -> WorkTileInfo:
        """Return the tile of this cluster itself, as a WorkTileInfo."""
        return work_at(self.params, self.first_work_linear_idx, dtypes.Boolean(True), self.cta_m, self.cta_n)

    @traced
    def get_current_work(self, stage: Int = 0) -> WorkTileInfo:
        """Return the tile of the response of `stage`, as a WorkTileInfo. Any thread, which has waited for it; it then
        releases the stage. PTX clusterlaunchcontrol.query_cancel, sm_100."""
        x, y, z, valid = clc_query(_response(self, stage))
        fence_proxy_async(space="shared::cta")  # the next response is written by the async proxy
        index = _linear(self.params, dtypes.Int32(x), dtypes.Int32(y), dtypes.Int32(z))
        return work_at(self.params, index, valid, self.cta_m, self.cta_n)

    @traced
    def advance_to_next_work(self, mbarrier_addr: Pointer | Int, stage: Int = 0) -> None:
        """Request another cluster's work: the response comes to `stage`, with 16 bytes on the barrier there,
        `mbarrier_addr`. One whole warp of the CTA of rank 0; one elected lane asks. PTX
        clusterlaunchcontrol.try_cancel, sm_100."""
        cm, cn, _ = self.params.cluster_shape_mnk
        several = cm * cn > 1
        bar = shared_address(mbarrier_addr, "advance_to_next_work")
        current().when(elect_sync(), lambda: clc_try_cancel(_response(self, stage), bar, multicast=several))
        self.num_tiles_executed = self.num_tiles_executed + 1


@struct
class DynamicPersistentTileScheduler:
    """A schedule that draws its work from a counter in global memory. `create` makes one for each warp that follows it.

    It is used as `ClcDynamicPersistentTileScheduler` is, with the grid of `PersistentTileSchedulerParams`, and needs no
    Blackwell. The counter must be 0 when the kernel starts. PTX atom, st.async, sm_90.

    >>> params = utils.PersistentTileSchedulerParams((3, 1, 1), (1, 1, 1))
    >>> def kernel(counter):
    ...     responses = arch.alloc_smem(cute.Int32, 4, alignment=16)
    ...     one = pipeline.CooperativeGroup(pipeline.Agent.Thread)
    ...     pipe = pipeline.PipelineClcFetchAsync.create(num_stages=1, producer_group=one, consumer_group=one)
    ...     producer, consumer = pipe.make_participants()
    ...     create = utils.DynamicPersistentTileScheduler.create
    ...     scheduler = create(params, arch.block_idx(), arch.grid_dim(), responses, counter)
    ...     work = scheduler.initial_work_tile_info()
    ...     while work.is_valid_tile:
    ...         print(work.tile_idx[0])
    ...         ahead = producer.acquire_and_advance()
    ...         scheduler.advance_to_next_work(ahead.barrier, ahead.index)
    ...         stage = consumer.wait_and_advance()
    ...         work = scheduler.get_current_work(stage.index)
    ...         stage.release()
    ...     producer.tail()
    >>> cute.simulate(kernel)[1, 1](np.zeros(1, np.int32))
    0
    1
    2
    """

    params: PersistentTileSchedulerParams
    response: Pointer
    counter: Uint64
    num_persistent_clusters: Int32
    cta_m: Int32
    cta_n: Int32
    first_work_linear_idx: Int32
    num_tiles_executed: Int32

    @staticmethod
    @traced
    def create(
        params: PersistentTileSchedulerParams,
        block_idx: tuple[Int, Int, Int],
        grid_dim: tuple[Int, Int, Int],
        response_ptr: Pointer,
        counter: Any,
    ) -> DynamicPersistentTileScheduler:
        """Make the scheduler of this CTA.

        params: a PersistentTileSchedulerParams. block_idx, grid_dim, response_ptr: as in
        `ClcDynamicPersistentTileScheduler.create`. counter: an array, tensor or pointer of one 32-bit integer of global
        memory.
        """
        what = "DynamicPersistentTileScheduler"
        check_params(what, params, PersistentTileSchedulerParams)
        _check_response(what, response_ptr)
        pointer = counter if isinstance(counter, Pointer) else _tensor(counter).iterator
        if not isinstance(pointer, Pointer) or pointer.dtype.width != 32 or pointer.space is AddressSpace.smem:
            raise CuteError(f"{what}: counter {pointer!r} must be a 32-bit integer in global memory")
        check_writable(pointer, f"{what}: counter")
        cm, cn, _ = params.cluster_shape_mnk
        x, y, z = (dtypes.Int32(i) for i in block_idx)
        clusters = dtypes.Int32(grid_dim[2])
        address = dtypes.Uint64(pointer.address)
        at = remainder(x, cm), remainder(y, cn)
        return DynamicPersistentTileScheduler(params, response_ptr, address, clusters, *at, z, 0)

    @staticmethod
    def get_grid_shape(params: PersistentTileSchedulerParams, max_active_clusters: int) -> tuple[int, int, int]:
        """Return `params.get_grid_shape(max_active_clusters)`, the grid to launch. On the host."""
        check_params("get_grid_shape", params, PersistentTileSchedulerParams)
        return params.get_grid_shape(max_active_clusters)

    @traced
    def initial_work_tile_info(self) -> WorkTileInfo:
        """Return the first tile, by the cluster's place in the grid, as a WorkTileInfo."""
        first = self.first_work_linear_idx
        valid = current().compare("<", first, self.params.num_clusters)
        return work_at(self.params, first, valid, self.cta_m, self.cta_n)

    @traced
    def get_current_work(self, stage: Int = 0) -> WorkTileInfo:
        """Return the tile of the response of `stage`, as a WorkTileInfo. Any thread, which has waited for it; it then
        releases the stage."""
        (index,) = current().load(Int32, "smem", _response(self, stage), 1, 4)
        valid = current().compare("<", index, self.params.num_clusters)
        return work_at(self.params, index, valid, self.cta_m, self.cta_n)

    @traced
    def advance_to_next_work(self, mbarrier_addr: Pointer | Int, stage: Int = 0) -> None:
        """Draw the next tile: the response comes to `stage` of every CTA of the cluster, with 16 bytes on the barrier
        there, `mbarrier_addr`. One whole warp of the CTA of rank 0; one elected lane draws. PTX atom.add, sm_70;
        st.async, sm_90."""
        cm, cn, _ = self.params.cluster_shape_mnk
        bar = shared_address(mbarrier_addr, "advance_to_next_work")

        def draw() -> None:
            index = (
                dtypes.Int32(atom(self.counter, 1, space="global", op="add", type="u32", sem="relaxed", scope="gpu"))
                + self.num_persistent_clusters
            )
            _respond(_response(self, stage), (index, 0, 0, 0), bar, cm * cn)

        current().when(elect_sync(), draw)
        self.num_tiles_executed = self.num_tiles_executed + 1


def _tensor(counter: Any) -> Any:
    return counter if isinstance(counter, Tensor) else make_tensor(counter, 1)


def _response(scheduler: Any, stage: Any) -> Any:
    return scheduler.response.address + stage * RESPONSE_BYTES


def _respond(response: Any, words: tuple[Any, ...], bar: Any, ctas: int) -> None:
    """Write a response into each CTA of the cluster and complete its bytes there. One thread."""
    if ctas > 1:
        for rank in range(ctas):
            st_async(mapa(response, rank), words, mapa(bar, rank), count=4)
        return
    # A CTA alone has no peers: compute-sanitizer refuses st.async there.
    current().store(Int32, "smem", response, words, RESPONSE_BYTES)
    fence_acq_rel(scope="cta")  # with the relaxed completion after it, a release of what was stored
    mbarrier_complete_tx(bar, RESPONSE_BYTES)


def _check_response(what: str, pointer: Any) -> None:
    ok = isinstance(pointer, Pointer) and pointer.space is AddressSpace.smem
    if not ok or pointer.alignment % RESPONSE_BYTES:
        raise CuteError(
            f"{what}: response pointer {pointer!r} must point to {RESPONSE_BYTES} bytes of shared memory a stage, "
            f"aligned to {RESPONSE_BYTES}: SmemAllocator().allocate_array(cute.Int32, 4, {RESPONSE_BYTES})"
        )


def _linear(params: PersistentTileSchedulerParams, x: Any, y: Any, z: Any) -> Any:
    """The place of a CTA's cluster in the grid, x first."""
    m, n, _ = params.problem_shape_ncluster_mnl
    cm, cn, _ = params.cluster_shape_mnk
    return quotient(x, cm) + m * (quotient(y, cn) + n * z)
