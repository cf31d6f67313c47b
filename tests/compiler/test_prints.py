# SPDX-License-Identifier: Apache-2.0
"""What the CuTe DSL's kernels print while they are compiled, what they are called, and what may be given to them."""

import functools
import operator

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.compiler.bridge.printing import printing_at_run_time
from numba_cute.runtime import from_dlpack


@cute.jit
def told(x):
    print(f"of a helper: {x.type}")
    return x[0]


@cute.kernel
def telling(x, out):
    tidx, _, _ = cute.arch.thread_idx()
    print("plain", 3, sep="; ")
    print(f"{x.layout} of {cute.size(x.layout)}", end="!\n")
    for i in cute.range_constexpr(2):
        print(f"copy {i}")
    if cute.arch.block_idx()[0] == 0:
        out[tidx] = told(x)


WORDS = ["plain; 3", "(4):(1) of 4!", "copy 0", "copy 1", 'of a helper: !cute.memref<f32, gmem, "(4):(1)">']


def test_a_kernel_of_the_dsl_prints_once_while_it_is_compiled(capsys):
    x, out = np.ones(4, np.float32), np.zeros(64, np.float32)
    cute.simulate(telling)[2, 32](from_dlpack(x), from_dlpack(out))
    assert capsys.readouterr().out.splitlines() == WORDS and out[:32].all()
    ptx = cute.compile(telling, (from_dlpack(x), from_dlpack(out))).ptx
    assert sorted(capsys.readouterr().out.splitlines()) == sorted(WORDS) and "vprintf" not in ptx


def test_what_is_known_at_run_time_is_printed_as_such(capsys):
    @cute.kernel
    def kernel(out, n):
        print(f"{n} and {out.layout}")
        out[0] = n

    cute.compile(kernel, (from_dlpack(np.zeros(4)).mark_layout_dynamic(), 3))
    assert capsys.readouterr().out == "? and (?):(1)\n"


def test_other_kernels_print_at_run_time():
    @cuda.jit
    def kernel(x):
        print("at run time", x[0])

    assert "vprintf" in cute.compile(kernel, (from_dlpack(np.zeros(4, np.float32)),)).ptx


def test_types_are_told_in_the_notation_of_the_ir():
    t = from_dlpack(np.zeros((4, 2), np.float16))
    assert t.type == '!cute.memref<f16, gmem, "(4,2):(2,1)">' and t.layout.type == '!cute.layout<"(4,2):(2,1)">'


@cute.kernel
def types_of_registers(n):
    r = cute.make_rmem_tensor((4, 2), cute.Boolean)
    print(f"{r.type}")
    half = cute.make_rmem_tensor((4, 2), cute.Float16)
    half.fill(n)
    print(half.type, half[None, 1].type, cute.zipped_divide(half, (2, 1)).type, sep="\n")
    print(cute.make_tensor(half.iterator + 4, cute.make_layout(4)).type)
    print(cute.make_rmem_tensor(8, cute.Float4E2M1FN).type)


def test_types_of_registers_are_told_alike_in_every_engine(capsys):
    told = []
    for run in (
        lambda: cute.simulate(types_of_registers)[1, 32](5),
        lambda: cute.simulate(types_of_registers, checks=False)[1, 32](5),
        lambda: cute.compile(types_of_registers, (5,), arch="sm_90a"),
    ):
        run()
        told.append(capsys.readouterr().out.splitlines())
    assert told[0] == told[1] == told[2]
    assert told[0][:2] == [f'!cute.memref<{t}, rmem, align<16>, "(4,2):(1,4)">' for t in ("i1", "f16")]


def test_a_name_may_get_a_prefix():
    @cute.kernel
    def kernel(x):
        x[0] = 1

    kernel.set_name_prefix("mine")
    kernel.set_name_prefix("yours")
    assert "yours_kernel" in cute.compile(kernel, (np.zeros(4),)).name
    host = cute.jit(lambda x: kernel(x).launch(grid=1, block=1))
    host.set_name_prefix("of")
    with pytest.raises(cute.CuteError, match="begins with no digit"):
        kernel.set_name_prefix("2 words")


# ------------------------------------------------------------------ arguments


@cute.dsl_user_op
def leaky(x, alpha, *, loc=None, ip=None):
    return cute.where(x > 0, x, alpha * x, loc=loc, ip=ip)


@cute.kernel
def applied(op: cute.Constexpr, inputs, out):
    tidx, _, _ = cute.arch.thread_idx()
    rows = [t[tidx, None] for t in inputs]
    out[tidx, None].store(op(*[r.load() for r in rows]))


@cute.jit
def apply(op: cute.Constexpr, inputs, out):
    applied(op, inputs, out).launch(grid=1, block=[4, 1, 1])


@pytest.mark.parametrize("op, count, expected", [
    (operator.add, 2, lambda a, b: a + b),
    (lambda a, b: a * a + b, 2, lambda a, b: a * a + b),
    (functools.partial(leaky, alpha=0.5), 1, lambda a: np.where(a > 0, a, a / 2)),
], ids=("operator", "lambda", "partial"))  # fmt: skip
def test_an_argument_may_be_a_function_and_a_list(op, count, expected):
    rng = np.random.default_rng(0)
    inputs, out = [rng.standard_normal((4, 4)).astype(np.float32) for _ in range(count)], np.zeros((4, 4), np.float32)
    args = op, list(map(from_dlpack, inputs)), from_dlpack(out)
    cute.simulate(apply)(*args)
    np.testing.assert_allclose(out, expected(*inputs), rtol=1e-6)
    (compiled,) = cute.compile(apply, *args).kernels
    assert compiled.resources.local == 0


def test_what_else_prints_while_a_plain_function_is_traced_prints(capsys):
    class Tracing:
        plain = True

    with printing_at_run_time(Tracing()):
        print("of another thread")
    assert capsys.readouterr().out == "of another thread\n"


def test_texts_fill_in_what_is_known(capsys):
    @cute.kernel
    def kernel(x):
        tidx, _, _ = cute.arch.thread_idx()
        print("{} of {}, {:>4}".format(cute.size(x), x.element_type, 7))  # noqa: UP032
        print("at {}".format(tidx))  # noqa: UP032

    def compile(x):
        cute.compile(kernel, x, arch="sm_90a")

    x = np.ones(4, np.int32)
    cute.simulate(kernel)[1, 1](from_dlpack(x))
    compile(from_dlpack(x))
    words = "4 of Int32,    7"
    assert capsys.readouterr().out.splitlines() == [words, "at 0", words, "at ?"]

    @cute.kernel
    def wrong(x):
        print("{} and {}".format(cute.size(x)))  # noqa: F524

    with pytest.raises(cute.CuteError, match="give a value for each of its braces"):
        cute.compile(wrong, from_dlpack(x), arch="sm_90a")


def test_f_strings_convert_and_format(capsys):
    named = "a"

    @cute.kernel
    def kernel(x):
        tidx, _, _ = cute.arch.thread_idx()
        n = cute.size(x)
        print(f"{n = }, {x.layout!s}, {named!r:>{n + 2}}|{n:03d}|{n!s:^{n + 1}}|{named!a}")
        print(f"{tidx!s}")
        name = f"{named!r}{n:>2}"
        print(name)

    x = np.ones(4, np.int32)
    words = "n = 4, (4):(1),    'a'|004|  4  |'a'"
    cute.simulate(kernel)[1, 1](from_dlpack(x))
    cute.compile(kernel, from_dlpack(x), arch="sm_90a")
    assert capsys.readouterr().out.splitlines() == [words, "0", "'a' 4", words, "?", "'a' 4"]

    @cute.kernel
    def of_run_time(x):
        name = f"{x[0]!r}"
        print(name)

    @cute.kernel
    def wrong(x):
        print(f"{cute.size(x):zz}")

    for refused, why in ((of_run_time, "a text of what is known only at run time"), (wrong, "in its format")):
        with pytest.raises(cute.CuteError, match=why):
            cute.compile(refused, from_dlpack(x), arch="sm_90a")
