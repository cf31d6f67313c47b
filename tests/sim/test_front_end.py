# SPDX-License-Identifier: Apache-2.0
"""What the compiler's front end refuses in a `@cuda.jit` kernel the simulator refuses too: in the same words, at the
same line, before any thread runs. A plain function has no front end."""

import dataclasses
import linecache
import math
from types import SimpleNamespace

import numpy as np
import pytest
from cuda.pathfinder import DynamicLibNotFoundError
from numba import cuda
from numba.cuda.cudadrv import nvvm
from numba.cuda.cudadrv.error import NvvmSupportError

import numba_cute as cute
from numba_cute import simulate
from numba_cute.compiler.ground.nvvm import StandIn
from numba_cute.compiler.host import checking, lowering

BODIES = {
    "a dict that is asked at run time": "d = {5: 7}\nout[t] = d.get(n, 9)",
    "an exception that is caught": "try:\n    out[t] = n\nexcept ValueError:\n    out[t] = 1",
    "a text that is made at run time": "out[t] = len(f'{n}')",
    "a vector of a run-time length": "v = cute.make_rmem_tensor(n, cute.Float32).load()\nout[t] = v[0]",
    "a whole array's exponentials": "e = np.exp(out)\nout[t] = e[0]",
    "sorting": "s = sorted((n, 2, 1))\nout[t] = s[0]",
    "another type on each way": "x = (1, 2)\nif n > 2:\n    x = 3\nout[t] = 1 if x == 3 else 0",
    "a name of the host": "out[t] = print.__name__ == 'print'",
    "a module's attribute that kernels have not": "out[t] = math.nothing(n)",
    "a set": "s = {n, 2}\nout[t] = 2 in s",
    "a global's file": "out[t] = open('x')",
    "a result": "out[t] = n\nreturn n",
    "a list that grows in a run-time loop": "x = [n]\nwhile len(x) < n:\n    x.append(n)\nout[t] = x[0]",
    "an alignment": "cuda.shared.array(4, 'int32', alignment=12)\nout[t] = 1",
    "deletion": "x = [1]\ndel x[0]\nout[t] = 1",
    "global statement": "global N\nN = 3\nout[t] = N",
    "yield": "out[t] = n\nyield n",
}


def kernel_of(name, body):
    """A kernel with a body, whose lines errors can show."""
    lines = ["def kernel(out, n):", "t = cuda.threadIdx.x", "out[t] = 5.0", *body.splitlines()]
    source = "\n".join([lines[0], *("    " + line for line in lines[1:])]) + "\n"
    file = f"<front end: {name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    space = {"cuda": cuda, "cute": cute, "np": np, "math": math, "N": 1, "__name__": "front_end"}
    exec(compile(source, file, "exec"), space)
    return space["kernel"]


@pytest.mark.parametrize("name", BODIES)
def test_both_engines_refuse_the_same_in_the_same_words_before_anything_runs(name):
    kernel, out = cuda.jit(kernel_of(name, BODIES[name])), np.zeros(4)
    with pytest.raises(cute.CuteError) as compiled:
        cute.compile(kernel, out, 3)
    with pytest.raises(cute.CuteError) as simulated:
        simulate(kernel)[1, 4](out, 3)
    assert str(simulated.value) == str(compiled.value)
    assert f"<front end: {name}>:" in str(simulated.value)
    assert not out.any()


def test_a_plain_function_is_simulated_as_the_python_that_it_is():
    out = np.zeros(4)
    simulate(kernel_of("plain", BODIES["sorting"]))[1, 4](out, 5)
    assert (out == 1).all()


def test_a_kernel_of_a_host_function_is_judged_too():
    kernel = cute.kernel(kernel_of("host", BODIES["another type on each way"]))

    @cute.jit
    def host(out):
        kernel(out, 3).launch(grid=1, block=4)

    with pytest.raises(cute.CuteError, match="<front end: host>:"):
        simulate(host)(np.zeros(4))


@pytest.mark.parametrize("error", [NvvmSupportError, DynamicLibNotFoundError])
def test_neither_libnvvm_nor_a_gpu_is_needed(monkeypatch, error):
    def absent(cls):
        raise error("libnvvm is not here")

    monkeypatch.setattr(nvvm.NVVM, "get_ir_version", absent)

    @cuda.jit
    def kernel(out, n):
        s = cuda.shared.array(4, "float32")
        s[cuda.threadIdx.x] = n
        cuda.syncthreads()
        out[cuda.threadIdx.x] = s[3 - cuda.threadIdx.x] + cute.arch.lane_idx()

    out = np.zeros(4)
    simulate(kernel)[1, 4](out, 3)
    np.testing.assert_array_equal(out, [3, 4, 5, 6])


def test_the_layout_that_stands_for_libnvvms_is_its_own():
    assert StandIn.data_layout == nvvm.NVVM().data_layout


@pytest.fixture
def lowered(monkeypatch):
    """The functions that were lowered for a check."""
    done, lower = [], lowering.lowered
    monkeypatch.setattr(lowering, "lowered", lambda f, *rest: [done.append(f.__name__), lower(f, *rest)][1])
    return done


def test_a_kernel_is_judged_once_for_its_arguments_types(lowered):
    @cuda.jit
    def kernel(out, n):
        out[cuda.threadIdx.x] = n

    for n in (1, 2, 1.0, np.int32(3), 4):
        simulate(kernel)[1, 1](np.zeros(1), n)
    assert len(lowered) == 3
    simulate(kernel, arch="sm_100a")[1, 1](np.zeros(1), 1)
    assert len(lowered) == 4


def test_what_cute_compile_took_is_not_judged_again(lowered):
    @cuda.jit
    def kernel(out, n):
        out[cuda.threadIdx.x] = n

    args = np.zeros(1), 1
    cute.compile(kernel, *args)
    simulate(kernel)[1, 1](*args)
    simulate(kernel, compile=True)[1, 1](*args)
    assert not lowered


TILE = 4


@cuda.jit(device=True)
def tile():
    return TILE


def test_a_check_compiles_nothing_that_others_find(monkeypatch):
    def make():
        @cuda.jit
        def kernel(out):
            r = cute.make_rmem_tensor(tile(), cute.Float32)
            out[cuda.threadIdx.x] = cute.size(r.layout)

        return kernel

    out = np.zeros(1)
    for n in (4, 8):
        monkeypatch.setitem(globals(), "TILE", n)
        simulate(make())[1, 1](out)
        assert out[0] == n
    assert not tile.overloads


def told(x):
    print("told", x)
    breakpoint()
    return x


def test_a_check_prints_nothing_and_stops_nowhere(capsys, monkeypatch):
    @cute.kernel
    def kernel(out, n):
        print(f"n is {n}")
        out[0] = told(n)

    stops = []
    monkeypatch.setattr("sys.breakpointhook", lambda: stops.append(1))
    checking.check(kernel, (np.zeros(1), 3), "sm_90a")
    assert capsys.readouterr().out == "" and not stops
    simulate(kernel)[1, 1](np.zeros(1), 3)
    assert capsys.readouterr().out.count("told 3") == 1 and stops == [1]


@dataclasses.dataclass
class Pair:
    a: object
    b: object


def test_what_the_front_end_takes_gives_what_it_gave():
    @cuda.jit
    def kernel(out, n):
        p = Pair(n, SimpleNamespace(c=2))
        out[cute.arch.thread_idx()[0]] = p.a + p.b.c

    out = np.zeros(2)
    simulate(kernel)[1, 2](out, 3)
    assert (out == 5).all()


def test_a_kernel_is_judged_again_when_what_it_reads_is_another(lowered):
    n = 1

    @cuda.jit
    def kernel(out):
        x = n
        out[cuda.threadIdx.x] = x + x

    out = np.zeros(1)
    for value, times in ((1, 1), (1, 1), (0.25, 2), (0.25, 2)):
        n = value
        simulate(kernel)[1, 1](out)
        assert out[0] == 2 * n and len(lowered) == times
