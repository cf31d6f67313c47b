# SPDX-License-Identifier: Apache-2.0
"""What ports of the CuTe DSL's kernels need beside methods: classes in a kernel, conversions of numbers, and registers
that a run-time index finds."""

import functools
import operator

import numpy as np
import pytest

import numba_cute as cute
from numba_cute.runtime import from_dlpack
from tests.compiler.three_ways import results


def described(count):
    @cute.kernel
    def kernel(x, y, lay, more: int = 1):
        """Two views of the same memory."""
        tidx, _, _ = cute.arch.thread_idx()

        @cute.struct
        class Floats:
            """What it holds first."""

            a: cute.struct.Align[cute.struct.MemRange[x.element_type, cute.cosize(lay)], 16]
            b: cute.struct.MemRange[cute.Float16, count]

        @cute.struct
        class Words:
            c: cute.struct.MemRange[cute.Int32, 2 * count]

        smem = cute.utils.SmemAllocator()
        storage = smem.allocate(max(Floats.size_in_bytes(), Words.size_in_bytes()), byte_alignment=16)
        s = Floats(storage).a.get_tensor(lay)
        s[tidx] = x[tidx] + more
        cute.arch.sync_threads()
        y[tidx] = s[31 - tidx]

    return kernel


@pytest.mark.parametrize("count, nbytes", [(8, 144), (100, 800)])
def test_a_kernel_may_describe_its_shared_memory(count, nbytes):
    kernel = described(count)
    x, y = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    args = from_dlpack(x), from_dlpack(y), cute.make_layout(32)
    cute.simulate(kernel)[1, 32](*args)
    np.testing.assert_array_equal(y, x[::-1] + 1)
    cute.simulate(kernel)[1, 32](*args, more=2)
    np.testing.assert_array_equal(y, x[::-1] + 2)
    assert cute.compile(kernel, args).resources.dynamic_shared == nbytes
    assert kernel.__name__ == "kernel" and kernel.__doc__ == "Two views of the same memory."


def test_an_error_in_such_a_kernel_names_its_line():
    @cute.kernel
    def kernel(x):
        @cute.struct
        class Storage:
            a: cute.struct.MemRange[cute.Int32, 4]

        x[0] = cute.no_such_name

    with pytest.raises(Exception, match="no_such_name") as raised:
        cute.simulate(kernel)[1, 1](np.zeros(3))
    assert "x[0] = cute.no_such_name" in str(raised.value)


def test_any_other_class_is_refused():
    with pytest.raises(cute.CuteError, match="class Storage in a kernel: it may describe shared memory"):

        @cute.kernel
        def kernel(x):
            class Storage:
                a = 3

            x[0] = Storage.a


def test_numbers_convert_themselves():
    @cute.kernel
    def kernel(x, out):
        half = from_first(x)
        out[0] = half.to(cute.Float16).to(cute.Float32) * 2
        out[1] = (x[0] > 1).to(cute.Int32) + x[1].to(cute.Int32)

    @cute.jit
    def from_first(x):
        return x[0]

    x, out = np.array([1.0004, 2.7], np.float32), np.zeros(2, np.float32)
    args = from_dlpack(x), from_dlpack(out)
    cute.simulate(kernel)[1, 1](*args)
    assert out.tolist() == [np.float32(np.float16(x[0])) * 2, 3.0]
    assert "f16" in cute.compile(kernel, args).ptx
    assert cute.Int32(3).to(cute.Float32).dtype is cute.Float32


@pytest.mark.parametrize("dtype", (cute.Float16, cute.Float32, cute.Int8), ids=str)
def test_a_run_time_index_finds_vectors_of_registers(dtype):
    """The loop is one at run time, which the compiler unrolls: nothing is left in local memory."""

    @cute.kernel
    def kernel(x, out):
        r = cute.make_rmem_tensor((4, 3), dtype)
        for i in range(3):
            cute.autovec_copy(x[None, i], r[None, i])
        for i in range(3):
            out[None, i].store(r[None, 2 - i].load())

    x = np.arange(12).reshape(3, 4).astype(dtype.numpy)
    out = np.zeros_like(x)
    args = tuple(cute.make_tensor(from_dlpack(a).iterator, cute.make_layout((4, 3))) for a in (x, out))
    cute.simulate(kernel)[1, 1](*args)
    np.testing.assert_array_equal(out, x[::-1])
    assert cute.compile(kernel, args).resources.local == 0


@pytest.mark.parametrize("kind", (cute.Float32, "cute.Float32"), ids=("a type", "a text"))
def test_defaults_are_as_annotated(kind):
    given = []

    @cute.jit
    def host(x, eps: kind = 0.5, *, n=3):
        given.append((x, eps, n))

    host(1)
    host(1, 0.25, n=4)
    host(1, eps=2)
    assert [e.dtype for _, e, _ in given] == [cute.Float32] * 3 and [n for *_, n in given] == [3, 4, 3]


def test_the_elements_that_lie_together_are_known():
    def promised(n, d):
        return cute.assume(cute.Int32(n), d)

    make = cute.make_layout
    for layout, count in (
        (make(12), 12), (make((4, 6)), 24), (make((4, 6), stride=(6, 1)), 24), (make((4, 6), stride=(8, 1)), 2),
        (make((4, 6), stride=(1, 8)), 4), (make(5, stride=2), 1), (make((1, 7), stride=(3, 1)), 7),
        (make((promised(32, 8), 3), stride=(1, promised(64, 16))), 8), (make(cute.Int32(8)), 1),
    ):  # fmt: skip
        assert layout.max_alignment == count, layout


# ------------------------------------------------------------------ what self and arguments hold


class Config:
    SCALE = 3

    def __init__(self, rows, dtype):
        self.rows, self.dtype, self.owner = rows, dtype, self


class Configured:
    def __init__(self, rows):
        self.cfg = Config(rows, cute.Float32)

    @cute.jit
    def __call__(self, x, out):
        self.kernel(x, out, (self.cfg.rows, 2)).launch(grid=1, block=1)

    @cute.kernel
    def kernel(self, x: cute.Tensor, out: cute.Tensor, tile: cute.Shape):
        cfg = self.cfg
        r = cute.make_rmem_tensor(tile, cfg.dtype)
        for i in cute.range_constexpr(cfg.rows * tile[1]):
            r[i] = x[i] * Config.SCALE
        out[0] = r.load().reduce(cute.ReductionOp.ADD, 0.0, 0)


def test_self_may_hold_plain_objects_and_a_shape_is_static():
    x, out = np.arange(8, dtype=np.float32), np.zeros(1, np.float32)
    args = from_dlpack(x), from_dlpack(out)
    cute.simulate(Configured(4))(*args)
    assert out[0] == 3 * x.sum()
    (compiled,) = cute.compile(Configured(4), *args).kernels
    assert compiled.resources.local == 0
    with pytest.raises(cute.CuteError, match="Config.owner is of type Config, which a kernel cannot hold"):
        cute.compile(owner_of, Configured(4), *args)


@cute.kernel
def owner_of(this, x, out):
    out[0] = this.cfg.owner.rows


@cute.jit
def reduced(x, op: cute.ReductionOp):
    combine = {cute.ReductionOp.ADD: operator.add, cute.ReductionOp.MAX: cute.arch.fmax}[op]
    return cute.arch.warp_reduction(x, combine)


@pytest.mark.parametrize("op, expected", [(cute.ReductionOp.ADD, 496), (cute.ReductionOp.MAX, 31)], ids=("add", "max"))
def test_a_table_gives_what_is_looked_up(op, expected):
    @cute.kernel
    def kernel(x, out):
        tidx, _, _ = cute.arch.thread_idx()
        names = {"low": 1, "high": 2}
        out[tidx] = reduced(x[tidx], op) + names["low"]

    x, out = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    args = from_dlpack(x), from_dlpack(out)
    cute.simulate(kernel)[1, 32](*args)
    assert (out == expected + 1).all()
    assert cute.compile(kernel, args).resources.local == 0


def test_a_table_without_the_key_is_refused():
    @cute.kernel
    def kernel(out):
        out[0] = {"low": 1, "high": 2}["middle"]

    with pytest.raises(cute.CuteError, match="'middle' is none of this table's keys: 'low', 'high'"):
        cute.compile(kernel, (np.zeros(3),))


def test_a_partial_function_holds_what_is_known_at_run_time():
    @cute.jit
    def scaled(a, b, c):
        return a * b + c

    @cute.dsl_user_op
    def moved(src, dst, *, pred=None, loc=None, ip=None):
        cute.copy(cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), src.element_type), src, dst, pred=pred)

    @cute.kernel
    def kernel(x, out):
        tidx, _, _ = cute.arch.thread_idx()
        add = functools.partial(scaled, x[tidx], c=x[2])
        mask = cute.make_rmem_tensor((1,), cute.Boolean)
        mask[0] = tidx != 1
        move = functools.partial(moved, pred=mask)
        r = cute.make_rmem_tensor(1, cute.Float32)
        r[0] = add(x[1]) + add(b=x[0])
        move(r, cute.local_tile(out, (1,), (tidx,)))
        r.fill(len(list((1, 2, 3))))
        move(r, cute.local_tile(out, (1,), (tidx + 4,)))

    x, out = np.arange(4, dtype=np.float32) + 3, np.zeros(8, np.float32)
    args = from_dlpack(x), from_dlpack(out)
    cute.simulate(kernel)[1, 4](*args)
    want = x * x[1] + x[2] + x * x[0] + x[2]
    want[1] = 0
    np.testing.assert_array_equal(out, [*want, 3, 0, 3, 3])
    assert cute.compile(kernel, args).resources.local == 0
    assert cute.Float32 | None and (float | cute.Float32)


OF_ABC = """
import collections.abc

class Pair(collections.abc.Sized):
    @classmethod
    def __subclasshook__(cls, other):
        return any("total" in vars(c) for c in other.__mro__) or NotImplemented
    def __init_subclass__(cls):
        cls.made = True
    def __init__(self, a, b):
        self.a, self.b = a, b
    def __len__(self):
        return 2
    def total(self):
        return self.a + self.b

class Triple(Pair):
    def total(self):
        return self.a + self.b + 1
"""


@pytest.mark.parametrize(
    "lines",
    [
        "p = Pair(n, m)\no[0] = p.total() + len(p)",
        "p = Pair(n, m)\no[0] = isinstance(p, Pair)\no[1] = isinstance(n, Pair)",
        "p = Triple(n, m)\no[0] = isinstance(p, Pair)\no[1] = p.total() + len(p)",
        "p = Pair(n, m)\nif n > m:\n    p.a = m\no[0] = p.total()",
    ],
)
def test_a_class_on_python_s_abstract_ones_is_a_class_as_any(lines):
    python, simulated, made = results(OF_ABC, lines)
    assert simulated == python and made == python
