# SPDX-License-Identifier: Apache-2.0
"""Kernels as modules of the IR: every kernel has one, which verifies, parses back, and says what became of it."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils
from numba_cute.compiler.ground.target import compiling_for
from numba_cute.compiler.host import offline
from numba_cute.compiler.inspection.ptx_lines import placed_instructions
from numba_cute.nvgpu import cpasync
from numba_cute.runtime import from_dlpack

pytest.importorskip("xdsl")

from xdsl.dialects import cf, func, scf
from xdsl.dialects.builtin import ArrayAttr, FileLineColLoc

from numba_cute import ir
from numba_cute.ir.from_kernels.module import from_kernel

from ..fuzz import numbers
from ..fuzz.build import THREADS, arguments, kernel_of, with_tensor
from ..fuzz.choices import Seeded
from ..fuzz.cutes import CuteWriter
from ..fuzz.numbers import NumberWriter
from ..fuzz.plain import Writer
from ..kernels import raw_gemm, test_ordinary_numba
from .example_kernels import BF16, KERNELS, gemm_host, hopper_gemm

SLOW = pytest.mark.slow


def read_back(module):
    """A module by way of its text."""
    text = str(module)
    found = ir.parse(text, names=module.names)
    assert str(found) == text
    return found


def made(kernel, args, target="sm_80"):
    """A kernel's module, which verifies and parses back."""
    module = from_kernel(kernel, args, target)
    module.verify()
    read_back(module)
    return module


# ---------------------------------------------------------------- every kernel


def ordinary():
    x = np.zeros(256, np.float32)
    atom = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), from_dlpack(x), cute.make_layout(64), (64,))
    rest = np.zeros(2, np.float32), np.zeros_like(x), np.zeros(4, np.float32), np.zeros(1, np.int32)
    return test_ordinary_numba.mixed, (*atom, *rest)


def raw():
    args = hopper_gemm.arguments(*gemm_host.problem(256, 256, 128, BF16), BF16, 1)[0]
    numbers = np.int32(1), np.int32(1), np.int32(128)
    return raw_gemm.raw_gemm, (BF16, args[2], args[4], np.zeros((2, 1, 128, 256), np.float32), *numbers)


def split():
    a, b, c = gemm_host.problem(256, 512, 256, BF16, majors="mnn")
    cut = hopper_gemm.Plan(128, 1, 2)
    args = hopper_gemm.arguments(a, b, c, BF16, 1, cut)[0]
    return hopper_gemm.kernel_of(cut), args


ALL = {
    **KERNELS, "ordinary_numba": ("sm_90a", ordinary),
    "raw_gemm": ("sm_90a", raw), "hopper_gemm_split": ("sm_90a", split),
}  # fmt: skip
QUICK = ("ordinary_numba", "transpose")


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=SLOW) for n in ALL])
def test_every_kernel_is_a_module_that_says_what_became_of_it(name):
    target, make = ALL[name]
    kernel, args = make()
    module = made(kernel, tuple(args), target)
    assert module.target == target
    operations = [op for op in module if not isinstance(op, (scf.YieldOp, scf.ConditionOp))]
    assert all(isinstance(op.location, FileLineColLoc) for op in operations[1:])
    # every instruction of the kernel, compiled with lines, belongs to one operation
    py_func, argtypes, options = offline.taken(kernel, tuple(args), target, "inspect")
    with compiling_for(target) as cc:
        symbol, ptx = offline.ptx_of(py_func, argtypes, {**options, "lineinfo": True}, cc)
    said = Counter(t.data.split()[0] for op in module for t in op.attributes.get("ptx", ArrayAttr([])))
    assert said == Counter(p.text.split()[0] for p in placed_instructions(ptx, symbol))
    own = next(op for op in module if isinstance(op, func.FuncOp))
    assert len(own.attributes.get("ptx", ())) < 0.2 * sum(said.values()), "most came of an operation"


# ---------------------------------------------------------------- random kernels

WRITERS = {
    "plain": (Writer, arguments, 2),
    "cute": (CuteWriter, lambda: with_tensor(arguments()), 2),
    "numbers": (NumberWriter, numbers.arguments, numbers.OUTPUTS),
}


def random_kernel(kind, seed):
    return pytest.param(kind, seed, marks=[] if seed < 1 else SLOW)


@pytest.mark.parametrize(("kind", "seed"), [random_kernel(k, s) for k in WRITERS for s in range(40)])
def test_random_kernels_give_the_same_by_way_of_the_ir(kind, seed):
    writer, make, outputs = WRITERS[kind]
    source = writer(Seeded(seed)).source()
    kernel, want, got = kernel_of(source), make(), make()
    cute.simulate(kernel, checks=False)[1, THREADS](*want)
    again = ir.to_kernel(read_back(from_kernel(kernel, make(), "sm_80")))
    cute.simulate(again, checks=False)[1, THREADS](*got)
    for w, g in zip(want[:outputs], got[:outputs]):
        np.testing.assert_array_equal(g.view(f"u{g.itemsize}"), w.view(f"u{w.itemsize}"), err_msg=source)


# ---------------------------------------------------------------- control flow

PROGRAMS = []


def program(kernel):
    PROGRAMS.append(kernel)
    return kernel


@program
@cuda.jit
def a_loop_that_breaks(out, n):
    total = 0
    for i in range(n):
        if i == 4:
            break
        if i % 2:
            continue
        total += i
    out[0] = total


@program
@cuda.jit
def a_loop_with_an_else(out, n):
    for i in range(1, n):
        if i * i == 36:
            out[0] = i
            break
    else:
        out[0] = -5
    out[1] = i


@program
@cuda.jit
def early_returns_from_two_loops(out, n):
    for i in range(n):
        for j in range(i):
            if i * j == 6:
                out[0] = i
                return
            if i + j > 12:
                out[1] = j
                return
    out[2] = n


@program
@cuda.jit
def a_while_with_parts(out, n):
    i, j = 0, n
    while i < j and out[i] < 0 or j == n:
        i += 1
        j -= 1
        if i == 3:
            continue
        out[i] = j
    out[7] = i


@program
@cuda.jit
def a_loop_without_end(out, n):
    i = 0
    while True:
        i += 3
        if i > n:
            break
    out[0] = i


@program
@cuda.jit
def a_name_that_a_branch_sets(out, n):
    if n > 3:
        late = n
    for i in range(n):
        if i % 2 == 0:
            last = i
        else:
            out[i] = last
    if n > 3:
        out[0] = late


@program
@cuda.jit
def values_that_change_places(out, n):
    a, b, pair = 1, 2, (3, 4)
    for i in range(n):  # noqa: B007
        a, b = b, a + b
        pair = pair[1], pair[0]
    out[0], out[1], out[2], out[3] = a, b, pair[0], pair[1]


@program
@cuda.jit
def ranges_of_all_steps(out, n):
    at = 0
    for step in range(-2, 3):
        if step != 0:
            for i in range(n, n + 4 * step, step):
                at += i * step
    for i in range(n, 0, -2):
        at += i
    out[0] = at
    out[1] = i


@program
@cuda.jit
def what_is_gone_over(out, n):
    total = 0
    for x in out:
        total += x
    for x in (n, 2 * n, 5):
        total += x
    out[0] = total


@program
@cuda.jit
def layouts_of_two_kinds(out, n):
    layout = cute.make_layout((2, 4))
    if n > 3:
        layout = cute.make_layout((2, 4), stride=(4, n))
    for i in range(8):
        out[i] = layout(i)


@cuda.jit(device=True)
def found(out, x, default=None):
    for i in range(out.shape[0]):
        if out[i] == x:
            return i, x
    return -1, x


@program
@cuda.jit
def a_device_function(out, n):
    out[2] = n
    i, x = found(out, n)
    j, _ = found(x=n + 1, out=out)
    out[0], out[1] = i, j


@pytest.mark.parametrize("kernel", PROGRAMS, ids=lambda k: k.py_func.__name__)
def test_control_flow_is_the_same(kernel):
    again = ir.to_kernel(read_back(made(kernel, (np.full(8, -1), 7))))
    for n in (7, 2):
        want, got = np.full(8, -1), np.full(8, -1)
        cute.simulate(kernel)[1, 1](want, n)
        cute.simulate(again)[1, 1](got, n)
        np.testing.assert_array_equal(got, want)


def counts(module):
    return Counter(op.name for op in module)


def test_loops_are_those_of_the_source():
    module = made(values_that_change_places, (np.zeros(8, np.int64), 3))
    assert counts(module)["scf.for"] == 1 and counts(module)["scf.while"] == 0
    (loop,) = (op for op in module if isinstance(op, scf.ForOp))
    assert len(loop.res) == 4, "two numbers, and the tuple's items"


@cuda.jit
def a_while(out, n):
    while n > 10:
        n //= 2
    out[0] = n


def test_the_test_of_a_while_stands_once():
    module = made(a_while, (np.zeros(8, np.int64), 3))
    found = counts(module)
    assert (found["scf.while"], found["scf.if"], found["arith.cmpi"]) == (1, 0, 1)


def test_names_and_lines_are_those_of_the_source():
    text = str(made(values_that_change_places, (np.zeros(8, np.int64), 3)))
    assert re.search(
        r"func\.func @values_that_change_places\(%out: [^)]*%n: i64\) attributes {numba_cute\.kernel, ptx", text
    )
    assert re.search(r"scf\.for %i = .* iter_args\(%b\w* = ", text)
    line = values_that_change_places.py_func.__code__.co_firstlineno
    assert f'test_from_kernel.py":{line + 4}:1' in text


@cuda.jit(launch_bounds=(64, 2), fastmath=True)
def with_options(out):
    out[0] = arch.thread_idx()[0]


def test_options_and_cluster_are_the_functions_attributes():
    module = made(cute.cluster_shape(2, 1)(with_options), (np.zeros(8, np.float32),), "sm_90a")
    shown = str(module).replace(" : i64", "")
    assert (
        "{numba_cute.kernel, numba_cute.launch_bounds = [64, 2], numba_cute.fastmath = true, "
        "numba_cute.cluster = [2, 1, 1], ptx" in shown
    )
    plain = made(a_while, (np.zeros(8, np.int64), 3))
    kernel = next(op for op in plain if isinstance(op, func.FuncOp))
    assert set(kernel.attributes) == {"numba_cute.kernel", "ptx"}, "nothing that is usual"


@cuda.jit
def failing(out, n):
    if n > 3:
        raise ValueError("too many")
    out[0] = n


def test_exceptions_are_assertions_that_fail():
    module = made(failing, (np.zeros(8, np.int64), 3))
    (said,) = (op for op in module if isinstance(op, cf.AssertOp))
    assert said.msg.data == "ValueError: too many"


@cuda.jit
def zipped(out, n):
    for i, x in enumerate(out):
        out[i] = x + n


def test_what_has_no_form_is_refused_with_its_line():
    with pytest.raises(cute.CuteError, match=r"the IR's loops go over ranges.*\n  in line \d+ of .*test_from_kernel"):
        from_kernel(zipped, (np.zeros(8, np.int64), 3))


@cute.struct
class Pair:
    a: cute.Int32
    b: cute.Int32

    def swap(self):
        while self.a > self.b:
            self.a, self.b = self.b, self.a


@program
@cuda.jit
def objects_of_the_user(out, n):
    pair = Pair(n, 3)
    pair.swap()
    pair.a += 5
    out[0], out[1] = pair.a, pair.b


def test_the_users_objects_are_methods_and_attributes():
    module = made(objects_of_the_user, (np.zeros(8, np.int64), np.int32(7)))
    found = counts(module)
    assert found["numba_cute.method"] == 1 and found["numba_cute.set_attr"] == 1 and found["numba_cute.get_attr"] == 3


@cuda.jit
def calls_of_all_kinds(out, x):
    smem = utils.SmemAllocator()
    tile = smem.allocate_tensor(cute.Float32, cute.make_layout((4, 4)), 16)
    tile[cuda.threadIdx.x, 0] = out[0]
    cuda.syncthreads()
    out[1] = tile[(1, 0)]
    cuda.atomic.add(out, 2, max(out[3], 1.0))


def test_each_kind_of_call_has_its_dialect():
    x = np.zeros(8, np.float32)
    found = counts(made(calls_of_all_kinds, (x, x)))
    for name in (
        "numba_cute.utils.SmemAllocator", "cute.make_layout", "numba_cute.utils.SmemAllocator.allocate_tensor",
        "gpu.thread_id", "gpu.barrier", "cute.memref.load", "cute.memref.store", "numba.get_item", "numba.set_item",
    ):  # fmt: skip
        assert found[name] >= 1, name
    assert found["numba.call"] == 2, "max and atomic.add"
