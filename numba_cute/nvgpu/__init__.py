# SPDX-License-Identifier: Apache-2.0
"""Operations of NVIDIA GPUs: warp, warpgroup (wgmma), tcgen05 (Blackwell's matrix unit) and cpasync (TMA)."""

from ..atoms.op import CopyTraits as _CopyTraits, MmaTraits as _MmaTraits
from ..seam.guards import facade as _facade
from . import cpasync as cpasync, tcgen05 as tcgen05, warp as warp, warpgroup as warpgroup
from .common import *
from .hopper.im2col import make_im2col_tma_atom_A as make_im2col_tma_atom_A
from .hopper.mma_tile import *

MmaUniversalTrait = _MmaTraits
# One class of traits for all copies.
CopyUniversalTrait = CopyG2RTrait = CopyR2GTrait = CopyS2RTrait = CopyR2STrait = _CopyTraits

_facade.publish(globals(), cpasync, tcgen05, warp, warpgroup)
