# SPDX-License-Identifier: Apache-2.0
"""Modules as the CuTe DSL prints them become kernels: what they compute is what NumPy computes, in the simulator and
compiled, and what cannot be lifted is refused at its line."""

import ast
import re

import numpy as np
import pytest

pytest.importorskip("xdsl")

import numba_cute as cute  # noqa: E402
from numba_cute import ir  # noqa: E402
from numba_cute.__main__ import main  # noqa: E402
from numba_cute.ir.dialect.definitions import DEFINITIONS  # noqa: E402
from numba_cute.ir.dialect.printed_operations import ROWS  # noqa: E402
from numba_cute.ir.lift import module as lifting  # noqa: E402
from numba_cute.ir.lift.writer import REFUSED, RULES  # noqa: E402
from numba_cute.ir.python.writer import HANDLERS  # noqa: E402
from tests import printed_ir  # noqa: E402
from tests.ir.lift import texts  # noqa: E402

AROUND = {"gpu.module", "cuda.kernel", "func.func"}


def launcher(calls=None, **options):
    """A launch that simulates. calls: where each is noted. options: the simulator's."""

    def launch(kernel, *, grid, block, smem=0, cluster=None):
        def call(*args):
            if calls is not None:
                calls.append((kernel, args))
            cute.simulate(kernel, cluster=cluster, **options)[
                tuple(map(int, grid)), tuple(map(int, block)), 0, int(smem)
            ](*args)

        return call

    return launch


def lifted_names():
    handled = {cls.name for cls in HANDLERS}
    return {*RULES, *REFUSED, *handled}


@pytest.mark.parametrize("name", [*ROWS, *(f"cute.{name}" for name in DEFINITIONS)])
def test_each_operation_is_lifted_or_refused_in_words(name):
    assert name in lifted_names()


def test_each_operation_of_the_list_of_printed_ones_is_lifted():
    if not printed_ir.LIST.exists():
        pytest.skip("the list is not here")
    names = {name for name, _ in printed_ir.operations()}
    names = {n if n != "cute.tiled.copy.partition_" else "cute.tiled.copy.partition_S" for n in names}
    assert names - AROUND - lifted_names() == set()
    assert len(names) == 161


def test_elementwise_module_computes_what_numpy_computes():
    host = ir.to_host(ir.parse(texts.ELEMENTWISE))
    x = np.arange(6 * 20, dtype=np.float32).reshape(6, 20)
    y = np.full_like(x, -1)
    calls = []
    host(*(cute.runtime.from_dlpack(a, assumed_align=16) for a in (x, y)), None, launch=launcher(calls))
    np.testing.assert_array_equal(y, 2 * x)
    kernel, args = calls[0]
    assert "ld.global" in cute.compile(kernel, *args, arch="sm_80").ptx


def test_kernel_takes_the_arguments_of_the_module():
    kernel = ir.to_kernel(ir.parse(texts.ELEMENTWISE))
    x, y = np.ones((4, 8), np.float32), np.zeros((4, 8), np.float32)
    a, b = (cute.zipped_divide(cute.runtime.from_dlpack(t), (4, 8)) for t in (x, y))
    coords = cute.zipped_divide(cute.make_identity_tensor((4, 8)), (4, 8))
    threads = cute.make_layout((2, 4), stride=(4, 1))
    cute.simulate(kernel)[1, 8](a, b, coords, 3, 8, threads)
    np.testing.assert_array_equal(y, np.where(np.arange(4)[:, None] < 3, 2.0, 0.0) + np.zeros((4, 8)))


@pytest.mark.parametrize("wrong", ["layout", "tile"])
def test_argument_of_another_type_than_the_module_says_is_refused(wrong):
    kernel = ir.to_kernel(ir.parse(texts.ELEMENTWISE))
    x = cute.runtime.from_dlpack(np.ones((8, 8), np.float32))
    tile = (8, 8) if wrong == "tile" else (4, 8)
    a, coords = cute.zipped_divide(x, tile), cute.zipped_divide(cute.make_identity_tensor((8, 8)), (4, 8))
    threads = cute.make_layout((2, 4) if wrong == "layout" else (2, 4), stride=(1, 2) if wrong == "layout" else (4, 1))
    with pytest.raises((cute.CuteError, AssertionError), match="is false|copy: src of shape"):
        cute.simulate(kernel)[1, 8](a, a, coords, 3, 8, threads)


def test_python_of_a_module_is_readable():
    source = ir.to_python(ir.parse(texts.ELEMENTWISE))
    assert "def add_twice(arg0, arg1, arg2, arg3, arg4, arg5):" in source
    assert "    tidx, _, _ = cute.arch.thread_idx()\n" in source
    assert "    for i in range(4):\n" in source
    assert "    rmem.store(loaded + loaded)\n" in source
    assert len(source.splitlines()) < 75


def collatz(tid, n):
    a, b = tid, 1
    for _ in range(n):
        a, b = b, a + b
    while b > 3:
        b = b // 3 if b % 3 == 0 else b - 1
    return b + 3 * a


def test_loops_and_branches_carry_what_they_carry():
    kernel = ir.to_kernel(ir.parse(texts.COUNTING))
    out = np.zeros(32, np.int32)
    cute.simulate(kernel)[1, 32](cute.runtime.from_dlpack(out), 5)
    np.testing.assert_array_equal(out, [collatz(t, 5) for t in range(32)])


REFUSALS = {
    "      nvvm.tcgen05.commit %arg0 : !llvm.ptr<3>": ("%arg0: !llvm.ptr<3>", "one lane commits"),
    "      %0 = vector.extract_strided_slice %arg0 {offsets = [1], sizes = [2], strides = [1]} : vector<4xf32> to "
    "vector<2xf32>\n      cute.memref.store_vec(%0, %arg1) : (vector<2xf32>, RMEM) -> ()": (
        "%arg0: vector<4xf32>, %arg1: RMEM", "no whole part"),
    '      %0 = cute.static : !cute.layout<"(4,8):(9,1)">\n      %1 = cute.static : !cute.layout<"6:3">\n'
    '      %2 = cute.composition(%0, %1) : (!cute.layout<"(4,8):(9,1)">, !cute.layout<"6:3">) -> '
    '!cute.layout<"(2,3):(27,1)">\n      %rmem = cute.memref.alloca(%2) : '
    '!cute.memref<f32, rmem, align<32>, "(2,3):(27,1)">\n      %c0_f32 = arith.constant 0.0 : f32\n'
    '      %coord = cute.make_coord() : () -> !cute.coord<"0">\n      cute.memref.store(%rmem, %coord, %c0_f32) : '
    '(!cute.memref<f32, rmem, align<32>, "(2,3):(27,1)">, !cute.coord<"0">, f32) -> ()': ("", "another function"),
    '      cute.gemm(%arg0, %arg1, %arg1, %arg1, %arg1) : (!cute.tiled_mma<!cute_nvgpu.atom.universal_fma<2x1x1, '
    "(f32, f32) -> f32 >>, RMEM, RMEM, RMEM, RMEM)": (
        "%arg0: !cute.tiled_mma<!cute_nvgpu.atom.universal_fma<2x1x1, (f32, f32) -> f32 >>, %arg1: RMEM",
        "MmaUniversalOp"),
}  # fmt: skip
RMEM = '!cute.memref<f32, rmem, align<32>, "2:1">'


@pytest.mark.parametrize("body", REFUSALS, ids=[words for _, words in REFUSALS.values()])
def test_what_this_library_cannot_say_is_refused_with_its_line(body):
    parameters, words = REFUSALS[body]
    module = ir.parse(texts.kernel(body.replace("RMEM", RMEM), parameters.replace("RMEM", RMEM)), "wrong.mlir")
    with pytest.raises(cute.CuteError, match=words):
        ir.to_kernel(module)


def test_wrong_text_is_refused_at_its_place():
    text = texts.COUNTING.replace("arith.muli %1#0, %c3_i32 : i32", "arith.muli %1#0, %c9 : i32")
    with pytest.raises(cute.CuteError, match=r"count\.mlir:\d+:\d+: "):
        ir.parse(text, "count.mlir")


def test_command_line_writes_python(tmp_path, capsys):
    file = tmp_path / "add.mlir"
    file.write_text(texts.ELEMENTWISE)
    assert main(["ir", "lift", str(file)]) == 0
    assert capsys.readouterr().out == ir.to_python(ir.parse(texts.ELEMENTWISE))


def test_printed_module_prints_itself():
    module = ir.parse(texts.COUNTING)
    assert str(ir.parse(str(module))) == str(module)


def test_long_lines_are_folded_to_the_same_python():
    source = ir.to_python(ir.parse(texts.ELEMENTWISE))
    assert max(len(line) for line in source.splitlines() if "assert" not in line) <= 110
    assert lifting.parse(texts.ELEMENTWISE).lifted.run()


def test_a_name_in_a_text_is_never_python():
    bad = r"k(): pass\0Aimport os\0Aos.abort()\0A#\22\22\22"
    text = re.sub(r"@kernel\w*", lambda _: f'@"{bad}"', texts.ELEMENTWISE)
    tree = ast.parse(ir.to_python(ir.parse(text)))
    assert not any(isinstance(node, ast.Attribute) and node.attr == "abort" for node in ast.walk(tree))
