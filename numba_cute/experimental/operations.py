# SPDX-License-Identifier: Apache-2.0
"""The operations on both sides of a pipeline, and of TMA.

Names and parameters are those that NVIDIA documents of `cute.experimental`."""

from __future__ import annotations

from typing import Any

from ..nvgpu.common import CtaGroup
from ..nvgpu.hopper.tma_ops import CopyBulkTensorTileG2SMulticastOp, CopyBulkTensorTileG2SOp
from ..seam import CuteError, StaticEnum

__all__ = ["OperationTypeEnum"]


class OperationTypeEnum(StaticEnum):
    """The operations that copy or multiply, by which a pipeline knows who arrives, and a load how TMA does it.

    SM90_TMA_LOAD, SM90_TMA_LOAD_MULTICAST: TMA, to this block or to several of a cluster. SM100_TMA_LOAD_2SM,
    SM100_TMA_LOAD_2SM_MULTICAST: the same, completed on the barrier of the first block of a pair. SM90_MMA_SS,
    SM90_MMA_RS: wgmma with A in shared memory or in registers. SM100_MMA_1SM_SS, …: tcgen05.mma by one block or a pair,
    with A in shared (SS) or in tensor memory (TS). SM100_COPY_T2R, SM100_COPY_R2T: tensor memory to registers and
    back. SM80_CP_ASYNC: cp.async. SIMT: threads, by ordinary loads and stores.

    >>> from numba_cute import experimental as ext
    >>> [kind.name for kind in ext.OperationTypeEnum if "SM90" in kind.name]
    ['SM90_TMA_LOAD', 'SM90_TMA_LOAD_MULTICAST', 'SM90_TMA_STORE', 'SM90_MMA_SS', 'SM90_MMA_RS']
    """

    SIMT = "threads"
    SM80_CP_ASYNC = "cp.async"
    SM90_TMA_LOAD = "TMA"
    SM90_TMA_LOAD_MULTICAST = "TMA multicast"
    SM90_TMA_STORE = "TMA store"
    SM90_MMA_SS = "wgmma"
    SM90_MMA_RS = "wgmma with A in registers"
    SM100_TMA_LOAD_2SM = "TMA for a pair"
    SM100_TMA_LOAD_2SM_MULTICAST = "TMA multicast for pairs"
    SM100_MMA_1SM_SS = "tcgen05.mma"
    SM100_MMA_1SM_TS = "tcgen05.mma with A in tensor memory"
    SM100_MMA_2SM_SS = "tcgen05.mma of a pair"
    SM100_MMA_2SM_TS = "tcgen05.mma of a pair with A in tensor memory"
    SM100_COPY_T2R = "tcgen05.ld"
    SM100_COPY_R2T = "tcgen05.st"


_T = OperationTypeEnum
TMA_LOADS = (_T.SM90_TMA_LOAD, _T.SM90_TMA_LOAD_MULTICAST, _T.SM100_TMA_LOAD_2SM, _T.SM100_TMA_LOAD_2SM_MULTICAST)
MULTICASTS = (_T.SM90_TMA_LOAD_MULTICAST, _T.SM100_TMA_LOAD_2SM_MULTICAST)
PAIRS = (
    _T.SM100_TMA_LOAD_2SM, _T.SM100_TMA_LOAD_2SM_MULTICAST, _T.SM100_MMA_2SM_SS, _T.SM100_MMA_2SM_TS
)  # fmt: skip
UMMAS = (_T.SM100_MMA_1SM_SS, _T.SM100_MMA_1SM_TS, _T.SM100_MMA_2SM_SS, _T.SM100_MMA_2SM_TS)
WGMMAS = (_T.SM90_MMA_SS, _T.SM90_MMA_RS)


def one_of(kind: Any, kinds: tuple[OperationTypeEnum, ...], what: str, name: str) -> OperationTypeEnum:
    """Refuse an operation that is none of some."""
    if kind not in kinds:
        raise CuteError(f"{what}: {name} {kind!r} must be one of {', '.join(k.name for k in kinds)}")
    return kind  # type: ignore[no-any-return]


def load_op(kind: OperationTypeEnum) -> Any:
    """Give the copy operation of a TMA load."""
    op = CopyBulkTensorTileG2SMulticastOp if kind in MULTICASTS else CopyBulkTensorTileG2SOp
    return op(cta_group=CtaGroup.TWO if kind in PAIRS else CtaGroup.ONE)
