# SPDX-License-Identifier: Apache-2.0
"""`inspect_layouts`: what layouts and tensors became in a kernel, and how many registers they take; `inspect_ptx`:
what its operations became."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections import Counter
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from numba import cuda
from numba.cuda import types

import numba_cute as cute
from numba_cute.compiler import inspect_layouts
from numba_cute.compiler.ground.target import compiling_for
from numba_cute.compiler.host import offline
from numba_cute.compiler.inspection.ptx_lines import placed_instructions
from numba_cute.runtime import from_dlpack

SMEM = cute.make_layout((64, 128))


@cuda.jit
def kernel(x, m, i):
    static = SMEM
    mixed = cute.make_layout((m, (4, 8)), stride=(32, (1, 4)))
    swizzled = cute.composition(cute.make_swizzle(3, 4, 3), static)
    identity = cute.make_identity_tensor((m, 8))
    fragment = cute.make_rmem_tensor((4, 2), cute.Float16)
    tile = cute.local_tile(x, (16, 32), (i, None))
    moved = mixed
    if i > 3:
        moved = cute.make_layout((m, (4, 8)), stride=(8, (1, 4)))
    fragment.fill(0.0)
    x[0, 0] = mixed(i) + moved(i) + swizzled(3) + fragment[0] + tile[0, 0, 0] + identity[i, 2][0]


def listing():
    x = from_dlpack(np.zeros((64, 128), np.float32), assumed_align=16).mark_layout_dynamic()
    return inspect_layouts(kernel, (x, np.int32(64), np.int32(1)))


FOUND = {
    "static": ('!cute.layout<"(64,128):(1,64)">', 0),
    "mixed": ('!cute.layout<"(?,(4,8)):(32,(1,4))">', 1),
    "swizzled": ('!cute.composed_layout<"S<3,4,3> o 0 o (64,128):(1,64)">', 0),
    "identity": ('!cute.coord_tensor<"(0,0)", "(?,8):(1@0,1@1)">', 1),
    "fragment": ('!cute.memref<f16, rmem, align<16>, "(4,2):(1,4)">', 4),
    "x": ('!cute.memref<f32, gmem, align<16>, "(?,?):(?{i64},1)">', 6),
    "tile": ('!cute.memref<f32, gmem, align<16>, "(16,32,?):(?{i64},1,32)">', 5),
}


@pytest.mark.parametrize("name", FOUND)
def test_a_variable_is_listed_in_cute_notation_with_its_registers(name):
    entries = [v for v in listing() if v.name == name]
    assert [(v.type, v.registers) for v in entries] == [FOUND[name]]


def test_a_variable_that_turns_out_less_static_is_listed_as_what_it_became():
    types = {v.type for v in listing() if v.name == "moved"}
    assert '!cute.layout<"(?,(4,8)):(?,(1,4))">' in types


def test_entries_name_the_line_and_print_one_a_line():
    entries = listing()
    first = kernel.py_func.__code__.co_firstlineno
    assert next(v for v in entries if v.name == "static").line == first + 2
    assert [v.line for v in entries] == sorted(v.line for v in entries)
    assert str(entries) == "\n".join(map(str, entries))
    assert f'line {first + 2}: static: !cute.layout<"(64,128):(1,64)">, 0 registers' in str(entries)
    assert 'mixed: !cute.layout<"(?,(4,8)):(32,(1,4))">, 1 register\n' in str(entries)


def test_what_is_no_layout_is_left_out_and_arguments_are_checked():
    assert {v.name for v in listing()} <= {*FOUND, "moved"}
    with pytest.raises(cute.CuteError, match="inspect_layouts takes a @cuda.jit kernel"):
        inspect_layouts(3, ())
    with pytest.raises(cute.CuteError, match="not a known target"):
        inspect_layouts(kernel, (), arch="sm_99")


# ---------------------------------------------------------------- cute.inspect


def _example(name):
    path = Path(__file__).resolve().parents[2] / "examples"
    sys.path.insert(0, str(path))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(path))


@pytest.fixture(scope="module")
def added():
    """examples/elementwise.py, inspected, and its example."""
    elementwise = _example("elementwise")
    args, _ = elementwise.arguments(*(np.zeros((256, 512), np.float32) for _ in range(3)))
    return cute.inspect_ptx(elementwise.add, args), elementwise


@pytest.fixture(scope="module")
def multiplied():
    """examples/hopper_gemm.py, inspected, and its symbol and PTX as `compile` makes it."""
    gemm = _example("hopper_gemm")
    matrices = (np.zeros(s, ml_dtypes.bfloat16) for s in ((512, 256), (512, 256), (512, 512)))
    args = gemm.arguments(*matrices, cute.BFloat16, 1)[0]
    with compiling_for("sm_90a") as cc:
        compiled = offline.ptx_of(gemm.gemm.py_func, offline._argument_types(args), gemm.gemm.targetoptions, cc)
    return cute.inspect_ptx(gemm.gemm, args), compiled


def test_inspect_gives_a_kernels_operations_with_types_and_ptx(added):
    listing, example = added
    assert listing.kernel == "add" and listing.arch == "sm_90a" and listing.file == example.__file__
    assert dict(listing.arguments)["%a"] == '!cute.memref<f32, gmem, align<16>, "(256,512):(512,1)">'
    lines, first = inspect.getsourcelines(example.add.py_func)
    for o in listing:
        if o.name.startswith("cute.") and not o.name.startswith("cute.get_"):
            called = o.name.rpartition(".")[2]
            source = lines[o.line - first]
            assert called in source or called in ("store", "load", "slice", "add", "mul"), f"{o} is not of {source}"
    copies = [o for o in listing if o.name == "cute.autovec_copy"]
    assert [{t.split()[0] for t in o.ptx if "bra" not in t} for o in copies] == [
        {"ld.global.v4.f32"}, {"ld.global.v4.f32"}, {"st.global.v4.f32"},
    ]  # fmt: skip
    assert [o.operands for o in copies] == [("%mine_a", "%regs_a"), ("%mine_b", "%regs_b"), ("%regs_c", "%mine_c")]
    (sum_, _) = [o for o in listing if o.name == "cute.add"]
    assert sum_.type == "!numba_cute.vector<f32, ((4,4),1,1)>" and [t.split()[0] for t in sum_.ptx] == ["add.f32"] * 16
    part = next(o for o in listing if o.name == "cute.partition_S")
    assert (part.result, part.operands[0]) == ("%mine_a", "%thread")
    assert part.operand_types[0].startswith(
        "!numba_cute.nvgpu.thr_copy<!numba_cute.nvgpu.tiled_copy<!cute_nvgpu.atom.universal_copy<f32, 128 b>"
    )


def test_inspect_shows_what_each_matrix_and_copy_instruction_came_from(multiplied):
    listing, _ = multiplied
    assert dict(listing.arguments)["%dtype"] == "BFloat16", "what is known when compiling is shown"
    atom = "!numba_cute.nvgpu.mma_atom<!bf16,!bf16,!f32,[64,256,16],SM90"
    products = [o for o in listing if o.name == "cute.gemm"]
    assert len(products) == 4 and all(atom in o.operand_types[0] for o in products)

    def issues(o):
        return {t.split()[0] for t in o.ptx}

    wgmma = "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16"
    assert all(wgmma in issues(o) for o in products)
    assert not any(wgmma in issues(o) for o in listing if o not in products)
    of = {name: {i for o in listing if o.name == name for i in issues(o)} for name in {o.name for o in listing}}
    assert "wgmma.commit_group.sync.aligned" in of["cute_nvgpu.warpgroup.commit_group"]
    assert "prefetch.tensormap" in of["cute_nvgpu.cpasync.prefetch_descriptor"]
    assert any("mbarrier.try_wait" in t for o in listing if o.name == "pipeline.PipelineConsumer.wait" for t in o.ptx)
    tma = [o for o in listing if o.name == "cute.copy" and "CopyBulkTensorTileG2SMulticastOp" in o.operand_types[0]]
    assert any(".multicast::cluster" in i for o in tma for i in issues(o))
    assert any(i.startswith("stmatrix") for i in of["cute.put"]), "what a device function issues is its call's"


def test_every_instruction_of_the_compiled_kernel_is_listed_once(multiplied):
    listing, (name, ptx) = multiplied
    there = Counter(p.text.split()[0] for p in placed_instructions(ptx, name))
    assert Counter(t.split()[0] for o in listing for t in o.ptx) == there
    assert sum(len(o.ptx) for o in listing if o.line == 0) < 0.1 * sum(there.values()), "most have a line"


def test_the_listing_is_text_by_source_line_that_can_be_shortened(multiplied):
    listing, _ = multiplied
    text, whole = str(listing), listing.text(limit=None)
    assert re.search(r"^ +\d+ \| +?cute\.gemm\(first, acc", text, re.M)
    assert re.search(
        r"^ +cute\.gemm %first, .* : \(!numba_cute\.nvgpu\.tiled_mma<!numba_cute\.nvgpu\.mma_atom<", text, re.M
    )
    assert "2 more like it" in text, "an unrolled loop is shown once"
    assert "... %f" in text and len(text) < len(whole)
    lines = [int(m) for m in re.findall(r"^ +(\d+) \| ", text, re.M)]
    assert lines == sorted(lines)


@cuda.jit
def ampere(x):
    tile = cute.make_rmem_tensor(4, cute.Float32)
    cute.autovec_copy(x, tile)
    tile.store(tile.load() * 2.0)
    cute.autovec_copy(tile, x)


def doubled(x):
    values = cute.make_tensor(x, 4)
    values.store(values.load() * 2.0)


def test_inspect_takes_numba_signatures_and_plain_functions():
    listing = cute.inspect_ptx(doubled, (types.Array(types.float32, 1, "C"),))
    assert listing.arguments == (("%x", "!numba.array<f32, 1, C>"),)
    same = cute.inspect_ptx(cuda.jit(doubled), "void(float32[::1])")
    assert [str(o) for o in same] == [str(o) for o in listing]
    assert any(t.startswith("st.") for o in same for t in o.ptx)


@cuda.jit
def taking_a_pair(layouts, x):
    x[0] = layouts[0](3)


def test_inspect_ptx_takes_tuples_of_static_objects():
    """Numba's debug information divides by the size of a tuple's items, and these have none."""
    layouts = cute.make_layout(8), cute.make_layout(8)
    x = np.zeros(1, np.int32)
    assert len(cute.inspect_ptx(taking_a_pair, (layouts, x))) > 0
    assert "ret" in cute.compile(cuda.jit(lineinfo=True)(taking_a_pair.py_func), (layouts, x)).ptx


@pytest.mark.parametrize("arch", ["sm_80", "sm_120a"])
def test_inspect_takes_any_target_and_needs_no_gpu(arch):
    x = from_dlpack(np.zeros(4, np.float32))
    listing = cute.inspect_ptx(ampere, (x,), arch=arch)
    assert listing.arch == arch
    assert [o.name for o in listing if o.name] == [
        "cute.make_rmem_tensor", "cute.autovec_copy", "cute.load", "cute.mul", "cute.store", "cute.autovec_copy",
    ]  # fmt: skip
    assert next(o for o in listing if o.name == "cute.make_rmem_tensor").ptx == (), "a fragment is registers"


def test_inspect_explains_wrong_arguments_and_failing_kernels():
    with pytest.raises(cute.CuteError, match="inspect_ptx takes a @cuda.jit kernel"):
        cute.inspect_ptx(3, ())
    with pytest.raises(cute.CuteError, match="not a known target"):
        cute.inspect_ptx(ampere, (), arch="sm_99")
    with pytest.raises(cute.CuteError):
        cute.inspect_ptx(ampere, (np.int32(1),))
