# SPDX-License-Identifier: Apache-2.0
"""What costs speed is a note of the compiled kernel, with the line, and an error where that is asked for."""

import inspect
import re

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import config
from numba_cute.runtime import from_dlpack

X = np.zeros(32, np.float32)


@cuda.jit(device=True)
def scaled(x, y):
    z = 0.1 if y > 1 else 0.5
    return x * z + y


def sums(o, x, y):
    acc = 0.0
    for i in range(x.shape[0]):
        acc += x[i] * y[i]  # <-
    o[0] = acc


def divides(o, x, y):
    i, _, _ = cute.arch.thread_idx()
    o[i] = x[i] / 3 + y[i]  # <-


def calls(o, x, y):
    i, _, _ = cute.arch.thread_idx()
    o[i] = scaled(x[i], y[i])


def narrow(o, x, y):
    i, _, _ = cute.arch.thread_idx()
    acc = cute.Float32(0.0)
    for j in range(4):
        acc += x[i] * y[j] * cute.Float32(0.1)
    o[i] = acc * 0.5  # LLVM computes that in float32: it is exact


def meant(o, x, y):
    i, _, _ = cute.arch.thread_idx()
    acc = cute.Float64(0.0)
    acc += x[i] * float(y[i])
    o[i] = acc


def spilling(o, x, y):
    i, _, _ = cute.arch.thread_idx()
    held = cute.make_rmem_tensor(40, cute.Float32)
    for j in cute.range_constexpr(40):
        held[j] = x[i + j]
    cute.arch.sync_threads()
    for j in cute.range_constexpr(40):
        o[i + j] = held[39 - j] * y[j]


def indexed(o, x, y):
    i, _, _ = cute.arch.thread_idx()
    held = cuda.local.array(64, np.float32)
    for j in range(y.shape[0]):
        held[j] = x[i + j]
    o[i] = held[i]


def large(o, x, y):
    i, _, _ = cute.arch.thread_idx()
    held = cute.utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout(114 * 256))
    held[i] = x[i]
    o[i] = held[i]


NOTED = {
    sums: "a float32 meets a Python float or an integer.*acc \\+= x\\[i\\]",
    divides: "a float32 meets.*x\\[i\\] / 3",
    calls: "a float32 meets.*return x \\* z",
    spilling: "registers are spilled: a thread stores",
    indexed: "256 bytes of local memory a thread",
    large: "116736 bytes of shared memory let an SM of sm_90a hold 1 of the kernel's CTAs: 115712 would let it hold 2",
}


def compiled(kernel, **options):
    most = {"max_registers": 32} if kernel is spilling else {}
    return cute.compile(cuda.jit(**most)(kernel), (X, X, X), **options)


@pytest.mark.parametrize("kernel", NOTED, ids=lambda k: k.__name__)
def test_what_costs_speed_is_noted_and_refused_where_asked(kernel):
    (note,) = compiled(kernel).notes
    with pytest.raises(cute.CuteError, match=f"(?s)^lost speed: .*{NOTED[kernel]}") as said:
        compiled(kernel, notes="error")
    assert str(said.value) == note


@pytest.mark.parametrize("kernel", [narrow, meant], ids=lambda k: k.__name__)
def test_what_costs_nothing_or_is_meant_is_not_noted(kernel):
    assert compiled(kernel, notes="error").notes == ()


@pytest.mark.parametrize("columns, noted", [(256, True), (512, False)])
def test_shared_memory_is_not_noted_where_tensor_memory_lets_no_other_cta_in(columns, noted):
    def kernel(o, x, y):
        i, _, _ = cute.arch.thread_idx()
        smem = cute.utils.SmemAllocator()
        held = smem.allocate_tensor(cute.Float32, cute.make_layout(114 * 256 - 8))
        slot = smem.allocate_array(cute.Int32, 1)
        if cute.arch.make_warp_uniform(cute.arch.warp_idx()) == 0:
            cute.arch.alloc_tmem(columns, slot)
        held[i] = x[i]
        o[i] = held[i]

    assert any("hold 1 of the kernel's CTAs" in note for note in compiled(kernel, arch="sm_100a").notes) is noted


def test_a_device_function_that_is_taken_again_is_noted_again():
    assert compiled(calls).notes == compiled(calls).notes != ()


# ---------------------------------------------------------------- copies


def tensor(align=16):
    return from_dlpack(np.zeros((64, 64), np.float32), assumed_align=align)


def part(t, *modes):
    """A thread's elements of a tensor in memory. modes: their shape and strides."""
    return cute.make_tensor(t.iterator, cute.make_layout(*modes[:1], stride=modes[1]))


def unaligned(a, b):
    held = cute.make_rmem_tensor(8, cute.Float32)
    cute.autovec_copy(part(a, 8, 1), held)  # <-
    cute.autovec_copy(held, part(b, (2, 4), (4, 8)))


def apart(a, b):
    held = cute.make_rmem_tensor(8, cute.Float32)
    cute.autovec_copy(part(a, 8, 1), held)
    cute.autovec_copy(held, part(b, 8, 64))  # <-


def turned(a, b):
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32)
    cute.copy(atom, part(a, (4, 8), (8, 1)), part(b, (4, 8), (1, 4)))  # <-


def uneven(a, b):
    held = cute.make_rmem_tensor((8, 2), cute.Float32)
    n = cute.Int32(cute.arch.thread_idx()[0])
    cute.autovec_copy(part(a, (8, 2), (1, n)), held)  # <-
    cute.autovec_copy(held, part(b, (8, 2), (1, 8)))


def asked(a, b):
    atom = cute.make_copy_atom(cute.nvgpu.CopyG2ROp(), cute.Float32, num_bits_per_copy=64)
    held = cute.make_rmem_tensor((2, 4), cute.Float32)
    cute.copy(atom, part(a, (2, 4), (64, 1)), held)  # <-
    cute.autovec_copy(held, part(b, (2, 4), (1, 2)))


def basic(a, b):
    held = cute.make_rmem_tensor(8, cute.Float32)
    cute.autovec_copy(part(a, 8, 1), held)
    cute.basic_copy(held, part(b, 8, 1))  # <-


SINGLE = {
    unaligned: (4, "of Float32 one at a time: src begins at a multiple of 4 bytes, and of no more, as far as is known"),
    apart: (16, "8 elements of Float32 one at a time: no two elements of dst, 8:64, are known to lie side by side"),
    turned: (16, r"32 elements of .*: src, \(4,8\):\(8,1\), and dst, \(4,8\):\(1,4\), do not follow each other in the"),
    uneven: (
        16,
        r"16 elements of .*: the strides of src, .*, are not all even, or not known to be: pad its rows, or give",
    ),
    asked: (
        16,
        r"2 elements of Float32 one at a time: no two elements of src, \(2\):\(64\), are known to lie side by side",
    ),
    basic: (16, "basic_copy moves Float32 one at a time, and autovec_copy would move 4 at once"),
}


def noted_line(kernel):
    """The file and the number of the line of a kernel that ends with an arrow."""
    lines, first = inspect.getsourcelines(kernel)
    (at,) = [n for n, line in enumerate(lines, first) if line.endswith("# <-\n")]
    return f"test_losses.py:{at}\n"


@pytest.mark.parametrize("kernel", SINGLE, ids=lambda k: k.__name__)
def test_a_copy_that_falls_to_single_elements_says_why(kernel):
    align, words = SINGLE[kernel]
    notes = cute.compile(cuda.jit(kernel), tensor(align), tensor()).notes
    (note,) = [n for n in notes if noted_line(kernel) in n]
    assert re.search(f"^lost speed: .*{words}", note), note
    assert len(notes) == (2 if kernel is unaligned else 1)
    with pytest.raises(cute.CuteError, match=f"(?s){words}.*<-"):
        cute.compile(cuda.jit(kernel), tensor(align), tensor(), notes="error")


def wide(a, b):
    held = cute.make_rmem_tensor(8, cute.Float32)
    cute.autovec_copy(part(a, 8, 1), held)
    cute.autovec_copy(held, part(b, (4, 2), (1, 64)))


def single(a, b):
    """One element, an odd number of them, some by a predicate, one again and again, and between registers."""
    held, other = cute.make_rmem_tensor(8, cute.Float32), cute.make_rmem_tensor((2, 4), cute.Float32)
    cute.autovec_copy(part(a, 1, 1), part(held, 1, 1))
    cute.autovec_copy(part(a, 3, 1), part(held, 3, 1))
    cute.autovec_copy(part(a, 4, 0), part(held, 4, 1))
    cute.autovec_copy(part(held, (2, 4), (4, 1)), other)
    pred = cute.make_rmem_tensor(8, cute.Boolean)
    for i in cute.range_constexpr(8):
        pred[i] = i < cute.arch.thread_idx()[0]
    cute.basic_copy_if(pred, held, part(b, 8, 1))
    cute.basic_copy(other, part(b, (2, 4), (64, 1)))


def by_choice(a, b):
    """Elements that are asked for one by one."""
    atom = cute.make_copy_atom(cute.nvgpu.CopyG2ROp(), cute.Float32, num_bits_per_copy=32)
    held = cute.make_rmem_tensor((1, 8), cute.Float32)
    cute.copy(atom, part(a, (1, 8), (1, 64)), held)
    cute.autovec_copy(held, part(b, (1, 8), (1, 1)))


@pytest.mark.parametrize("kernel", [wide, single, by_choice], ids=lambda k: k.__name__)
def test_copies_that_are_as_good_as_they_can_be_are_not_noted(kernel):
    assert cute.compile(cuda.jit(kernel), tensor(), tensor(), notes="error").notes == ()


# ---------------------------------------------------------------- banks


def by_threads(dtype, bits, threads, values, stored, swizzle=None):
    """Stores of a tile by a tiled copy. bits: of an access. threads, values: the tile's; stored: its layout."""

    @cuda.jit
    def kernel(x):
        s = cute.utils.SmemAllocator().allocate_tensor(dtype, stored, 1024, swizzle)
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), dtype, num_bits_per_copy=bits)
        tiled = cute.make_tiled_copy_tv(atom, threads, values)
        mine = tiled.get_slice(cute.arch.thread_idx()[0]).partition_D(s)  # <-
        held = cute.make_rmem_tensor_like(mine)
        held.fill(dtype(0))
        cute.copy(tiled, held, mine)

    return kernel


def by_rows(stored, swizzle=None):
    """ldmatrix of rows of 16 bytes."""

    @cuda.jit
    def kernel(x):
        s = cute.utils.SmemAllocator().allocate_tensor(cute.Float16, stored, 1024, swizzle)
        atom = cute.make_copy_atom(cute.nvgpu.warp.LdMatrix8x8x16bOp(False, 4), cute.Float16)
        mma = cute.make_tiled_mma(cute.nvgpu.warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)))
        tiled = cute.make_tiled_copy_A(atom, mma)
        mine = tiled.get_slice(cute.arch.thread_idx()[0]).partition_S(s)  # <-
        x[0] = mine.iterator.toint()

    return kernel


_COLUMN, _FOUR = cute.make_layout((32, 4)), cute.make_layout((1, 4))
_ROWS = cute.make_layout((64, 64), stride=(64, 1))
_VECTORS = cute.make_layout((32, 1)), cute.make_layout((1, 8))
BANKS = {
    "a column of 32 words": (
        by_threads(cute.Float32, 32, _COLUMN, _FOUR, cute.make_layout((32, 32), stride=(32, 1))),
        32,
        1,
    ),
    "padded by four": (by_threads(cute.Float32, 32, _COLUMN, _FOUR, cute.make_layout((32, 32), stride=(36, 1))), 4, 1),
    "padded by two": (by_threads(cute.Float32, 32, _COLUMN, _FOUR, cute.make_layout((32, 32), stride=(34, 1))), 0, 0),
    "padded by one": (by_threads(cute.Float32, 32, _COLUMN, _FOUR, cute.make_layout((32, 32), stride=(33, 1))), 0, 0),
    "a row": (by_threads(cute.Float32, 32, _COLUMN, _FOUR, cute.make_layout((32, 32))), 0, 0),
    "halves of a word": (by_threads(cute.Float16, 16, _COLUMN, _FOUR, cute.make_layout((32, 32))), 0, 0),
    "vectors below each other": (by_threads(cute.Float16, 128, *_VECTORS, _ROWS), 32, 4),
    "vectors, swizzled": (by_threads(cute.Float16, 128, *_VECTORS, _ROWS, cute.make_swizzle(3, 4, 3)), 0, 0),
    "vectors, swizzled too little": (
        by_threads(cute.Float16, 128, *_VECTORS, _ROWS, cute.make_swizzle(1, 4, 3)),
        16,
        4,
    ),
    "rows of matrices": (by_rows(_ROWS), 32, 4),
    "rows of matrices, swizzled": (by_rows(_ROWS, cute.make_swizzle(3, 4, 3)), 0, 0),
}


@pytest.mark.parametrize("case", BANKS)
def test_lanes_that_meet_in_the_banks_of_shared_memory_are_noted(case):
    kernel, passes, least = BANKS[case]
    notes = cute.compile(kernel, np.zeros(4, np.int64)).notes
    if not passes:
        assert notes == ()
        return
    (note,) = notes
    assert f"take {passes} passes, where {least} would do" in note and "partition_" in note and note.endswith("# <-")


# ---------------------------------------------------------------- what is taken again


@cuda.jit(device=True)
def in_device(a, b):
    cute.autovec_copy(part(a, 8, 1), part(b, 8, 64))


def in_traced(a, b):
    cute.autovec_copy(part(a, 8, 1), part(b, 8, 64))


def in_jitted(a, b):
    for _ in range(b.shape[0] if cute.arch.thread_idx()[0] > 3 else 1):
        in_device(a, b)


@cute.jit
def in_host_function(a, b):
    cute.autovec_copy(part(a, 8, 1), part(b, 8, 64))


@pytest.mark.parametrize("helper", [in_device, in_traced, in_jitted, in_host_function], ids=lambda f: f.__name__)
def test_what_is_taken_again_is_noted_again(helper, tmp_path):
    """By two kernels, by one that is compiled twice, and by one that is read from the disk, of the helper's line."""

    def first(a, b):
        helper(a, b)

    def second(a, b):
        helper(b, a)
        helper(b, a)

    args = tensor(), tensor()
    (note,) = cute.compile(cuda.jit(first), *args).notes
    assert "in kernel first, " in note and "no two elements of dst, 8:64, are known" in note
    assert note.endswith("cute.autovec_copy(part(a, 8, 1), part(b, 8, 64))")
    again = cute.compile(cuda.jit(second), *args).notes
    assert again == (note.replace("kernel first", "kernel second"),)
    assert cute.compile(cuda.jit(first), *args).notes == (note,)
    with config.override(cache=True, cache_dir=str(tmp_path)):
        kernel = cuda.jit(first)
        assert [cute.compile(kernel, *args).notes for _ in range(2)] == [(note,)] * 2
        assert len(list(tmp_path.glob("??"))) == 1


def test_what_a_branch_loses_that_is_none_is_not_noted():
    """Functions of a branch are compiled before types tell that it is none."""

    def kernel(a, b, which):
        lay = cute.make_layout(8)
        if cute.const_expr(which is None):
            in_device(a, b)
        elif cute.const_expr(cute.size(lay) == 4):
            in_device(b, a)
        else:
            a[0, 0] = 1

    assert cute.compile(cuda.jit(kernel), tensor(), tensor(), cute.Int32(3)).notes == ()
    assert len(cute.compile(cuda.jit(kernel), tensor(), tensor(), None).notes) == 1


def test_what_a_function_of_the_library_loses_is_noted_in_each_kernel():
    """Such a function is compiled once for all kernels."""
    scope = {"__name__": "numba_cute.made_up", "cute": cute, "part": part}
    exec("def stores(a, b):\n    cute.autovec_copy(part(a, 8, 1), part(b, 8, 64))\n", scope)
    stores = cuda.jit(device=True)(scope["stores"])

    def first(a, b):
        stores(a, b)

    def second(a, b):
        stores(a, b)
        a[0, 0] = 1

    for kernel in (first, second, second):
        (note,) = cute.compile(cuda.jit(kernel), tensor(), tensor()).notes
        assert "no two elements of dst, 8:64, are known" in note


def test_notes_are_kept_or_errors():
    with pytest.raises(cute.CuteError, match='notes=True: "keep" or "error"'):
        compiled(narrow, notes=True)
