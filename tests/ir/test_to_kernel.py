# SPDX-License-Identifier: Apache-2.0
"""Kernels written in the IR: control flow, threads, functions, options, names, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import numba_cute as cute

pytest.importorskip("xdsl")

from .written import TARGET, THREAD, both, kernel_of, python_of

ROOT = Path(__file__).parents[2]

# Control flow

LOOPS = f"""
func.func @loops(%n: i32, %o: memref<?xi32>) attributes {{numba_cute.kernel}} {{
  {THREAD}
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %start = arith.index_cast %t : index to i32
  %a, %b = scf.for %i = %start to %n step %c3 iter_args(%x = %c0, %y = %c1) -> (i32, i32) : i32 {{
    %sum = arith.addi %x, %i : i32
    %more = scf.for %j = %c0 to %i step %c1 iter_args(%z = %sum) -> (i32) : i32 {{
      %next = arith.addi %z, %j : i32
      scf.yield %next : i32
    }}
    scf.yield %y, %more : i32, i32
  }}
  %collatz, %steps = scf.while (%v = %n, %count = %a) : (i32, i32) -> (i32, i32) {{
    %go = arith.cmpi sgt, %v, %c1 : i32
    %twice = arith.muli %count, %c3 : i32
    scf.condition(%go) %v, %twice : i32, i32
  }} do {{
  ^bb0(%v: i32, %w: i32):
    %odd = arith.andi %v, %c1 : i32
    %is_odd = arith.cmpi eq, %odd, %c1 : i32
    %after = scf.if %is_odd -> (i32) {{
      %up = arith.muli %v, %c3 : i32
      %up1 = arith.addi %up, %c1 : i32
      scf.yield %up1 : i32
    }} else {{
      %down = arith.shrsi %v, %c1 : i32
      scf.yield %down : i32
    }}
    scf.yield %after, %w : i32, i32
  }}
  %all = arith.addi %steps, %b : i32
  %with = arith.xori %all, %collatz : i32
  memref.store %with, %o[%t] : memref<?xi32>
  func.return
}}
"""


def loops(n, start):
    x, y = 0, 1
    for i in range(start, n, 3):
        x, y = y, x + i + sum(range(i))
    a, b = x, y
    v, count = n, a
    while True:
        count *= 3
        if not v > 1:
            break
        v = v * 3 + 1 if v & 1 else v >> 1
    return np.int64((count + b) ^ v).astype(np.int32)


def test_loops_and_branches():
    kernel = kernel_of(LOOPS)
    for run, (got,) in both(kernel, 8, [np.zeros(8, np.int32)], np.int32(11)):
        np.testing.assert_array_equal(got, [loops(11, t) for t in range(8)], err_msg=run)
    cute.compile(kernel, (np.int32(11), np.zeros(8, np.int32)), arch=TARGET)


def test_python_of_loops():
    lines = [line.strip() for line in python_of(LOOPS).splitlines()]
    assert "for i in range(start, n, Int32(3)):" in lines
    assert "for j in range(i):" in lines
    assert "while True:" in lines and "if not go:" in lines


NARROW = f"""
func.func @narrow(%o: memref<?xi64>) attributes {{numba_cute.kernel}} {{
  {THREAD}
  %c0 = arith.constant 0 : i8
  %c1 = arith.constant 1 : i8
  %c100 = arith.constant 100 : i8
  %r = scf.for %i = %c0 to %c100 step %c1 iter_args(%s = %c0) -> (i8) : i8 {{
    %n = arith.addi %s, %i : i8
    scf.yield %n : i8
  }}
  %z = arith.constant 0 : index
  %one = arith.constant 1 : index
  %m = arith.constant 5 : index
  %k = scf.for %i = %z to %m step %one iter_args(%s = %t) -> (index) {{
    %n = arith.muli %s, %i : index
    %n1 = arith.addi %n, %t : index
    scf.yield %n1 : index
  }}
  %w = arith.extsi %r : i8 to i64
  %x = arith.index_cast %k : index to i64
  %y = arith.addi %w, %x : i64
  memref.store %y, %o[%t] : memref<?xi64>
  func.return
}}
"""


def test_counters_of_other_widths():
    want = []
    for t in range(4):
        s = t
        for i in range(5):
            s = s * i + t
        want.append(int(np.int64(sum(range(100))).astype(np.int8)) + s)
    for run, (got,) in both(kernel_of(NARROW), 4, [np.zeros(4, np.int64)]):
        np.testing.assert_array_equal(got, want, err_msg=run)


SWITCH = f"""
func.func @switch(%o: memref<?xi32>) attributes {{numba_cute.kernel}} {{
  {THREAD}
  %c2 = arith.constant 2 : i32
  %one = arith.constant 1 : index
  %r = scf.index_switch %t -> i32
  case 1 {{
    %x = arith.constant 10 : i32
    scf.yield %x : i32
  }}
  case 3 {{
    %x = arith.muli %c2, %c2 : i32
    scf.yield %x : i32
  }}
  default {{
    scf.yield %c2 : i32
  }}
  %e = scf.execute_region -> (i32) {{
    %y = arith.addi %r, %c2 : i32
    scf.yield %y : i32
  }}
  %even = arith.andi %t, %one : index
  %is_odd = arith.cmpi eq, %even, %one : index

  scf.if %is_odd {{
    memref.store %e, %o[%t] : memref<?xi32>
  }}
  func.return
}}
"""


def test_switch_region_and_branch_without_results():
    for run, (got,) in both(kernel_of(SWITCH), 4, [np.zeros(4, np.int32)]):
        np.testing.assert_array_equal(got, [0, 12, 0, 6], err_msg=run)


def index_op(name, dim=None):
    return f'"gpu.{name}"() {f"<{{dimension = #gpu<dim {dim}>}}> " if dim else ""}: () -> index'


def test_threads():
    names = [
        ("thread_id", "x"), ("thread_id", "y"), ("thread_id", "z"), ("block_id", "x"), ("block_dim", "x"),
        ("block_dim", "y"), ("grid_dim", "x"), ("global_id", "x"), ("lane_id", None), ("subgroup_id", None),
        ("subgroup_size", None), ("num_subgroups", None),
    ]  # fmt: skip
    body = [f"%v{i} = {index_op(*n)}" for i, n in enumerate(names)]
    body += ["%m = arith.muli %v1, %v4 : index", "%l = arith.addi %m, %v0 : index"]
    body += ["%k = arith.muli %v4, %v5 : index", "%b = arith.muli %v3, %k : index", "%g = arith.addi %l, %b : index"]
    body += [f"memref.store %v{i}, %o{i}[%g] : memref<?xindex>" for i in range(len(names))]
    body += ['"gpu.barrier"() : () -> ()']
    params = ", ".join(f"%o{i}: memref<?xindex>" for i in range(len(names)))
    text = "\n  ".join(body)
    kernel = kernel_of(
        f"func.func @threads({params}) attributes {{numba_cute.kernel}} {{\n  {text}\n  func.return\n}}\n"
    )
    outputs = [np.zeros(96, np.int64) for _ in names]
    cute.simulate(kernel)[2, (16, 3)](*outputs)
    i = np.arange(96)
    x, y, block = i % 16, i % 48 // 16, i // 48
    linear = i % 48
    full = np.ones(96, int)
    wanted = [x, y, 0 * i, block, 16 * full, 3 * full, 2 * full, block * 16 + x, linear % 32, linear // 32,
              32 * full, 2 * full]  # fmt: skip
    for name, got, want in zip(names, outputs, wanted):
        np.testing.assert_array_equal(got, want, err_msg=str(name))
    ptx = cute.compile(kernel, tuple(outputs), arch=TARGET).ptx
    assert "bar.sync" in ptx


FUNCTIONS = f"""
builtin.module {{
  func.func private @twice(%x: i32) -> i32 {{
    %y = arith.addi %x, %x : i32
    func.return %y : i32
  }}
  func.func private @both(%x: i32, %y: i32) -> (i32, i32) {{
    %z = func.call @twice(%x) : (i32) -> i32
    %d = arith.subi %z, %y : i32
    func.return %z, %d : i32, i32
  }}
  func.func private @put(%o: memref<?xi32>, %i: index, %x: i32) {{
    memref.store %x, %o[%i] : memref<?xi32>
    func.return
  }}
  func.func @kernel(%o: memref<?xi32>)
      attributes {{numba_cute.kernel, numba_cute.launch_bounds = [128, 2], numba_cute.max_registers = 40}} {{
    {THREAD}
    %x = arith.index_cast %t : index to i32
    %c = arith.constant 3 : i32
    %a, %b = func.call @both(%x, %c) : (i32, i32) -> (i32, i32)
    %s = arith.muli %a, %b : i32
    func.call @put(%o, %t, %s) : (memref<?xi32>, index, i32) -> ()
    func.return
  }}
}}
"""


def test_device_functions():
    kernel = kernel_of(FUNCTIONS)
    for run, (got,) in both(kernel, 8, [np.zeros(8, np.int32)]):
        np.testing.assert_array_equal(got, [2 * t * (2 * t - 3) for t in range(8)], err_msg=run)


def test_options():
    kernel = kernel_of(FUNCTIONS)
    assert kernel.targetoptions["launch_bounds"] == (128, 2)
    assert kernel.targetoptions["max_registers"] == 40
    compiled = cute.compile(kernel, (np.zeros(8, np.int32),), arch=TARGET)
    assert ".maxntid 128" in compiled.ptx and ".minnctapersm 2" in compiled.ptx
    assert compiled.resources.registers <= 40


def test_cluster_shape():
    source = FUNCTIONS.replace("cute.max_registers = 40", "cute.cluster = [2, 1, 1]")
    compiled = cute.compile(kernel_of(source), (np.zeros(8, np.int32),), arch="sm_90a")
    assert ".reqnctapercluster 2, 1, 1" in compiled.ptx


# Errors


def test_errors_have_the_line_of_the_text():
    source = f"func.func @k(%x: memref<?xi32>) {{\n  {THREAD}\n  %v = memref.load %x[%t] : memref<?xi32>\n"
    source += "  memref.store %v, %x[%t] : memref<?xi32>\n  func.return\n}\n"
    kernel = kernel_of(source)
    with pytest.raises(cute.sim.SimError, match=r"test\.mlir:3.*`%v = memref\.load"):
        cute.simulate(kernel)[1, 32](np.zeros(8, np.int32))


def test_lines_of_the_text_in_line_information():
    source = LOOPS.replace("{numba_cute.kernel}", "{numba_cute.kernel, numba_cute.lineinfo = true}")
    ptx = cute.compile(kernel_of(source), (np.int32(11), np.zeros(8, np.int32)), arch=TARGET).ptx
    line = 1 + source.splitlines().index("      %next = arith.addi %z, %j : i32")
    assert 'test.mlir"' in ptx
    assert f".loc\t1 {line} " in ptx


DEBUGGED = """
import numpy as np
import numba_cute as cute
from tests.ir.test_to_kernel import LOOPS, TARGET, kernel_of
options = "numba_cute.kernel, numba_cute.debug = true, numba_cute.opt = false"
kernel = kernel_of(LOOPS.replace("numba_cute.kernel", options))
print(cute.compile(kernel, (np.int32(11), np.zeros(8, np.int32)), arch=TARGET).ptx)
"""


def test_debugging():
    """In a process of its own: libNVVM 13.5 optimises otherwise ever after (see ptx_digests.py)."""
    run = subprocess.run([sys.executable, "-c", DEBUGGED], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ".target sm_80, debug" in run.stdout


def test_options_round_trip():
    from numba import cuda

    from numba_cute.ir.library.options import KERNEL, attributes_of, options_of

    given = {
        "launch_bounds": (128, 2), "max_registers": 40, "lineinfo": True, "opt": False, "fastmath": True,
        "link": ("a.cu",),
    }  # fmt: skip
    kernel = cuda.jit(**given)(lambda: None)
    attributes = attributes_of(kernel.targetoptions, (2, 1, 1))
    assert options_of(attributes, KERNEL) == {**given, "cluster": (2, 1, 1)}
    assert attributes_of(cuda.jit(lambda: None).targetoptions) == {}
    with pytest.raises(cute.CuteError, match="an option of a kernel in the IR is a bool"):
        attributes_of({"link": (object(),)})


CONSTANT = f"""
func.func @scale(%o: memref<?xi32>, %n: !cute.int_tuple<"3">, %m: i32) attributes {{numba_cute.kernel}} {{
  {THREAD}
  %c = numba_cute.cast %n : !cute.int_tuple<"3"> -> i32
  %x = arith.muli %c, %m : i32
  memref.store %x, %o[%t] : memref<?xi32>
  func.return
}}
"""


def test_numbers_that_are_given():
    kernel = kernel_of(CONSTANT)
    out = np.zeros(4, np.int32)
    cute.simulate(kernel)[1, 4](out, 3, 1 << 33 | 5)  # the second is an i32
    np.testing.assert_array_equal(out, 15)
    assert ".param .u32" not in cute.compile(kernel, (out, 3, 5), arch=TARGET).ptx
    for run in (cute.simulate(kernel)[1, 4], lambda *args: cute.compile(kernel, args, arch=TARGET)):
        with pytest.raises(cute.CuteError, match="the IR says that n is 3"):
            run(out, 4, 5)


def test_gpu_modules():
    source = f"""
"gpu.module"() <{{sym_name = "m"}}> ({{
  "gpu.func"() <{{function_type = (memref<?xindex>) -> (), kernel}}> ({{
  ^bb0(%o: memref<?xindex>):
    {THREAD}
    memref.store %t, %o[%t] : memref<?xindex>
    "gpu.return"() : () -> ()
  }}) {{sym_name = "k"}} : () -> ()
}}) : () -> ()
"""
    for run, (got,) in both(kernel_of(source), 4, [np.zeros(4, np.int64)]):
        np.testing.assert_array_equal(got, range(4), err_msg=run)


NAMES = f"""
func.func private @range(%x: i32) -> i32 {{
  %lambda = arith.addi %x, %x : i32
  func.return %lambda : i32
}}
func.func @Int32(%out: memref<?xi32>) attributes {{numba_cute.kernel}} {{
  {THREAD}
  %Int32 = arith.index_cast %t : index to i32
  %0 = func.call @range(%Int32) : (i32) -> i32
  %Int64 = arith.addi %0, %0 : i32
  %cuda = arith.constant 1 : i32
  %lo = arith.constant 0 : i32
  %hi = arith.constant 2 : i32
  %min = scf.for %cuda_1 = %lo to %hi step %cuda iter_args(%Int32_1 = %Int64) -> (i32) : i32 {{
    %in = arith.addi %Int32_1, %cuda_1 : i32
    scf.yield %in : i32
  }}
  memref.store %min, %out[%t] : memref<?xi32>
  func.return
}}
"""


def test_names_that_python_or_the_kernel_has():
    for run, (got,) in both(kernel_of(NAMES), 4, [np.zeros(4, np.int32)]):
        np.testing.assert_array_equal(got, [4 * t + 1 for t in range(4)], err_msg=run)


ASSERTS = f"""
func.func @k(%o: memref<?xindex>) attributes {{numba_cute.kernel}} {{
  {THREAD}
  %two = arith.constant 2 : index
  %ok = arith.cmpi slt, %t, %two : index
  cf.assert %ok, "two threads at most"
  memref.store %t, %o[%t] : memref<?xindex>
  func.return
}}
"""


def test_asserts():
    kernel = kernel_of(ASSERTS)
    cute.simulate(kernel)[1, 2](np.zeros(8, np.int64))
    with pytest.raises(cute.CuteError, match=r"two threads at most[\s\S]*test\.mlir:6"):
        cute.simulate(kernel)[1, 3](np.zeros(8, np.int64))


REFUSED = {
    "vectors": ("%v = arith.constant dense<1> : vector<4xi32>", "vector<4xi32> is not a type of numbers"),
    "width": ("%v = arith.constant 1 : i7", "i7 is not a type of numbers"),
    "bools": ("%b = arith.constant true\n  %v = arith.divsi %b, %b : i1", "there is none of i1"),
    "function": ("func.call @nothing() : () -> ()", "no function @nothing"),
    "blocks": ("cf.br ^next\n^next:", "its body has 2 blocks"),
    "while": (
        "%c = arith.constant true\n  %w = scf.while (%v = %c) : (i1) -> (i32) {\n    scf.condition(%v) %v : i1\n"
        "  } do {\n  ^bb0(%v: i1):\n    scf.yield %v : i1\n  }",
        r"its block takes \(i1\), and its results are of \(i32\)",
    ),
    "a method of nothing": ("numba_cute.Tensor.fill", "a method is called on its first operand"),
    "before it is set": (
        "%z = arith.constant 0.0 : f32\n  %t = arith.constant true\n  %w = arith.addf %next, %z : f32\n"
        "  %next = arith.addf %z, %z : f32",
        "%next is used where no way has set it",
    ),
    "registers": (
        '%v = cute.memref.alloca() : !cute.memref<f32, rmem, align<16>, "(4,2147483648):(1,0)">',
        "8589934592 elements of Float32 are more than the 512 KiB",
    ),
    "operation": ("%v = memref.alloca() : memref<4xi32>", "not an operation that a kernel"),
}  # fmt: skip


@pytest.mark.parametrize("case", list(REFUSED))
def test_what_is_refused(case):
    line, message = REFUSED[case]
    extra = "func.func private @nothing()\n" if case == "function" else ""
    source = f"{extra}func.func @k() attributes {{numba_cute.kernel}} {{\n  {line}\n  func.return\n}}\n"
    with pytest.raises(cute.CuteError, match=message) as e:
        kernel_of(source)
    assert "test.mlir:" in str(e.value)


def test_which_kernel():
    two = (
        "func.func @a() attributes {numba_cute.kernel} {\n  func.return\n}\nfunc.func @b() attributes "
        "{numba_cute.kernel} {\n"
    )
    two += "  func.return\n}\n"
    assert kernel_of(two, "b").py_func.__name__ == "b"
    with pytest.raises(cute.CuteError, match="its kernels: @a, @b"):
        kernel_of(two)
    with pytest.raises(cute.CuteError, match="no kernel @c"):
        kernel_of(two, "c")
    with pytest.raises(cute.CuteError, match="its kernels: none"):
        kernel_of("func.func private @a() {\n  func.return\n}\n")


WHILE = f"""
func.func @halve(%n: i32, %o: memref<?xi32>) attributes {{numba_cute.kernel}} {{
  {THREAD}
  %c1 = arith.constant 1 : i32
  %lo = arith.constant 0 : i32
  %r, %steps = scf.while (%v = %n, %k = %lo) : (i32, i32) -> (i32, i32) {{
    %half = arith.shrsi %v, %c1 : i32
    %more = arith.cmpi sgt, %half, %k : i32
    scf.condition(%more) %v, %k : i32, i32
  }} do {{
  ^bb0(%v: i32, %k: i32):
    %next = arith.shrsi %v, %c1 : i32
    %count = arith.addi %k, %c1 : i32
    scf.yield %next, %count : i32, i32
  }}
  %sum = arith.addi %r, %steps : i32
  memref.store %sum, %o[%t] : memref<?xi32>
  func.return
}}
"""


def test_a_test_that_is_one_expression():
    assert "    while (Int32(v >> 1)) > k:" in python_of(WHILE).splitlines()
    v, k = 1000, 0
    while v >> 1 > k:
        v, k = v >> 1, k + 1
    for run, (got,) in both(kernel_of(WHILE), 2, [np.zeros(2, np.int32)], np.int32(1000)):
        np.testing.assert_array_equal(got, v + k, err_msg=run)


POISON = f"""
func.func @k(%n: i32, %o: memref<?xi32>) attributes {{numba_cute.kernel}} {{
  {THREAD}
  %none = ub.poison : i32
  %lo = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %last = scf.for %i = %lo to %n step %one iter_args(%x = %none) -> (i32) : i32 {{
    scf.yield %i : i32
  }}
  memref.store %last, %o[%t] : memref<?xi32>
  func.return
}}
"""


def test_a_value_that_nothing_depends_on():
    for run, (got,) in both(kernel_of(POISON), 1, [np.zeros(1, np.int32)], np.int32(5)):
        np.testing.assert_array_equal(got, 4, err_msg=run)
