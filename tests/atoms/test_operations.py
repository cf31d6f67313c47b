# SPDX-License-Identifier: Apache-2.0
"""What operations have in common: their classes, the part of the library that they are known by, and their rows."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import numpy as np
import pytest

import numba_cute as cute
from numba_cute import nvgpu, seam
from numba_cute.compiler.inspection.operations import _function
from numba_cute.layout import make_layout
from numba_cute.nvgpu.common import CopyOp, MmaOp
from numba_cute.nvgpu.common.by_row import ByRow, alternatives, blocks, choices, legal_values, numbers
from numba_cute.runtime import make_fake_tensor

from ..each import each

ROOT = Path(nvgpu.__file__).resolve().parents[1]
FACADES = {
    "cute_nvgpu": nvgpu,
    **{f"cute_nvgpu.{m}": getattr(nvgpu, m) for m in ("cpasync", "tcgen05", "warp", "warpgroup")},
}
NAMES = [(part, name) for part, module in FACADES.items() for name in module.__all__]


CHOICES = {"CollectorOp", "ReductionOp", "TmemLoadRedOp"}
"""Names that say operation and are choices."""
SHARED = (nvgpu.OperandSource.SMEM, nvgpu.OperandMajorMode.K, nvgpu.OperandMajorMode.K)


def is_operation(obj):
    return inspect.isclass(obj) and issubclass(obj, (CopyOp, MmaOp))


OPERATIONS = [(part, n) for part, n in NAMES if is_operation(getattr(FACADES[part], n))]


@each("part, name", NAMES)
def test_the_inspector_calls_a_thing_as_users_import_it(part, name):
    obj = getattr(FACADES[part], name)
    if is_operation(obj) and obj not in (CopyOp, MmaOp) or seam.is_traced(obj) and inspect.isfunction(obj):
        assert _function(obj) == f"{part}.{name}"


@each("part, name", OPERATIONS)
def test_each_class_whose_name_says_operation_is_one(part, name):
    assert name.endswith("Op")
    assert {n for p, n in NAMES if p == part and n.endswith("Op") and n not in CHOICES} <= {n for _, n in OPERATIONS}


@pytest.mark.parametrize(
    "op, adds",
    [
        (nvgpu.MmaUniversalOp(cute.Float32), True),
        (nvgpu.warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)), True),
        (nvgpu.warpgroup.MmaF16BF16Op(cute.Float16, cute.Float32, (64, 8, 16), *SHARED), False),
        (
            nvgpu.tcgen05.MmaF16BF16Op(cute.Float16, cute.Float32, (128, 8, 16), nvgpu.tcgen05.CtaGroup.ONE, *SHARED),
            False,
        ),
    ],
    ids=["universal", "warp", "warpgroup", "tcgen05"],
)
def test_a_new_atom_of_wgmma_and_tcgen05_overwrites_and_others_add(op, adds):
    field = nvgpu.warpgroup.Field.ACCUMULATE
    assert cute.make_mma_atom(op).get(field) is cute.make_tiled_mma(op).get(field) is adds


@each("part, name", OPERATIONS)
def test_what_an_operation_adds_to_at_first_goes_by_its_family(part, name):
    cls = getattr(FACADES[part], name)
    if issubclass(cls, MmaOp) and cls is not MmaOp:
        assert cls.asynchronous is (part in ("cute_nvgpu.warpgroup", "cute_nvgpu.tcgen05"))


@each("part, name", OPERATIONS)
def test_an_operation_chooses_by_fields_that_it_has_what_its_rows_have(part, name):
    cls = getattr(FACADES[part], name)
    if issubclass(cls, ByRow):
        assert blocks(cls) and all(legal_values(cls, c, ()) for c in choices(cls))
        for row in cls.rows:
            assert any(of is row for of, _ in blocks(cls)), f"{row.name} is never issued"


@each("path", [p for room in ("atoms", "nvgpu") for p in (ROOT / room).rglob("*.py")], ids=lambda p: p.stem)
def test_no_operation_is_asked_by_name(path):
    """`getattr(isa, name)` and a field's value are not meant: what is asked for there is data."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id != "hasattr", f"{path}:{node.lineno}"
            if node.func.id == "getattr":
                assert len(node.args) == 2, f"{path}:{node.lineno}: getattr with a default"


OLDER = {"ampere": {"common"}, "hopper": {"common"}, "blackwell": {"common"}}
ROOMS = {"common": set(), **OLDER, "": {"common", *OLDER, ""}}


@each("path", sorted((ROOT / "nvgpu").rglob("*.py")), ids=lambda p: p.stem)
def test_rooms_of_nvgpu_import_in_one_direction(path):
    """Facades import the architectures, these what all share; none imports back."""
    room = path.relative_to(ROOT / "nvgpu").parts[0] if path.parent != ROOT / "nvgpu" else ""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == (2 if room else 1):
            there = (node.module or "").partition(".")[0]
            assert (there if there in ROOMS else "") in ROOMS[room] | {room}, f"{path}:{node.lineno}"


def test_numbers_and_alternatives_read_as_a_sentence():
    assert alternatives((1,)) == "1" and alternatives((1, 2, 4)) == "1, 2 or 4"
    assert alternatives([nvgpu.OperandMajorMode.K, nvgpu.OperandMajorMode.MN]) == "OperandMajorMode.K or .MN"
    assert alternatives([cute.Float16, cute.BFloat16]) == "Float16 or BFloat16"
    assert numbers(list(range(8, 257, 8))) == "a multiple of 8 in [8, 256]"
    assert numbers([8, 16, 24, *range(32, 257, 16)]) == "8, 16, 24, or a multiple of 16 in [32, 256]"


@seam.frozen
class Doubling(CopyOp):
    """A user's own copy: by its traits and one instruction."""

    def traits(self, dtype, num_bits):
        return nvgpu.CopyUniversalOp().traits(dtype, num_bits)

    def issue(self, atom, src, dst):
        dst.store(src.load() * 2)


def test_a_new_operation_needs_no_more_than_its_class():
    atom = cute.make_copy_atom(Doubling(), cute.Float32, num_bits_per_copy=64)

    def kernel(x, y):
        cute.copy(atom, cute.tiled_divide(x, (2,)), cute.tiled_divide(y, (2,)))

    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    cute.simulate(kernel)[1, 1](cute.runtime.from_dlpack(x), cute.runtime.from_dlpack(y))
    assert np.array_equal(y, 2 * x)


REFUSED = [
    (lambda t, a: cute.copy(a, t, t, tma_bar_ptr=t.iterator), "tma_bar_ptr is for TMA operations"),
    (lambda t, a: cute.copy(a, t, t, mcast_mask=1), "mcast_mask is for TMA operations"),
    (lambda t, a: cute.copy(a, t, t, cache_policy=1), "cache_policy is for TMA operations"),
    (lambda t, a: cute.copy(a, t, t, tma_desc_ptr=t.iterator), "tma_desc_ptr is for TMA atoms"),
    (lambda t, a: cute.prefetch(a, t), "is not a bulk or TMA load"),
    (lambda t, a: cute.copy("atom", t, t), "is neither a CopyAtom nor a TiledCopy"),
    (lambda t, a: cute.gemm(a, t, t, t, t), "is neither an MmaAtom nor a TiledMma"),
    (lambda t, a: cute.make_copy_atom(nvgpu.MmaUniversalOp(cute.Float32), cute.Float32), "is not a copy operation"),
    (lambda t, a: cute.make_mma_atom(nvgpu.CopyUniversalOp()), "is not a matrix operation"),
    (lambda t, a: cute.make_atom(nvgpu.CopyUniversalOp()), "give copy_internal_type"),
    (lambda t, a: nvgpu.compress(nvgpu.warp.MmaB1Op(), t), "is not a sparse operation"),
]


@pytest.mark.parametrize("call, why", REFUSED, ids=[why for _, why in REFUSED])
def test_what_an_operation_does_not_take_is_refused(call, why):
    tensor = make_fake_tensor(cute.Float32, (4,), (1,))
    with pytest.raises(cute.CuteError, match=why):
        call(tensor, cute.make_copy_atom(nvgpu.CopyUniversalOp(), cute.Float32))


def test_the_layouts_of_one_thread_are_made_once():
    ops = (nvgpu.CopyUniversalOp(), nvgpu.cpasync.CopyG2SOp(), nvgpu.cpasync.CopyBulkG2SOp())
    first, *others = [op.traits(cute.Float32, 128) for op in ops]
    assert first.src == make_layout((1, 4), stride=(0, 1)) and all(t is first for t in others)


@pytest.mark.parametrize(
    "operation", [nvgpu.cpasync.CopyBulkTensorTileG2SOp, nvgpu.cpasync.CopyBulkTensorTileG2SMulticastOp]
)
def test_a_load_of_a_pair_has_a_thread_of_each_block(operation):
    alone, pair = (operation(cta_group=group).traits(cute.Float16, 4096) for group in nvgpu.tcgen05.CtaGroup)
    assert cute.size(alone.thr_id) == 1 and alone.src.shape == (1, 256)
    assert pair.thr_id == make_layout(2) and pair.src == pair.dst == make_layout((2, 256), stride=(256, 1))
