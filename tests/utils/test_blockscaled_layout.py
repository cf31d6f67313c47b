# SPDX-License-Identifier: Apache-2.0
"""Scale factors in tensor memory by shapes of shared memory that are not those of one multiply, as sm_103's are."""

import pytest

import numba_cute as cute
from numba_cute.nvgpu import tcgen05
from numba_cute.utils import blockscaled_layout as scaled

OP = tcgen05.MmaMXF4NVF4Op(
    cute.Float8E4M3FN, (128, 128, 64), tcgen05.CtaGroup.ONE, tcgen05.OperandSource.SMEM
)  # fmt: skip
MMA, TILE = cute.make_tiled_mma(OP), (128, 128, 256)
ROWS = ((32, 4), 1)


def of_part(per_k, rest):
    return cute.make_layout(((ROWS, (16, per_k)), 1, rest))


@pytest.mark.parametrize("per_k", [1, 2, 4])
def test_a_factor_lies_in_its_word_whatever_k_it_is_asked_by(per_k):
    lay = scaled.make_tmem_layout_sfa(MMA, TILE, 16, of_part(per_k, 24 // per_k))
    whole = scaled.make_tmem_layout_sfa(MMA, TILE, 16, of_part(4, 6))
    for row in (0, 33, 127):
        for factor in range(24):
            at = ((((row % 32, row // 32), 0), (0, factor % per_k)), 0, factor // per_k)
            word = ((((row % 32, row // 32), 0), (0, factor % 4)), 0, factor // 4)
            assert cute.crd2idx(at, lay) == cute.crd2idx(word, whole)


def test_other_shapes_are_refused():
    for smem in (of_part(3, 8), of_part(2, 3), cute.make_layout((128, 1, 4))):
        with pytest.raises(cute.CuteError, match="make_tmem_layout_sfa: smem_layout"):
            scaled.make_tmem_layout_sfa(MMA, TILE, 16, smem)
