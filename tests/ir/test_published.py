# SPDX-License-Identifier: Apache-2.0
"""Kernels in the published dialect: what is printed so, what it means when it is read, and what is told of the rest."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.nvgpu import CopyUniversalOp
from numba_cute.runtime import from_dlpack

pytest.importorskip("xdsl")

from numba_cute import ir  # noqa: E402
from numba_cute.ir.dialect import modules  # noqa: E402


@cuda.jit
def tiles(out, n):
    tile = cute.local_tile(out, (4,), (cuda.threadIdx.x,))
    for i in range(4):
        tile[i] = tile[i] * n + 1


@cuda.jit
def layouts(out, n):
    a = cute.make_layout((4, n), stride=(n, 1))
    b = cute.zipped_divide(a, (2, 2))
    t = cute.make_tensor(out.iterator, b)
    t[(0, 1), 0] = cute.size(b, mode=[1]) + a((1, n)) + a.shape[1]
    for i in range(a.shape[1]):
        out[i] = cute.size(a)


@cuda.jit
def copies(out, n):
    atom = cute.make_copy_atom(CopyUniversalOp(), cute.Int32)
    rows = cute.make_tensor(out.iterator, cute.make_layout((4, 8)))
    held = cute.make_rmem_tensor_like(rows[None, 0])
    cute.copy(atom, rows[None, cute.arch.thread_idx()[0]], held)
    held[0] = n
    cute.copy(atom, held, rows[None, 7])


@cuda.jit
def vectors(out, n):
    v = cute.make_tensor(out.iterator, cute.make_layout(8)).load()
    out[0] = v.reduce(cute.ReductionOp.ADD, 0, 0) + n


def array():
    return np.arange(64, dtype=np.int32)


def inspected(kernel, arch="sm_90a"):
    return cute.inspect(kernel, (from_dlpack(array()), np.int32(5)), arch=arch)


def ptx(kernel):
    """The instructions that a kernel becomes, without its name."""
    text = cute.compile(kernel, (from_dlpack(array()), np.int32(5)), arch="sm_90a").ptx
    return [re.sub(r"_Z\w+", "", line) for line in text.splitlines() if not line.strip().startswith(("//", "."))]


@pytest.mark.parametrize("kernel", [tiles, layouts, copies, vectors], ids=lambda k: k.py_func.__name__)
def test_a_kernel_is_printed_in_the_published_dialect_and_is_the_same_when_it_is_read(kernel):
    module = inspected(kernel)
    again = ir.parse(str(module), names=module.names)
    assert str(again) == str(module)
    assert ptx(ir.to_kernel(again)) == ptx(kernel)
    want, found = array(), array()
    cute.simulate(kernel)[1, 1](from_dlpack(want), np.int32(5))
    cute.simulate(ir.to_kernel(again))[1, 1](from_dlpack(found), np.int32(5))
    assert found.tolist() == want.tolist() != array().tolist()


@pytest.mark.parametrize("kernel", [tiles, layouts, copies], ids=lambda k: k.py_func.__name__)
def test_what_is_portable_is_read_by_a_tool_that_knows_the_reference_alone(kernel):
    module = inspected(kernel)
    assert module.portable() == []
    read = modules.read(str(module))
    assert read.op is not None and read.problems == []
    beside = {x.what for x in module.portable(published=True)}
    assert "!cute.memref" in beside and all(not x.startswith(("numba", "!numba")) for x in beside)


def test_what_is_not_portable_is_told_with_its_line():
    module = inspected(vectors)
    found, lines = module.portable(), str(module).splitlines()
    assert {x.what for x in found} >= {"numba_cute.Tensor.load", "!numba_cute.vector", "numba_cute.TensorSSA.reduce"}
    for x in found:
        assert x.what.lstrip("!") in lines[x.line - 1] and str(x) == f"line {x.line}: {x.what}"
    assert modules.read(str(module)).op is None


def test_what_a_published_type_does_not_hold_has_a_type_of_this_library():
    read = array()
    read.flags.writeable = False
    tensor = from_dlpack(read)
    text = str(cute.inspect(reads, (from_dlpack(array()), tensor)))
    assert "!numba_cute.memref<i32, gmem, align<4>, readonly, (64):(1)>" in text


@cuda.jit
def reads(out, source):
    out[0] = source[1]


# ------------------------------------------------------------------ texts

HEAD = 'func.func @k(%out: !cute.memref<i32, gmem, "(64):(1)">, %n: i32) attributes {numba_cute.kernel} {\n'
MEANS = {
    "numbers": (
        '%l = cute.static : !cute.layout<"(4,8):(1,4)">\n'
        '%s = cute.size<[1]> (%l) : (!cute.layout<"(4,8):(1,4)">) -> !cute.int_tuple<"8">\n'
        '%r = cute.get_scalars (%s) : !cute.int_tuple<"8">',
        lambda n: 8,
    ),
    "less is said of divisors": (
        '%h = cute.make_shape(%n) : (i32) -> !cute.shape<"(4,?)">\n'
        '%l = cute.make_layout(%h) : !cute.layout<"(4,?):(1,4)">\n'
        '%s = cute.size(%l) : (!cute.layout<"(4,?):(1,4)">) -> !cute.int_tuple<"?">\n'
        '%r = cute.get_scalars(%s) : !cute.int_tuple<"?">',
        lambda n: 4 * n,
    ),
    "parts of tuples": (
        '%c = cute.make_coord(%n, %n) : (i32, i32) -> !cute.coord<"(?,(1,?))">\n'
        '%g = cute.get<[1, 1]> (%c) : !cute.coord<"(?,(1,?))"> -> !cute.coord<"?">\n'
        '%r = cute.get_scalars(%g) : !cute.coord<"?">',
        lambda n: n,
    ),
    "through an if": (
        '%t = cute.make_int_tuple(%n) : (i32) -> !cute.int_tuple<"(2,?)">\n'
        "%c = arith.cmpi sgt, %n, %n : i32\n"
        '%i = scf.if %c -> (!cute.int_tuple<"(2,?)">) {\n  scf.yield %t : !cute.int_tuple<"(2,?)">\n} else {\n'
        '  %z = cute.make_int_tuple(%n) : (i32) -> !cute.int_tuple<"(2,?)">\n'
        '  scf.yield %z : !cute.int_tuple<"(2,?)">\n}\n'
        '%h = cute.to_shape(%i) : !cute.int_tuple<"(2,?)"> -> !cute.shape<"(2,?)">\n'
        '%s = cute.size(%h) : (!cute.shape<"(2,?)">) -> !cute.int_tuple<"?{div=2}">\n'
        '%r = cute.get_scalars(%s) : !cute.int_tuple<"?{div=2}">',
        lambda n: 2 * n,
    ),
    "a special register": ("%x = nvvm.read.ptx.sreg.ntid.x : i32\n%r = arith.addi %x, %n : i32", lambda n: 1 + n),
}  # fmt: skip


def text_of(lines, result="%r"):
    store = (
        f'%at = cute.make_coord() : () -> !cute.coord<"3">\ncute.memref.store(%out, %at, {result}) : '
        '(!cute.memref<i32, gmem, "(64):(1)">, !cute.coord<"3">, i32) -> ()\n'
    )
    return f"{HEAD}{lines}\n{store}func.return\n}}\n"


@pytest.mark.parametrize("name", MEANS)
def test_a_published_text_means_its_functions(name):
    lines, want = MEANS[name]
    module = ir.parse(text_of(lines), "own.mlir")
    assert str(ir.parse(str(module))) == str(module)
    kernel, out = ir.to_kernel(module), array()
    cute.simulate(kernel)[1, 1](from_dlpack(out), np.int32(6))
    cute.compile(kernel, (from_dlpack(out), np.int32(6)))
    assert out[3] == want(6)


WRONG = {
    "another type": (
        '%l = cute.static : !cute.layout<"(4,8):(1,4)">\n'
        '%r = cute.size(%l) : (!cute.layout<"(4,8):(1,4)">) -> !cute.int_tuple<"31">',
        3, "incompatible with return type",
    ),
    "a function that kernels have in another form": (
        '%l = cute.static : !cute.layout<"(4,8):(9,1)">\n%m = cute.static : !cute.layout<"6:3">\n'
        '%r = cute.composition(%l, %m) : (!cute.layout<"(4,8):(9,1)">, !cute.layout<"6:3">) -> '
        '!cute.layout<"(2,3):(27,1)">',
        4, "composition",
    ),
    "what no kernel can be made of": (
        '%l = cute.static : !cute.layout<"(4,8):(9,1)">\n%r = cute.equal(%l, %l) : '
        '(!cute.layout<"(4,8):(9,1)">, !cute.layout<"(4,8):(9,1)">) -> i1',
        3, "no kernel can be made of it",
    ),
    "a register that no function gives": ("%r = nvvm.read.ptx.sreg.smid : i32", 2, "no function that gives %smid"),
    "memory of another space": (
        '%r = cute.memref.alloca() : !cute.memref<f32, smem, "4:1">', 2, "shared memory comes from an allocator",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_published_text_that_means_nothing_is_refused_at_its_line(name):
    lines, line, why = WRONG[name]
    with pytest.raises(cute.CuteError, match=re.escape(f"wrong.mlir:{line}")) as e:
        ir.parse(f"{HEAD}{lines}\nfunc.return\n}}\n", "wrong.mlir")
    assert why in str(e.value)


# ------------------------------------------------------------------ text as it was

OLD = """
builtin.module attributes {cute.target = "sm_80"} {
  func.func @k(%out: !cute.memref<i32, gmem, align<4>, (64):(1)>, %n: i32) attributes {cute.kernel, cute.opt = true} {
    %shape = cute.make_shape 4, %n : !cute.shape<(4,?)>
    %l = cute.make_layout %shape, stride = (%n, 1) : !cute.layout<(4,?), (?,1)>
    %c = cute.make_coord (1, %n) : !cute.coord<((1,?))>
    %w = cute.static : !cute_nvgpu.mma_atom<!f16,!f16,!f32,[16,8,16],SM80>
    %s = cute.size %l : !cute.int<?{div=4}>
    %x = cute.cast %s : !cute.int<?{div=4}> -> i32
    cute.store_element %out, 3, %x
    cute.arch.cp_async_commit_group
    func.return
  }
}
"""


def test_text_as_it_was_is_read_with_a_note():
    with pytest.warns(DeprecationWarning, match="before its dialect was called numba_cute"):
        module = ir.parse(OLD, "old.mlir")
    text = str(module)
    assert "numba_cute.kernel, numba_cute.opt" in text and 'numba_cute.target = "sm_80"' in text
    assert "numba_cute.arch.cp_async_commit_group" in text and '!cute.layout<"(4,?):(?,1)">' in text
    assert not re.search(r"(?<!numba_)cute(_nvgpu)?\.(make|size|cast|store|arch|mma|kernel|target)", text)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert str(ir.parse(text)) == text
    with pytest.warns(DeprecationWarning):
        kernel = ir.to_kernel(ir.parse(OLD))
    out = array()
    cute.simulate(kernel, arch="sm_80")[1, 1](from_dlpack(out), np.int32(6))
    assert out[3] == 24


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ('cute.size(%n) : (i32) -> !cute.int_tuple<"?">', "operand #0"),
        ("cute.size %n, 1, 2, 3", "argument"),
        ("cute.no_such %n", "not registered"),
        ('%r = cute.static : !cute.layout<"(4,8">', "failed to parse layout"),
        ("%r = cute.static : !cute.layout<(4,8)>", "expected a shape and strides"),
        ("%r = numba_cute.slice !f16, 0", "Float16 has no items"),
        (
            '%r = numba_cute.static : !cute.coord_tensor<"(0,0)", "(4,4):(1@1,1@65536)">',
            "a basis stride is of a mode from 0 to",
        ),
        ("%r = numba_cute.static : !numba.array<f32, 99999999999999999999, C>", "an array has 0 to 64 dimensions"),
    ],
)
def test_of_two_ways_to_read_a_line_the_error_is_of_the_one_that_is_meant(wrong, why):
    with pytest.raises(cute.CuteError, match=re.escape(why)):
        ir.parse(f"func.func @k(%n: i32) {{\n{wrong}\nfunc.return\n}}\n")
