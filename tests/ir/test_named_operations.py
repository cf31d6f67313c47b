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
from numba_cute.ir.types import type_of  # noqa: E402
from numba_cute.seam import traced  # noqa: E402

N = 8
SIZE = 64
KEEP = f'cute.call @"{__name__}:keep" %out, %r'

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
    "cute.make_shape": ("cute.make_shape 4, %n", lambda n: cute.make_shape(4, n), ("cute.make_shape !f16", "integer")),
    "cute.make_stride": ("cute.make_stride %n, 1", lambda n: cute.make_stride(n, 1), ("cute.make_stride !f16", "")),
    "cute.make_coord": (
        "cute.make_coord %n, (2, 3)",
        lambda n: cute.make_coord(n, (2, 3)),
        ("cute.make_coord a = 1", "argument"),
    ),
    "cute.make_tile": ("cute.make_tile 4, 2", lambda n: cute.make_tile(4, 2), ("cute.make_tile a = 1", "argument")),
    "cute.make_layout": (
        "cute.make_layout (4, %n), stride = (%n, 1)",
        lambda n: cute.make_layout((4, n), stride=(n, 1)),
        ("cute.make_layout (4, 8), stride = (1, 2, 3)", "stride"),
    ),
    "cute.get_shape": ("cute.get_shape %L", lambda n: cute.get_shape(L), ("cute.get_shape %n, 1, 2, 3", "argument")),
    "cute.get_stride": ("cute.get_stride %D", lambda n: cute.get_stride(D(n)), ("cute.get_stride %n", "layout")),
    "cute.rank": ("cute.rank %L", lambda n: cute.rank(L), ("cute.rank", "argument")),
    "cute.size": ("cute.size %D", lambda n: cute.size(D(n)), ("cute.size %L, mode = [7]", "mode")),
    "cute.depth": ("cute.depth %L", lambda n: cute.depth(L), ("cute.depth", "argument")),
    "cute.shape_at": ("cute.shape_at %D, 0", lambda n: cute.shape_at(D(n), 0), ("cute.shape_at %L, 9", "9")),
    "cute.stride_at": ("cute.stride_at %D, 1", lambda n: cute.stride_at(D(n), 1), ("cute.stride_at %L, 9", "9")),
    "cute.crd2idx": ("cute.crd2idx (%n, 2), %L", lambda n: cute.crd2idx((n, 2), L), ("cute.crd2idx (1, 2, 3), %L", "")),
    "cute.idx2crd": ("cute.idx2crd %n, (3, 5)", lambda n: cute.idx2crd(n, (3, 5)), ('cute.idx2crd "a", (3, 5)', "")),
    "cute.composition": (
        "cute.composition %L, %M",
        lambda n: cute.composition(L, M),
        ("cute.composition %n, %M", "layout"),
    ),
    "cute.complement": (
        "cute.complement %M, 64",
        lambda n: cute.complement(M, 64),
        ("cute.complement %n, 64", "layout"),
    ),
    "cute.left_inverse": (
        "cute.left_inverse %M",
        lambda n: cute.left_inverse(M),
        ("cute.left_inverse %n", "layout"),
    ),
    "cute.right_inverse": (
        "cute.right_inverse %M",
        lambda n: cute.right_inverse(M),
        ("cute.right_inverse %n", "layout"),
    ),
    "cute.coalesce": ("cute.coalesce %L", lambda n: cute.coalesce(L), ('cute.coalesce "a"', "")),
    "cute.filter": ("cute.filter %L", lambda n: cute.filter(L), ('cute.filter "a"', "")),
    "cute.logical_product": (
        "cute.logical_product %L, %M",
        lambda n: cute.logical_product(L, M),
        ("cute.logical_product %n, %M", "layout"),
    ),
    "cute.blocked_product": (
        "cute.blocked_product %L, %M",
        lambda n: cute.blocked_product(L, M),
        ("cute.blocked_product %n, %M", "layout"),
    ),
    "cute.raked_product": (
        "cute.raked_product %L, %M",
        lambda n: cute.raked_product(L, M),
        ("cute.raked_product %n, %M", "layout"),
    ),
    "cute.tiled_product": (
        "cute.tiled_product %L, %M",
        lambda n: cute.tiled_product(L, M),
        ("cute.tiled_product %n, %M", "layout"),
    ),
    "cute.local_partition": (
        "cute.local_partition %D, (2, 2), 1",
        lambda n: cute.local_partition(D(n), (2, 2), 1),
        ("cute.local_partition %n, (2, 2), 1", ""),
    ),
    "cute.local_tile": (
        "cute.local_tile %D, (2, 2), (0, _)",
        lambda n: cute.local_tile(D(n), (2, 2), (0, None)),
        ("cute.local_tile %n, (2, 2), (0, _)", ""),
    ),
    "cute.slice_": (
        "cute.slice_ %D, (_, 1)",
        lambda n: cute.slice_(D(n), (None, 1)),
        ("cute.slice_ %L, (_, _, 1)", ""),
    ),
    "cute.zipped_divide": (
        "cute.zipped_divide %D, (2, 2)",
        lambda n: cute.zipped_divide(D(n), (2, 2)),
        ("cute.zipped_divide %L, !f16", ""),
    ),
    "cute.dice": (
        "cute.dice (_, 1), (%n, 4)",
        lambda n: cute.dice((None, 1), (n, 4)),
        ("cute.dice (_, 1), (1, 2, 3)", ""),
    ),
}


# operation: (what a kernel does with it, which ends by keeping %r; the numbers that it keeps; a text that is refused)
T = "%t = cute.make_rmem_tensor 4, !i32\n    cute.fill %t, %n\n    "
MATRICES = """%op = cute_nvgpu.MmaUniversalOp !i32
    %mma = cute.make_tiled_mma %op
    %thr = cute.TiledMma.get_slice %mma, 0
    %x = cute.make_rmem_tensor (2, 3), !i32
    %y = cute.make_rmem_tensor (4, 3), !i32
    %z = cute.make_rmem_tensor (2, 4), !i32
    cute.fill %x, 2
    cute.fill %y, %n
    cute.clear %z
    """
FRAGMENTS = """%px = cute.ThrMma.partition_A %thr, %x
    %py = cute.ThrMma.partition_B %thr, %y
    %pz = cute.ThrMma.partition_C %thr, %z
    """
COPIES = """%u = cute_nvgpu.CopyUniversalOp
    %atom = cute.make_copy_atom %u, !i32, num_bits_per_copy = 64
    %tv = cute.static : !cute.layout<(1,4), (0,1)>
    %tiled = cute.make_tiled_copy %atom, %tv, (4,)
    %w = cute.make_rmem_tensor 4, !i32
    cute.clear %w
    """
DOES = {
    "cute.make_tensor": (
        f"""{T}%at = cute.get_attr %t, "iterator"
    %r = cute.make_tensor %at, %half
    {KEEP}""",
        [N, N], "%r = cute.make_tensor %n, %L",
    ),
    "cute.load": (f"{T}%r = cute.load %t\n    {KEEP}", [N] * 4, "%r = cute.load %n"),
    "cute.store": (
        f"{T}%v = cute.load %t\n    %r = cute.make_rmem_tensor 4, !i32\n    cute.store %v, %r\n    {KEEP}",
        [N] * 4, "cute.store %n, %out",
    ),
    "cute.fill": (f"%r = cute.make_rmem_tensor 3, !i32\n    cute.fill %r, 7\n    {KEEP}", [7] * 3, "cute.fill %n, 7"),
    "cute.clear": (f"%r = cute.make_rmem_tensor 3, !i32\n    cute.clear %r\n    {KEEP}", [0] * 3, "cute.clear %n"),
    "cute.axpby": (
        f"{T}%r = cute.make_rmem_tensor 4, !i32\n    cute.fill %r, 1\n    cute.axpby 2, %t, 3, %r\n    {KEEP}",
        [2 * N + 3] * 4, "cute.axpby 2, %n, 3, %out",
    ),
    "cute.gemv": (
        f"""{T}%a = cute.make_rmem_tensor (2, 4), !i32
    cute.fill %a, 3
    %r = cute.make_rmem_tensor 2, !i32
    cute.fill %r, 1
    cute.gemv 1, %a, %t, 5, %r
    {KEEP}""",
        [12 * N + 5] * 2, "cute.gemv 1, %out, %out, 0, %out",
    ),
    "cute.make_tiled_mma": (f"{MATRICES}%r = cute.get_attr %mma, \"shape_mnk\"\n    {KEEP}", [1, 1, 1],
                            "%r = cute.make_tiled_mma %n"),
    "cute.mma_make_fragment_a": (
        f"{MATRICES}{FRAGMENTS}%r = cute.mma_make_fragment_a %mma, %px\n    cute.fill %r, 1\n    {KEEP}", [1] * 6,
        "%r = cute.mma_make_fragment_a %n, %out",
    ),
    "cute.mma_make_fragment_b": (
        f"{MATRICES}{FRAGMENTS}%r = cute.mma_make_fragment_b %mma, %py\n    cute.fill %r, 1\n    {KEEP}", [1] * 12,
        "%r = cute.mma_make_fragment_b %n, %out",
    ),
    "cute.mma_make_fragment_c": (
        f"{MATRICES}{FRAGMENTS}%r = cute.mma_make_fragment_c %mma, %pz\n    cute.fill %r, 1\n    {KEEP}", [1] * 8,
        "%r = cute.mma_make_fragment_c %n, %out",
    ),
    "cute.gemm": (
        f"""{MATRICES}{FRAGMENTS}%a = cute.mma_make_fragment_a %mma, %px
    %b = cute.mma_make_fragment_b %mma, %py
    %r = cute.mma_make_fragment_c %mma, %pz
    cute.autovec_copy %px, %a
    cute.autovec_copy %py, %b
    cute.clear %r
    cute.gemm %mma, %r, %a, %b, %r
    {KEEP}""",
        [6 * N] * 8, "cute.gemm %n, %out, %out, %out, %out",
    ),
    "cute.make_tiled_copy": (f"{COPIES}%r = cute.get_attr %tiled, \"layout_tv_tiled\"\n    {KEEP}", [1, 4, 0, 1],
                             "%r = cute.make_tiled_copy %n, %L, (4,)"),
    "cute.partition_s": (
        f"{T}{COPIES}%thr = cute.TiledCopy.get_slice %tiled, 0\n    %r = cute.partition_s %thr, %t\n    {KEEP}",
        [N] * 4, "%r = cute.partition_s %n, %out",
    ),
    "cute.partition_d": (
        f"{T}{COPIES}%thr = cute.TiledCopy.get_slice %tiled, 0\n    %r = cute.partition_d %thr, %t\n    {KEEP}",
        [N] * 4, "%r = cute.partition_d %n, %out",
    ),
    "cute.copy": (
        f"""{T}{COPIES}%thr = cute.TiledCopy.get_slice %tiled, 0
    %s = cute.partition_s %thr, %t
    %r = cute.partition_d %thr, %w
    cute.copy %tiled, %s, %r
    {KEEP}""",
        [N] * 4, "cute.copy %n, %out, %out",
    ),
    "cute.copy_atom_call": (
        f"""{T}{COPIES}%s = cute.local_tile %t, (2,), (0,)
    %d = cute.local_tile %w, (2,), (1,)
    cute.copy_atom_call %atom, %s, %d
    %r = cute.load %w
    {KEEP}""",
        [0, 0, N, N], "cute.copy_atom_call %n, %out, %out",
    ),
}  # fmt: skip


def D(n):
    """The layout %D: n is known at run time only."""
    return cute.make_layout((n, 4), stride=(1, n))


def text_of(operation: str, out: cute.Tensor) -> str:
    given = type_of(description_of_argument(out))
    return f"""
builtin.module attributes {{cute.target = "sm_90a"}} {{
  func.func @k(%out: {given}, %n: i32) attributes {{cute.kernel}} {{
    %L = cute.static : !cute.layout<(8,4), (1,8)>
    %M = cute.static : !cute.layout<(4,2), (2,1)>
    %half = cute.static : !cute.layout<2, 2>
    %D = cute.make_layout (%n, 4), stride = (1, %n)
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
    return array


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
