# SPDX-License-Identifier: Apache-2.0
"""Asynchronous copies between global and shared memory: by each thread (`CopyG2SOp`, cp.async, sm_80), and by the TMA
unit (the others, sm_90).

A load completes its bytes on an mbarrier in each block that receives them, and somebody must have said to expect
them. A store belongs to its thread's bulk group: `arch.cp_async_bulk_commit_group` closes it,
`arch.cp_async_bulk_wait_group` waits. Before a store reads what threads wrote, each of them calls
`arch.fence_proxy("async.shared", space="cta")`, and then comes a barrier.
"""

from .ampere.copy_g2s import CopyG2SOp
from .common import CtaGroup, LoadCacheMode, ReductionOp
from .hopper.bulk import (
    CopyBulkG2SMulticastOp,
    CopyBulkG2SOp,
    CopyBulkS2GByteMaskOp,
    CopyBulkS2GOp,
    CopyBulkS2SOp,
    CopyReduceBulkS2GOp,
    CopyReduceBulkS2SOp,
    group_bulk_copy_modes,
)
from .hopper.dsmem import CopyDsmemStoreOp
from .hopper.im2col import (
    CopyBulkTensorIm2ColG2SMulticastOp,
    CopyBulkTensorIm2ColG2SOp,
    CopyBulkTensorIm2ColS2GOp,
    make_im2col_tma_atom,
)
from .hopper.partition import create_tma_multicast_mask, prefetch_descriptor, tma_partition
from .hopper.tensor_map import (
    copy_tensormap,
    cp_fence_tma_desc_release,
    fence_tma_desc_acquire,
    fence_tma_desc_release,
    update_tma_descriptor,
)
from .hopper.tma import TmaInfo, make_tiled_tma_atom
from .hopper.tma_ops import (
    CopyBulkTensorTileG2SMulticastOp,
    CopyBulkTensorTileG2SOp,
    CopyBulkTensorTileS2GOp,
    CopyReduceBulkTensorTileS2GOp,
    TmaCopyOp,
)

__all__ = [
    "CopyBulkG2SMulticastOp",
    "CopyBulkG2SOp",
    "CopyBulkS2GByteMaskOp",
    "CopyBulkS2GOp",
    "CopyBulkS2SOp",
    "CopyBulkTensorIm2ColG2SMulticastOp",
    "CopyBulkTensorIm2ColG2SOp",
    "CopyBulkTensorIm2ColS2GOp",
    "CopyBulkTensorTileG2SMulticastOp",
    "CopyBulkTensorTileG2SOp",
    "CopyBulkTensorTileS2GOp",
    "CopyDsmemStoreOp",
    "CopyG2SOp",
    "CopyReduceBulkS2GOp",
    "CopyReduceBulkS2SOp",
    "CopyReduceBulkTensorTileS2GOp",
    "CtaGroup",
    "LoadCacheMode",
    "ReductionOp",
    "TmaCopyOp",
    "TmaInfo",
    "copy_tensormap",
    "cp_fence_tma_desc_release",
    "create_tma_multicast_mask",
    "fence_tma_desc_acquire",
    "fence_tma_desc_release",
    "group_bulk_copy_modes",
    "make_im2col_tma_atom",
    "make_tiled_tma_atom",
    "prefetch_descriptor",
    "tma_partition",
    "update_tma_descriptor",
]
