# SPDX-License-Identifier: Apache-2.0
"""Machine code is read: instructions by kind, and the loop that multiplies; what has grown is told."""

from dataclasses import dataclass

import numpy as np
import pytest

from benchmarks import code, code_kernels, machine_code
from numba_cute.compiler.host.ptxas import Resources
from numba_cute.kernels.attention import plan
from numba_cute.kernels.attention.options import HEAD_DIMS

SASS = """
.text.kernel:
        /*0000*/                   LDC R1, c[0x0][0x37c] ;
.L_x_0:
        /*0010*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R2], R3 ;
        /*0020*/              @!P0 BRA `(.L_x_2) ;
.L_x_1:
        /*0030*/                   HGMMA.64x128x16.F32 R24, gdesc[UR24], R24 ;
        /*0040*/                   UIADD3 UR4, UR4, 0x1, URZ ;
        /*0050*/                   FADD R5, R5, R6 ;
        /*0060*/               @P1 BRA `(.L_x_0) ;
        /*0070*/                   STG.E desc[UR8][R2.64], R5 ;
        /*0080*/                   EXIT ;
.L_x_2:
        /*0090*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R2], R3 ;
        /*00a0*/              @!P0 BRA `(.L_x_2) ;
        /*00b0*/                   BRA `(.L_x_1) ;
.L_x_3:
        /*00c0*/                   BRA `(.L_x_3);
        /*00d0*/                   NOP;
"""


def test_the_loop_that_multiplies_is_found():
    read = machine_code.read(SASS)
    assert len(read.instructions) == 12 and read.loops == [[1, 2, 3, 4, 5, 6], [9, 10]]
    names = [x.name for x in machine_code.main_loop(read)]
    assert names == ["SYNCS", "BRA", "HGMMA", "UIADD3", "FADD", "BRA"]
    found = machine_code.summary(SASS)
    assert found["all"] == 12 and found["loop"] == 6
    kinds = {"tensor": 1, "memory": 0, "mathematics": 1, "synchronisation": 1, "other": 3}
    assert found["loop_kinds"] == kinds


def test_of_a_loop_of_wgmma_what_multiplies_otherwise_is_not_counted():
    seldom = """
        /*0032*/               @!P2 BRA `(.L_x_4) ;
.L_x_5:
        /*0034*/                   HMMA.16816.F32 R4, R8, R12, R4 ;
        /*0036*/                   FADD R5, R5, R6 ;
        /*0038*/               @P3 BRA `(.L_x_5) ;
.L_x_4:
        /*0040*/                   UIADD3"""
    text = SASS.replace("\n        /*0040*/                   UIADD3", seldom, 1)
    assert text != SASS
    names = [x.name for x in machine_code.main_loop(machine_code.read(text))]
    assert names == ["SYNCS", "BRA", "HGMMA", "BRA", "UIADD3", "FADD", "BRA"]


@pytest.mark.parametrize(
    ("instruction", "kind"),
    [
        ("UTCHMMA.2CTA gdesc[UR4]", "tensor"), ("QGMMA.64x64x32.F32 R8", "tensor"), ("HMMA.16816.F32 R4", "tensor"),
        ("LDSM.16.M88.4 R4", "memory"), ("UTMALDG.2D [UR8]", "memory"), ("STTM.x32 tmem[UR4]", "memory"),
        ("MUFU.EX2 R3, R4", "mathematics"), ("F2FP.BF16.F32.PACK_AB R3", "mathematics"), ("FMNMX R3", "mathematics"),
        ("WARPGROUP.DEPBAR.LE gsb0", "synchronisation"), ("BAR.SYNC R3", "synchronisation"),
        ("UTCBAR [UR4]", "synchronisation"), ("IMAD.MOV.U32 R3", "other"), ("R2UR UR4, R3", "other"),
    ],
)  # fmt: skip
def test_instructions_have_a_kind(instruction, kind):
    assert machine_code.Instruction("", instruction).kind == kind


@dataclass
class Made:
    resources: Resources
    sass: str = SASS


def test_what_has_grown_is_told(monkeypatch):
    made = Made(Resources(168, 4, 0, 0, 0, 0, 0))
    now = code_kernels.figures_of(made)
    monkeypatch.setattr(code, "kept", lambda: {"a kernel": now})
    monkeypatch.setattr(code, "comparable", lambda: True)
    assert code.grown("a kernel", made) == []
    now = {**now, "spill_stores": 0, "loop": now["loop"] - 10}
    told = code.grown("a kernel", made)
    assert [line.split(";")[0] for line in told] == ["a kernel: spill_stores 4, was 0", "a kernel: loop 6, was -4"]
    assert 'python -m benchmarks code --kernels "a kernel"' in told[0]
    monkeypatch.setattr(code, "comparable", lambda: False)
    assert code.grown("a kernel", made) == []


def test_blocks_are_those_of_the_plans_and_loops_are_compared_by_them():
    q = np.zeros((1, 1024, 2, 128), code_kernels.BF16)
    keys = plan.form_of(q, q, q, 1024, plan.ALL, plan.Options(1.0)).tile_n
    own = {"attention forward d 128, all": keys, "attention backward d 128, causal": HEAD_DIMS[128]}
    assert {name: blocks[1] for name, blocks in code_kernels.BLOCKS.items()} == own
    name, (block, own_block) = next(iter(code_kernels.BLOCKS.items()))
    theirs = code_kernels.THEIRS[name]
    rest, loop = theirs.all - theirs.loop, theirs.loop * own_block // block
    assert code.ratios(name, {"all": rest + loop, "loop": loop}) == "1.00, 1.00"


def test_each_kernel_beside_nvidias_is_compiled_and_kept():
    kept = code.kept()
    assert set(code_kernels.THEIRS) <= {*code_kernels.OURS, *code_kernels.FILES} == set(kept)
    assert "hopper dense_gemm 64" in code.table(kept)
