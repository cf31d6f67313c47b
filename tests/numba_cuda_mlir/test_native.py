# SPDX-License-Identifier: Apache-2.0
"""`NUMBA_CUTE_BACKEND=mlir`: kernels by way of MLIR compute the same, and keep what is convergent where it is."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import warnings
from collections import Counter

import numpy as np
import pytest
from llvmlite import ir
from numba import cuda
from numba.cuda.cudadrv import nvvm

import numba_cute as cute
from benchmarks import harness
from benchmarks.code_kernels import OURS
from numba_cute import config
from numba_cute.compiler.ground import versions
from numba_cute.compiler.host import backend, dialect, disk_cache

from .random_ir import I1, I32, Random, module, run

VOID, POINTER = ir.VoidType(), ir.PointerType(I32)
PAIRS = [(0, 0), (1, -1), (5, 3), (-7, 1 << 50), (123456789123, -(1 << 63)), (255, 256)]


def ptx_of(text, arch="compute_100"):
    return nvvm.compile_ir(text, arch=arch, opt=3).decode()


# ---------------------------------------------------------------------- what is computed
@pytest.mark.parametrize("seed", range(4))
def test_a_random_function_computes_the_same(seed):
    made = Random(seed).module
    usual, native = str(made), backend.through_mlir(made)
    assert native.count("alloca") < usual.count("alloca"), "MLIR's passes make values of what they can"
    assert run(native, PAIRS) == run(usual, PAIRS)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 200, 50))
def test_many_random_functions_compute_the_same(first):
    for seed in range(first, first + 50):
        made = Random(seed).module
        assert run(backend.through_mlir(made), PAIRS) == run(str(made), PAIRS), seed


def test_a_difference_is_seen():
    made = Random(0).module
    native = backend.through_mlir(made)
    assert run(native.replace(" xor ", " or "), PAIRS) != run(str(made), PAIRS)


# ---------------------------------------------------------------------- what is convergent
def kernel():
    """A kernel of a pointer and a number, its blocks, and builders of them."""
    function = ir.Function(module(), ir.FunctionType(VOID, [POINTER, I32]), "k")
    blocks = [function.append_basic_block(name) for name in "eabjxy"]
    nvvm.set_cuda_kernel(function)
    return (*function.args, blocks, [ir.IRBuilder(block) for block in blocks])


def barrier(b):
    b.call(ir.InlineAsm(ir.FunctionType(VOID, []), "bar.sync 0;", "~{memory}", True), [], attrs=("convergent",))


def between_branches():
    """The same branch before and after a barrier: LLVM makes one of both, with a barrier on each side, if it may."""
    p, n, (_, a, b, j, x, y), (in_e, in_a, in_b, in_j, in_x, in_y) = kernel()
    in_e.cbranch(in_e.icmp_signed("<", n, I32(5)), a, b)
    in_a.store(I32(7), p)
    in_a.branch(j)
    in_b.branch(j)
    which = in_j.phi(I1)
    which.add_incoming(I1(1), a)
    which.add_incoming(I1(0), b)
    barrier(in_j)
    in_j.cbranch(which, x, y)
    in_x.store(I32(1), p)
    in_x.ret_void()
    in_y.ret_void()
    return in_e.module


def in_a_loop():
    """A barrier in a loop beside a branch that is the same in all rounds: LLVM makes a loop of each side, if it may."""
    p, n, (e, a, b, j, x, _), (in_e, in_a, in_b, in_j, in_x, in_y) = kernel()
    always = in_e.icmp_signed("<", n, I32(5))
    in_e.branch(a)
    i = in_a.phi(I32)
    i.add_incoming(I32(0), e)
    in_a.cbranch(always, b, j)
    in_b.atomic_rmw("add", p, I32(1), "monotonic")
    in_b.branch(j)
    barrier(in_j)
    following = in_j.add(i, I32(1))
    i.add_incoming(following, j)
    in_j.cbranch(in_j.icmp_signed("<", following, n), a, x)
    in_x.ret_void()
    in_y.unreachable()
    return in_e.module


@pytest.mark.parametrize("make", [between_branches, in_a_loop])
def test_a_barrier_is_copied_into_no_branch(make):
    made = make()
    native = backend.through_mlir(made)
    barriers = [ptx_of(text).count("bar.sync") for text in (str(made), native, native.replace(" convergent", ""))]
    assert barriers[0] == barriers[1] < barriers[2], "without the word it is copied"


def on_both_sides(text):
    return f"""module {{ llvm.func @one()
    llvm.func @other()
    llvm.func @k(%p: !llvm.ptr, %c: i1) {{
        llvm.cond_br %c, ^a, ^b
    ^a:
        {text[0]}
        llvm.br ^d
    ^b:
        {text[1]}
        llvm.br ^d
    ^d:
        llvm.return
    }} }}"""


def test_mlir_merges_no_two_of_what_is_kept_aside():
    asm = 'llvm.inline_asm has_side_effects "bar.sync 0;", "" : () -> ()'
    calls = ["llvm.call @one() : () -> ()", "llvm.call @other() : () -> ()"]
    of = backend._package()

    def merged(lines, of_lines):
        with of.context.get_context():
            made = of.ir.Module.parse(on_both_sides(lines))
            of.PassManager.parse("builtin.module(canonicalize{region-simplify=aggressive})").run(made.operation)
            return str(made).count(of_lines)

    assert merged([asm, asm], "bar.sync") == 1, "which is why inline assembly is not given to it"
    assert merged([calls[0]] * 2, "llvm.call") == 1, "nor one function for all calls"
    assert merged(calls, "llvm.call") == 2


def test_what_mlir_copied_is_refused(monkeypatch):
    optimised = backend._optimised

    def copying(functions):
        return re.sub(r"(  call void @aside\.\d+\(\)\n)", r"\1\1", optimised(functions))

    monkeypatch.setattr(backend, "_optimised", copying)
    with pytest.raises(cute.CuteError, match=r"(?s)copied an instruction that is convergent:.*bar\.sync"):
        backend.through_mlir(between_branches())


# ---------------------------------------------------------------------- what the way back would lose
def test_alignment_and_what_is_said_of_loops_and_branches_is_kept():
    p, n, (_, a, b, *_), (in_e, in_a, in_b, *others) = kernel()
    made = in_e.module
    in_e.branch(a)
    loaded = in_a.load(in_a.gep(p, [n]), align=2)
    branch = in_a.cbranch(in_a.icmp_signed("<", loaded, n), a, b)
    branch.set_metadata("llvm.loop", made.add_metadata([made.add_metadata(["llvm.loop.unroll.disable"])]))
    branch.set_weights([99, 1])
    in_b.store(loaded, p)
    in_b.ret_void()
    for other in others:
        other.unreachable()
    native = backend.through_mlir(made)
    assert re.search(r"load i32, i32\* %o0, align 2", native)
    assert re.search(r"  br i1 %\d+, label %\d+, label %\d+, !llvm.loop !\d+, !prof !\d+\n", native)
    assert "@mark" not in native
    assert "ld.global.u16" in ptx_of(native, "compute_90"), "its halves, for it may stand at an odd one"


# ---------------------------------------------------------------------- kernels
@pytest.fixture(autouse=True)
def examples(monkeypatch):
    """What compiles the examples imports them."""
    monkeypatch.syspath_prepend(str(harness.ROOT / "examples"))


def figures(name):
    made = OURS[name]()
    used = made.resources
    names = Counter(
        re.findall(r"\b(?:HGMMA|HMMA|UTMALDG|UTMASTG|LDSM|STSM|LDGSTS|SYNCS|BAR|LDG|STG|STL|LDL)\b", made.sass)
    )
    return used.registers, used.spill_stores, used.local, names


@pytest.mark.parametrize(
    "name",
    [pytest.param(f"example {n}", marks=pytest.mark.slow) for n in ("elementwise", "ampere_gemm", "hopper_gemm")],
)
def test_machine_code_is_as_usual(name):
    with config.override(cache=False):
        usual = figures(name)
        with config.override(backend="mlir"):
            native = figures(name)
    assert native[1:] == usual[1:] and native[3]["STL"] == 0
    assert abs(native[0] - usual[0]) <= 8


def where_first_used(text):
    """A function in MLIR whose arrays are each made in the block that first names it."""
    lines = text.splitlines()
    for line in [x for x in lines if "llvm.alloca" in x and "x !llvm.array<" in x]:
        name = re.compile(rf"{line.split(' = ')[0].strip()}\b")
        using = next((x for x in lines if x != line and name.search(x)), None)
        if using is not None and any(x.startswith("^") for x in lines[: lines.index(using)]):
            lines.remove(line)
            lines.insert(lines.index(using), line)
    return "\n".join(lines) + "\n"


@pytest.mark.slow
@pytest.mark.parametrize("passes, local", [("canonicalize,cse", True), (backend.PASSES, False)])
def test_accumulators_made_in_a_loop_are_in_local_memory_if_mlir_makes_no_values_of_them(passes, local, monkeypatch):
    """LLVM makes values of what is allocated in a function's first block, and numba-cuda-mlir's passes of nothing."""
    write = dialect.FunctionWriter.write
    monkeypatch.setattr(dialect.FunctionWriter, "write", lambda self: where_first_used(write(self)))
    monkeypatch.setattr(backend, "PASSES", passes)
    with config.override(cache=False, backend="mlir"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = OURS["example hopper_gemm"]()
    assert ("ld.local" in made.ptx) is (made.resources.local > 0) is local


def doubled(x):
    x[cuda.threadIdx.x] *= 2


def test_it_is_asked_for_by_name_and_for_kernels_of_this_library_alone(monkeypatch):
    through, given = backend.through_mlir, []
    monkeypatch.setattr(backend, "through_mlir", lambda m, debug: given.append(m.name) or through(m, debug))
    args = (np.zeros(64, np.float32),)
    with config.override(cache=False):
        cute.compile(doubled, args)
        assert given == []
        with config.override(backend="mlir"):
            native = cute.compile(doubled, args)
    assert len(given) == 1 and "doubled" in given[0] and native.resources.registers


@pytest.mark.parametrize("option", ["lineinfo", "debug"])
def test_line_numbers_are_refused(option):
    more = {"opt": False} if option == "debug" else {}
    with (
        config.override(backend="mlir", cache=False),
        pytest.raises(cute.CuteError, match="BACKEND=mlir.*doubled.*no line"),
    ):
        cute.compile(cuda.jit(**{option: True}, **more)(doubled), (np.zeros(64, np.float32),))


def test_another_backend_is_refused(monkeypatch):
    monkeypatch.setenv("NUMBA_CUTE_BACKEND", "llvm")
    with pytest.raises(cute.CuteError, match="NUMBA_CUTE_BACKEND=llvm: there is mlir"):
        config.current()


@pytest.mark.parametrize("found", ["0.7.0", None])
def test_without_the_package_or_with_another_version_it_is_refused(found, monkeypatch):
    def installed(_):
        if found is None:
            raise importlib.metadata.PackageNotFoundError("numba-cuda-mlir")
        return found

    monkeypatch.setattr(versions.Package, "installed", installed)
    with pytest.raises(cute.CuteError, match=r"numba-cuda-mlir==0\.6\.0"):
        backend.through_mlir(between_branches())


@pytest.mark.slow
def test_without_the_setting_nothing_of_it_is_loaded():
    code = (
        "import sys; from benchmarks import code_kernels, harness\n"
        "harness.load('code'); code_kernels.OURS['example elementwise']()\n"
        "assert not {m for m in sys.modules if m.startswith('numba_cuda_mlir.') or m.endswith('host.dialect')}"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=harness.ROOT)


def test_the_disk_cache_tells_backends_apart():
    key = lambda: disk_cache.key_of(doubled, (), {}, "sm_90a", "kernel").text  # noqa: E731
    with config.override(cache=True):
        usual = key()
        with config.override(backend="mlir"):
            assert key() != usual is not None
        assert key() == usual
