# SPDX-License-Identifier: Apache-2.0
"""Each operation of the two dialects that has a name of its own: its text there and back, what it gives in both
engines, and what its verifier refuses."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import numba_cute as cute
from numba_cute.runtime import from_dlpack

pytest.importorskip("xdsl")

from numba_cute import ir  # noqa: E402
from numba_cute.compiler.inspection.inference import description_of_argument  # noqa: E402
from numba_cute.ir.library.types import type_of  # noqa: E402
from numba_cute.seam import traced  # noqa: E402

N = 8
SIZE = 64
KEEP = f'numba_cute.call @"{__name__}:keep" %out, %r'

L, M = cute.make_layout((8, 4)), cute.make_layout((4, 2), stride=(2, 1))


@traced
def keep(out, value):
    """Store the numbers of a tuple, a layout or a number into `out`, in order."""
    for i, x in enumerate(numbers(value)):
        out[i] = x


@traced
def numbers(value):
    """The numbers that a value is made of."""
    if isinstance(value, tuple):
        return [x for v in value for x in numbers(v)]
    if isinstance(value, cute.Layout):
        return numbers((value.shape, value.stride))
    if isinstance(value, (cute.Tensor, cute.TensorSSA)):
        return [value[i] for i in range(cute.size(value.shape))]
    return [] if value is None else [value]


# operation: (its text, which gives %r; the same in Python; a text that is refused, with a part of the reason)
GIVES = {
    "numba_cute.make_shape": (
        "numba_cute.make_shape 4, %n",
        lambda n: cute.make_shape(4, n),
        ("numba_cute.make_shape !f16", "integer"),
    ),
    "numba_cute.make_stride": (
        "numba_cute.make_stride %n, 1",
        lambda n: cute.make_stride(n, 1),
        ("numba_cute.make_stride !f16", ""),
    ),
    "numba_cute.make_coord": (
        "numba_cute.make_coord %n, (2, 3)",
        lambda n: cute.make_coord(n, (2, 3)),
        ("numba_cute.make_coord a = 1", "argument"),
    ),
    "numba_cute.make_tile": (
        "numba_cute.make_tile 4, 2",
        lambda n: cute.make_tile(4, 2),
        ("numba_cute.make_tile a = 1", "argument"),
    ),
    "numba_cute.make_layout": (
        "numba_cute.make_layout (4, %n), stride = (%n, 1)",
        lambda n: cute.make_layout((4, n), stride=(n, 1)),
        ("numba_cute.make_layout (4, 8), stride = (1, 2, 3)", "stride"),
    ),
    "numba_cute.get_shape": (
        "numba_cute.get_shape %L",
        lambda n: cute.get_shape(L),
        ("numba_cute.get_shape %n, 1, 2, 3", "argument"),
    ),
    "numba_cute.get_stride": (
        "numba_cute.get_stride %D",
        lambda n: cute.get_stride(D(n)),
        ("numba_cute.get_stride %n", "layout"),
    ),
    "numba_cute.rank": ("numba_cute.rank %L", lambda n: cute.rank(L), ("numba_cute.rank", "argument")),
    "numba_cute.size": ("numba_cute.size %D", lambda n: cute.size(D(n)), ("numba_cute.size %L, mode = [7]", "mode")),
    "numba_cute.depth": ("numba_cute.depth %L", lambda n: cute.depth(L), ("numba_cute.depth", "argument")),
    "numba_cute.shape_at": (
        "numba_cute.shape_at %D, 0",
        lambda n: cute.shape_at(D(n), 0),
        ("numba_cute.shape_at %L, 9", "9"),
    ),
    "numba_cute.stride_at": (
        "numba_cute.stride_at %D, 1",
        lambda n: cute.stride_at(D(n), 1),
        ("numba_cute.stride_at %L, 9", "9"),
    ),
    "numba_cute.crd2idx": (
        "numba_cute.crd2idx (%n, 2), %L",
        lambda n: cute.crd2idx((n, 2), L),
        ("numba_cute.crd2idx (1, 2, 3), %L", ""),
    ),
    "numba_cute.idx2crd": (
        "numba_cute.idx2crd %n, (3, 5)",
        lambda n: cute.idx2crd(n, (3, 5)),
        ('numba_cute.idx2crd "a", (3, 5)', ""),
    ),
    "numba_cute.composition": (
        "numba_cute.composition %L, %M",
        lambda n: cute.composition(L, M),
        ("numba_cute.composition %n, %M", "layout"),
    ),
    "numba_cute.complement": (
        "numba_cute.complement %M, 64",
        lambda n: cute.complement(M, 64),
        ("numba_cute.complement %n, 64", "layout"),
    ),
    "numba_cute.left_inverse": (
        "numba_cute.left_inverse %M",
        lambda n: cute.left_inverse(M),
        ("numba_cute.left_inverse %n", "layout"),
    ),
    "numba_cute.right_inverse": (
        "numba_cute.right_inverse %M",
        lambda n: cute.right_inverse(M),
        ("numba_cute.right_inverse %n", "layout"),
    ),
    "numba_cute.coalesce": ("numba_cute.coalesce %L", lambda n: cute.coalesce(L), ('numba_cute.coalesce "a"', "")),
    "numba_cute.filter": ("numba_cute.filter %L", lambda n: cute.filter(L), ('numba_cute.filter "a"', "")),
    "numba_cute.logical_product": (
        "numba_cute.logical_product %L, %M",
        lambda n: cute.logical_product(L, M),
        ("numba_cute.logical_product %n, %M", "layout"),
    ),
    "numba_cute.blocked_product": (
        "numba_cute.blocked_product %L, %M",
        lambda n: cute.blocked_product(L, M),
        ("numba_cute.blocked_product %n, %M", "layout"),
    ),
    "numba_cute.raked_product": (
        "numba_cute.raked_product %L, %M",
        lambda n: cute.raked_product(L, M),
        ("numba_cute.raked_product %n, %M", "layout"),
    ),
    "numba_cute.tiled_product": (
        "numba_cute.tiled_product %L, %M",
        lambda n: cute.tiled_product(L, M),
        ("numba_cute.tiled_product %n, %M", "layout"),
    ),
    "numba_cute.local_partition": (
        "numba_cute.local_partition %D, (2, 2), 1",
        lambda n: cute.local_partition(D(n), (2, 2), 1),
        ("numba_cute.local_partition %n, (2, 2), 1", ""),
    ),
    "numba_cute.local_tile": (
        "numba_cute.local_tile %D, (2, 2), (0, _)",
        lambda n: cute.local_tile(D(n), (2, 2), (0, None)),
        ("numba_cute.local_tile %n, (2, 2), (0, _)", ""),
    ),
    "numba_cute.slice_": (
        "numba_cute.slice_ %D, (_, 1)",
        lambda n: cute.slice_(D(n), (None, 1)),
        ("numba_cute.slice_ %L, (_, _, 1)", ""),
    ),
    "numba_cute.zipped_divide": (
        "numba_cute.zipped_divide %D, (2, 2)",
        lambda n: cute.zipped_divide(D(n), (2, 2)),
        ("numba_cute.zipped_divide %L, !f16", ""),
    ),
    "numba_cute.dice": (
        "numba_cute.dice (_, 1), (%n, 4)",
        lambda n: cute.dice((None, 1), (n, 4)),
        ("numba_cute.dice (_, 1), (1, 2, 3)", ""),
    ),
}


# operation: (what a kernel does with it, which ends by keeping %r; the numbers that it keeps; a text that is refused)
T = "%t = numba_cute.make_rmem_tensor 4, !i32\n    numba_cute.fill %t, %n\n    "
MATRICES = """%op = numba_cute.nvgpu.MmaUniversalOp !i32
    %mma = numba_cute.make_tiled_mma %op
    %thr = numba_cute.TiledMma.get_slice %mma, 0
    %x = numba_cute.make_rmem_tensor (2, 3), !i32
    %y = numba_cute.make_rmem_tensor (4, 3), !i32
    %z = numba_cute.make_rmem_tensor (2, 4), !i32
    numba_cute.fill %x, 2
    numba_cute.fill %y, %n
    numba_cute.clear %z
    """
FRAGMENTS = """%px = numba_cute.ThrMma.partition_A %thr, %x
    %py = numba_cute.ThrMma.partition_B %thr, %y
    %pz = numba_cute.ThrMma.partition_C %thr, %z
    """
COPIES = """%u = numba_cute.nvgpu.CopyUniversalOp
    %atom = numba_cute.make_copy_atom %u, !i32, num_bits_per_copy = 64
    %tv = numba_cute.static : !cute.layout<"(1,4):(0,1)">
    %tiled = numba_cute.make_tiled_copy %atom, %tv, (4,)
    %w = numba_cute.make_rmem_tensor 4, !i32
    numba_cute.clear %w
    """
DOES = {
    "numba_cute.make_tensor": (
        f"""{T}%at = numba_cute.get_attr %t, "iterator"
    %r = numba_cute.make_tensor %at, %half
    {KEEP}""",
        [N, N], "%r = numba_cute.make_tensor %n, %L",
    ),
    "numba_cute.load": (f"{T}%r = numba_cute.load %t\n    {KEEP}", [N] * 4, "%r = numba_cute.load %n"),
    "numba_cute.store": (
        f"{T}%v = numba_cute.load %t\n    %r = numba_cute.make_rmem_tensor 4, !i32\n    numba_cute.store "
        f"%v, %r\n    {KEEP}",
        [N] * 4, "numba_cute.store %n, %out",
    ),
    "numba_cute.fill": (f"%r = numba_cute.make_rmem_tensor 3, !i32\n    numba_cute.fill %r, 7\n    {KEEP}", [7] * 3,
    "numba_cute.fill %n, 7"),
    "numba_cute.clear": (f"%r = numba_cute.make_rmem_tensor 3, !i32\n    numba_cute.clear %r\n    {KEEP}", [0] * 3,
    "numba_cute.clear %n"),
    "numba_cute.axpby": (
        f"{T}%r = numba_cute.make_rmem_tensor 4, !i32\n    numba_cute.fill %r, 1\n    numba_cute.axpby "
        f"2, %t, 3, %r\n    {KEEP}",
        [2 * N + 3] * 4, "numba_cute.axpby 2, %n, 3, %out",
    ),
    "numba_cute.gemv": (
        f"""{T}%a = numba_cute.make_rmem_tensor (2, 4), !i32
    numba_cute.fill %a, 3
    %r = numba_cute.make_rmem_tensor 2, !i32
    numba_cute.fill %r, 1
    numba_cute.gemv 1, %a, %t, 5, %r
    {KEEP}""",
        [12 * N + 5] * 2, "numba_cute.gemv 1, %out, %out, 0, %out",
    ),
    "numba_cute.make_tiled_mma": (f"{MATRICES}%r = numba_cute.get_attr %mma, \"shape_mnk\"\n    {KEEP}", [1, 1, 1],
                            "%r = numba_cute.make_tiled_mma %n"),
    "numba_cute.mma_make_fragment_a": (
        f"{MATRICES}{FRAGMENTS}%r = numba_cute.mma_make_fragment_a %mma, %px\n    numba_cute.fill %r, 1\n    {KEEP}",
        [1] * 6,
        "%r = numba_cute.mma_make_fragment_a %n, %out",
    ),
    "numba_cute.mma_make_fragment_b": (
        f"{MATRICES}{FRAGMENTS}%r = numba_cute.mma_make_fragment_b %mma, %py\n    numba_cute.fill %r, 1\n    {KEEP}",
        [1] * 12,
        "%r = numba_cute.mma_make_fragment_b %n, %out",
    ),
    "numba_cute.mma_make_fragment_c": (
        f"{MATRICES}{FRAGMENTS}%r = numba_cute.mma_make_fragment_c %mma, %pz\n    numba_cute.fill %r, 1\n    {KEEP}",
        [1] * 8,
        "%r = numba_cute.mma_make_fragment_c %n, %out",
    ),
    "numba_cute.gemm": (
        f"""{MATRICES}{FRAGMENTS}%a = numba_cute.mma_make_fragment_a %mma, %px
    %b = numba_cute.mma_make_fragment_b %mma, %py
    %r = numba_cute.mma_make_fragment_c %mma, %pz
    numba_cute.autovec_copy %px, %a
    numba_cute.autovec_copy %py, %b
    numba_cute.clear %r
    numba_cute.gemm %mma, %r, %a, %b, %r
    {KEEP}""",
        [6 * N] * 8, "numba_cute.gemm %n, %out, %out, %out, %out",
    ),
    "numba_cute.make_tiled_copy": (f"{COPIES}%r = numba_cute.get_attr %tiled, \"layout_tv_tiled\"\n    {KEEP}", [1, 4,
    0, 1],
                             "%r = numba_cute.make_tiled_copy %n, %L, (4,)"),
    "numba_cute.partition_s": (
        f"{T}{COPIES}%thr = numba_cute.TiledCopy.get_slice %tiled, 0\n    %r = numba_cute.partition_s "
        f"%thr, %t\n    {KEEP}",
        [N] * 4, "%r = numba_cute.partition_s %n, %out",
    ),
    "numba_cute.partition_d": (
        f"{T}{COPIES}%thr = numba_cute.TiledCopy.get_slice %tiled, 0\n    %r = numba_cute.partition_d "
        f"%thr, %t\n    {KEEP}",
        [N] * 4, "%r = numba_cute.partition_d %n, %out",
    ),
    "numba_cute.copy": (
        f"""{T}{COPIES}%thr = numba_cute.TiledCopy.get_slice %tiled, 0
    %s = numba_cute.partition_s %thr, %t
    %r = numba_cute.partition_d %thr, %w
    numba_cute.copy %tiled, %s, %r
    {KEEP}""",
        [N] * 4, "numba_cute.copy %n, %out, %out",
    ),
    "numba_cute.copy_atom_call": (
        f"""{T}{COPIES}%s = numba_cute.local_tile %t, (2,), (0,)
    %d = numba_cute.local_tile %w, (2,), (1,)
    numba_cute.copy_atom_call %atom, %s, %d
    %r = numba_cute.load %w
    {KEEP}""",
        [0, 0, N, N], "numba_cute.copy_atom_call %n, %out, %out",
    ),
    "numba_cute.make_fragment_like": (
        f"%r = numba_cute.make_fragment_like %L, !i32\n    numba_cute.fill %r, %n\n    {KEEP}", [N] * 32,
        "%r = numba_cute.make_fragment_like %n, !i32",
    ),
    "numba_cute.make_rmem_tensor_like": (
        f"{T}%r = numba_cute.make_rmem_tensor_like %t\n    numba_cute.fill %r, 5\n    {KEEP}", [5] * 4,
        "%r = numba_cute.make_rmem_tensor_like %n",
    ),
}  # fmt: skip


def D(n):
    """The layout %D: n is known at run time only."""
    return cute.make_layout((n, 4), stride=(1, n))


def text_of(operation: str, out: cute.Tensor) -> str:
    given = type_of(description_of_argument(out))
    return f"""
builtin.module attributes {{numba_cute.target = "sm_90a"}} {{
  func.func @k(%out: {given}, %n: i32) attributes {{numba_cute.kernel}} {{
    %L = numba_cute.static : !cute.layout<"(8,4):(1,8)">
    %M = numba_cute.static : !cute.layout<"(4,2):(2,1)">
    %half = numba_cute.static : !cute.layout<"2:2">
    %D = numba_cute.make_layout (%n, 4), stride = (1, %n)
    {operation}
    func.return
  }}
}}
"""


def output() -> tuple[np.ndarray, cute.Tensor]:
    array = np.full(SIZE, -1, np.int32)
    return array, from_dlpack(array)


def both_engines(operation):
    """Give what a kernel of this text keeps, in the simulator; it must compile besides."""
    array, out = output()
    module = ir.parse(text_of(operation, out), names=[sys.modules[__name__]])
    again = ir.parse(str(module), names=module.names)
    assert str(again) == str(module)
    kernel = ir.to_kernel(again)
    cute.simulate(kernel)[1, 1](out, np.int32(N))
    cute.compile(kernel, (out, np.int32(N)))
    assert as_published(module).tolist() == array.tolist(), "it is published as something else"
    return array


def as_published(module):
    """Give what the kernel keeps in the simulator once its operations are published where they can be."""
    array, out = output()
    published = ir.passes.run(module, ["publish"])
    again = ir.parse(str(published), names=module.names)
    assert str(again) == str(published)
    cute.simulate(ir.to_kernel(again))[1, 1](out, np.int32(N))
    NAMES.update(op.name for op in again)
    return array


NAMES: set[str] = set()
"""The operations that were published."""


@pytest.mark.parametrize("name", GIVES)
def test_an_operation_gives_what_its_function_gives(name):
    operation, python, _ = GIVES[name]
    kept, want = both_engines(f"%r = {operation}\n    {KEEP}"), numbers(python(N))
    assert kept[: len(want)].tolist() == want and set(kept[len(want) :]) == {-1}


@pytest.mark.parametrize("name", DOES)
def test_an_operation_does_what_its_function_does(name):
    operation, want, _ = DOES[name]
    kept = both_engines(operation)
    assert kept[: len(want)].tolist() == want and set(kept[len(want) :]) == {-1}


REFUSED = {
    **{name: (f"%r = {wrong}", reason) for name, (_, _, (wrong, reason)) in GIVES.items()},
    **{name: (wrong, "") for name, (_, _, wrong) in DOES.items()},
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_operation_refuses_what_its_function_refuses(name):
    wrong, reason = REFUSED[name]
    with pytest.raises(cute.CuteError) as e:
        ir.parse(text_of(wrong, output()[1]), "wrong.mlir")
    assert "wrong.mlir:8" in str(e.value) and reason in str(e.value) and name in str(e.value)
