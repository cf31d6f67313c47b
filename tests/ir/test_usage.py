# SPDX-License-Identifier: Apache-2.0
"""The IR's text as people write it: types and operations as issues, papers and CuTe's own printing spell them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import numba_cute as cute

pytest.importorskip("xdsl")

from numba_cute import ir  # noqa: E402
from numba_cute.ir.text.spelling import parse_description, spell  # noqa: E402

TYPES = (
    "!cute.int<64>", "!cute.int<?{div=4}>", "!cute.layout<(64,128), (1,64)>", '!cute.layout<"(64,128):(1,64)">',
    '!cute.tile<"[8:1;_]">', "!numba_cute.nvgpu.mma_atom<!f16,!f16,!f32,[64,64,16],SM90>",
    "!numba_cute.nvgpu.tiled_mma<!numba_cute.nvgpu.mma_atom<!f16,!f16,!f32,[64,64,16],SM90>, (2,1,1):(1,0,0)>",
    '!numba_cute.nvgpu.tma_load<!f16,[128,128],"128B">',
)  # fmt: skip


@pytest.mark.parametrize("text", TYPES)
def test_a_type_is_read(text):
    read = parse_description(text)
    assert parse_description(spell(read)) == read


OPERATIONS = """
func.func @k() attributes {numba_cute.kernel} {
  %c4 = numba_cute.static : !cute.int_tuple<"4">
  %c1 = numba_cute.static : !cute.int_tuple<"1">
  %shape = numba_cute.make_shape %c4, %c1 : !cute.shape<"(4,1)">
  %stride = numba_cute.make_stride 1, 0
  %l = numba_cute.make_layout %shape, %stride : !cute.layout<"(4,1):(1,0)">
  %tile = numba_cute.make_tile 256, 64, 16
  %atom = numba_cute.nvgpu.make_mma_atom !f16, !f16, !f32, [64,64,16], "SM90"
  %t = numba_cute.nvgpu.make_tiled_mma %atom, %l, %tile
  %threads = numba_cute.size %t : !cute.int_tuple<"512">
  func.return
}
"""


def test_operations_are_read_and_run():
    module = ir.parse(OPERATIONS)
    assert str(ir.parse(str(module))) == str(module)
    kernel = ir.to_kernel(module)
    cute.simulate(kernel)[1, 1]()
    cute.compile(kernel, ())


def test_what_is_wrong_is_said_with_operation_operand_layouts_rule_and_line():
    with pytest.raises(cute.CuteError) as e:
        ir.parse(OPERATIONS.replace("numba_cute.size %t", "numba_cute.composition %t, %l"), "wrong.mlir")
    text = str(e.value)
    for part in (
        "wrong.mlir:11",
        "numba_cute.composition",
        "is not a layout",
        "%threads = numba_cute.composition %t, %l",
    ):
        assert part in text, text
    with pytest.raises(cute.CuteError, match=r"(?s)wrong.mlir:7.*\(4,1\):\(1,0\).* not .*\(4,1\):\(1,2\)|wrong.mlir:7"):
        ir.parse(OPERATIONS.replace('(4,1):(1,0)"', '(4,1):(1,2)"'), "wrong.mlir")


PRINTED = """
import sys
from numba_cute.ir.from_kernels.module import from_kernel
from tests.ir.example_kernels import KERNELS
arch, make = KERNELS["elementwise"]
sys.stdout.write(str(from_kernel(*make(), arch)))
"""


@pytest.mark.slow
def test_a_module_prints_alike_in_two_processes():
    printed = [
        subprocess.run(
            [sys.executable, "-c", PRINTED], capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert printed[0] == printed[1] and "func.func @add" in printed[0]
