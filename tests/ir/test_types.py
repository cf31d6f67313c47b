# SPDX-License-Identifier: Apache-2.0
"""Types of the IR: what a kernel knows of a value as text, and back to the same."""

from __future__ import annotations

import dataclasses
import inspect
import os
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import numba_cute as cute
from numba_cute import dtypes, seam
from numba_cute.ir import registry
from numba_cute.ir.fields import FORMS, default_fields, described_value, fields_by_name, names_of
from numba_cute.ir.names import Names, collected, symbol_of
from numba_cute.ir.spelling import parse_description, spell
from numba_cute.layout import Layout
from numba_cute.nvgpu import CopyG2ROp, CopyUniversalOp, LoadCacheMode, MemoryOrder, cpasync, tcgen05, warp, warpgroup
from numba_cute.typed.descriptions import Constant, Foreign, Group, Object, Scalar, Struct

from .example_kernels import KERNELS, QUICK, descriptions
from .random_types import DESCRIPTIONS, Mine, MyState, composed, dynamic_layouts, layouts

BF16, F16, F32, S8, E4M3 = cute.BFloat16, cute.Float16, cute.Float32, cute.Int8, cute.Float8E4M3FN
SMEM, K, ONE = warpgroup.OperandSource.SMEM, warpgroup.OperandMajorMode.K, tcgen05.CtaGroup.ONE


def both_ways(d: Any) -> str:
    """The text of a description, which parses back to it; so does the type of xDSL, printed."""
    with collected() as names:
        text = spell(d)
    assert parse_description(text, names) == d
    return text


# ------------------------------------------------------------------ the table

SAME = [
    "!cute.int<64>", "!cute.int<-3>", "!cute.int<?{div=4}>", "!cute.int<?{i64 div=8}>", "!cute.int<?{ui32 div=16}>",
    "i32", "i64", "i8", "ui32", "ui64", "i1", "f32", "f64", "f16", "bf16", "tf32", "f8E4M3FN", "f8E5M2", "f8E8M0FNU",
    "i4", "ui4", "f4E2M1FN", "f6E2M3FN", "f6E3M2FN",
    "!cute.layout<(64,128), (1,64)>", "!cute.layout<8, 1>", "!cute.layout<(), ()>", "!cute.layout<(?,4), (?{i64},1)>",
    "!cute.layout<((2,?{div=2}),4), ((1,2@1),-8)>",
    "!cute.composed_layout<S<3,4,3> o 0 o (8,64):(64,1)>", "!cute.composed_layout<S<2,4,-3> o ? o (8,?):(?,1)>",
    "!cute.composed_layout<8:2 o (0,?) o (4,2):(1@0,1@1)>",
    "!cute.composed_layout<inner = S<3,4,3>, offset = 0, outer = 8:2 o 0 o 4:1>",
    "!cute.swizzle<S<3,4,3>>", "!cute.basis<1@0>", "!cute.basis<?{div=4}@1@0>", "!cute.basis<-2@1>",
    "!cute.tuple<(4,(?,_),true)>", "!cute.tuple<()>", "!cute.tuple<(4)>", '!cute.tuple<("a",!f16,1.5,?{f32},S<3,4,3>)>',
    "!cute.tuple<(8:1,(2,2):(1,?))>", "!cute.tuple<(!cute.ptr<f16, smem, align<16>>,4)>",
    "!cute.ptr<f16, gmem, align<16>>", "!cute.ptr<i64, smem, align<8>, S<3,4,3>, address = ?{ui32}>",
    "!cute.ptr<f32, rmem, align<16>, address = !cute.registers<f32, 8>, offset = ?>",
    "!cute.ptr<f32, tmem, align<16>, offset = 1>", "!cute.ptr<f16, generic, align<2>, readonly, address = 4096>",
    "!cute.memref<f16, smem, align<128>, (64,128):(1,64)>",
    "!cute.memref<f32, gmem, align<16>, readonly, (?,?):(?{i64},1), address = ?{ui64}>",
    "!cute.memref<f16, smem, align<1024>, S<3,4,3>, ((8,16),(64,1)):((64,512),(1,0))>",
    "!cute.memref<f32, rmem, align<16>, (4,2):(1,4)>",
    "!cute.memref<f32, rmem, align<16>, 4:1, address = !cute.registers<f32, 8>, offset = 4>",
    "!cute.memref<f16, smem, align<128>, S<3,4,3> o 0 o (8,64):(64,1)>",
    "!cute.coord_tensor<(0,0), (128,64):(1@0,1@1)>", "!cute.coord_tensor<0, 7:1>", "!cute.coord_tensor<?, ?:1>",
    "!cute.tensor<!cute_nvgpu.smem_descriptor<low = ?{ui32}, high = 64, dtype = !f16>, (1,4):(0,2)>",
    "!cute.vector<f32, (8,4)>", "!cute.vector<f16, 8>", "!cute.elements<f32, 8>", "!cute.registers<f32, 8>",
    "!cute.vector<f32, (8,4), vector = !cute.elements<f16, 32>>",
    "!cute_nvgpu.mma_atom<!f16,!f16,!f32,[64,64,16],SM90>",
    "!cute_nvgpu.mma_atom<!f16,!f16,!f32,[64,64,16],SM90, b_major_mode = #cute_nvgpu.OperandMajorMode.MN, "
    "accumulate = ?{i1}>",
    "!cute_nvgpu.mma_atom<!bf16,!bf16,!f32,[16,8,16],SM80>",
    "!cute_nvgpu.mma_atom<!f8E4M3FN,!f8E4M3FN,!f32,[128,64,32],tcgen05.MmaFP8Op>",
    "!cute_nvgpu.mma_atom<!f32,!f32,!f32,[1,1,1],MmaUniversalOp>",
    "!cute_nvgpu.tiled_mma<!cute_nvgpu.mma_atom<!f16,!f16,!f32,[64,64,16],SM90>, (2,1,1):(1,0,0)>",
    "!cute_nvgpu.tiled_mma<!cute_nvgpu.mma_atom<!tf32,!tf32,!f32,[64,64,8],SM90>, 1:0, permutation_mnk = (_,8:1,_)>",
    "!cute_nvgpu.thr_mma<!cute_nvgpu.tiled_mma<!cute_nvgpu.mma_atom<!i8,!i8,!i32,[64,64,32],SM90>, 1:0>, ?>",
    "!cute_nvgpu.copy_atom<CopyUniversalOp,!f16>", "!cute_nvgpu.copy_atom<CopyUniversalOp,!f16, num_bits = 128>",
    "!cute_nvgpu.copy_atom<warp.LdMatrix8x8x16bOp,!f16, transpose = true, num_matrices = 4>",
    "!cute_nvgpu.copy_atom<cpasync.CopyBulkS2SOp,!f16, peer = ?>",
    "!cute_nvgpu.tma_load<!f16,[8192], tma_modes = (1,0)>",
    "!cute_nvgpu.tma_load<!f16,[64],cpasync.CopyBulkTensorTileG2SMulticastOp>",
    "!cute_nvgpu.tma_store<!f32,[256], recast = 2, tensor_map = ?{ui64}, tma_modes = (0,(1,2))>",
    "!cute_nvgpu.tiled_copy<!cute_nvgpu.copy_atom<CopyUniversalOp,!f16>, (32,8):(8,1), [16:1,16:1]>",
    "!cute_nvgpu.thr_copy<!cute_nvgpu.tiled_copy<!cute_nvgpu.copy_atom<CopyUniversalOp,!f16>, 32:1, [32:1]>, ?{i64}>",
    "!cute_nvgpu.mbarrier<barrier_storage = !cute.ptr<i64, smem, align<8>>, num_stages = 4, "
    'agent = (#cute.PipelineOp.TmaLoad,!cute.pipeline.CooperativeGroup<agent = #cute.Agent.Thread>), '
    'name = "full">',
    "!cute.pipeline.NamedBarrier<barrier_id = 1, num_threads = 128>", "!cute.pipeline.TmaStoreFence<num_stages = 2>",
    "!cute.pipeline.PipelineState<stages = 4>", "!cute.pipeline.PipelineState<stages = 4, count = ?{i64}>",
    "!cute.pipeline.PipelineTmaStore<sync_object = !cute.pipeline.TmaStoreFence<num_stages = 2>, num_stages = 2>",
    "!cute.utils.SmemAllocator", "!cute_nvgpu.tensor_map", "!cute_nvgpu.cpasync.CopyBulkG2SOp",
    "!cute.utils.WorkTileInfo<tile_idx = (?,?,0), is_valid_tile = ?{i1}>",
    "!cute.utils.PersistentTileSchedulerParams<problem_shape_ntile_mnl = (?,?,1), cluster_shape_mnk = (2,1,1)>",
    '!cute.constant<"a\\"b\\0A">', "!cute.constant<_>", "!cute.constant<true>", "!cute.constant<1.5>",
    "!cute.constant<1e+30>", "!cute.constant<-inf>", "!cute.constant<!f8E4M3FN>",
    "!cute.constant<#cute.AddressSpace.smem>", "!cute.constant<#cute_nvgpu.Field.ACCUMULATE>",
    '!cute.constant<@"numba_cute:gemm">', '!cute.constant<@"numba_cute.tensor.tensor:Tensor">',
    '!cute.constant<@"numba_cute.nvgpu:">', '!cute.constant<@"numba_cute.nvgpu.hopper.descriptor:SmemLayoutAtomKind">',
    "!numba.array<f32, 2, C>", "!numba.array<ui8, 1, A, readonly>", '!numba.type<"range_state_int32">',
]  # fmt: skip
"""Types that are printed as they are read."""

PRINTED = {
    "!cute.int<?>": "i32",
    "!cute.int<?{i64}>": "i64",
    '!cute.layout<"(64,128):(1,64)">': "!cute.layout<(64,128), (1,64)>",
    "!cute.layout<(64,128):(1,64)>": "!cute.layout<(64,128), (1,64)>",
    "(64,128):(1,64)": "!cute.layout<(64,128), (1,64)>",
    '!cute.composed_layout<"S<3,4,3> o 0 o 8:1">': "!cute.composed_layout<S<3,4,3> o 0 o 8:1>",
    "S<0,1,2>": "!cute.swizzle<S<0,4,3>>",
    "(4, (?, _, ), )": "!cute.tuple<(4,(?,_))>",
    "!cute.shape<(4,?)>": "!cute.tuple<(4,?)>",
    "!cute.shape<4>": "!cute.int<4>",
    "!cute.stride<(1,1@0)>": "!cute.tuple<(1,1@0)>",
    "!cute.coord<(_,(0,?))>": "!cute.tuple<(_,(0,?))>",
    "!cute.tile<((8,8), (16,16))>": "!cute.tuple<((8,8),(16,16))>",
    "!cute.tile<(8:1,_)>": "!cute.tuple<(8:1,_)>",
    "!cute.memref<!f16, smem, (64):(1)>": "!cute.memref<f16, smem, align<1>, (64):(1)>",
    "!cute_nvgpu.mma_atom<f16, f16, f32, [64, 64, 16], warpgroup.MmaF16BF16Op>": (
        "!cute_nvgpu.mma_atom<!f16,!f16,!f32,[64,64,16],SM90>"
    ),
    '!cute_nvgpu.tma_load<!f16,[128,128],"128B">': "!cute_nvgpu.tma_load<!f16,[16384], tma_modes = (1,0)>",
    "!cute.constant<#AddressSpace.gmem>": "!cute.constant<#cute.AddressSpace.gmem>",
    "!cute.pipeline.PipelineState<count = ?, stages = 4> // a comment": "!cute.pipeline.PipelineState<stages = 4>",
}


@pytest.mark.parametrize("text", SAME)
def test_a_type_is_printed_as_it_is_read(text):
    assert both_ways(parse_description(text)) == text


@pytest.mark.parametrize("text", PRINTED)
def test_a_type_is_read_in_other_ways_too(text):
    d = parse_description(text)
    assert both_ways(d) == PRINTED[text]
    assert parse_description(PRINTED[text]) == d


# ------------------------------------------------------------------ what is no type

REFUSED = {
    "(4,5": (5, "expected ',' or ')', found the end of the text"),
    "(4 5)": (4, "expected ',' or ')', found '5'"),
    "!cute.layout<(64,128), (1,64,3)>": (14, "stride=(1,64,3) does not match shape=(64,128)"),
    "!cute.layout<(64,-8):(1,64)>": (14, "an extent is 0 or more, got -8"),
    "!cute.layout<4>": (14, "expected a shape and strides"),
    '!cute.layout<"(64,1">': (14, "expected ',' or ')'"),
    "S<3,4>": (6, "expected ',' and 3 numbers in all, as in S<3,4,3>, found '>'"),
    "S<3,4,1>": (1, "the two bit fields overlap"),
    "S<3,4,3> o 0": (13, "expected 'o' and the outer layout"),
    "4 o 0 o 8:1": (3, "expected the end of the text, found 'o'"),
    "(4,f32)": (4, "write !f32 for the element type as a value, and ?{f32}"),
    "?{div=x}": (7, "expected what divides the number, found 'x'"),
    "?{f32 div=4}": (7, "div=4: what divides is 1 or more, and divides integers"),
    "?{q}": (3, "expected a type such as i64, 'div=', or '}', found 'q'"),
    "_@0": (2, "expected the end of the text, found '@'"),
    "?{f32}@0": (1, "a basis stride has an integer before the @"),
    '"abc': (1, "this string does not end on its line"),
    '"a\\q"': (3, "'\\\\q' is no escape of a string"),
    "!cute.foo<3>": (1, "!cute.foo: there is no such type in the dialects cute, cute_nvgpu and numba"),
    "!q7": (1, "!q7: there is no such element type, and the text defines no such name"),
    "!": (2, "expected the name of a type after '!', found the end of the text"),
    "!cute.int<_>": (1, "!cute.int<…> is of an int, 64, or of a number known only at run time"),
    "!cute.int": (10, "expected '<' and what !cute.int is of"),
    "!cute.constant<?>": (1, "!cute.constant<…> is of a value that is known whole"),
    "!cute.tuple<4>": (1, "!cute.tuple<…> is of a tuple"),
    "!cute.shape<(4,_)>": (1, "!cute.shape<…> is of integers"),
    "!cute.stride<(4,8:1)>": (1, "!cute.stride<…> is of integers and basis strides"),
    "!cute.coord<(4,1@0)>": (1, "!cute.coord<…> is of integers, and _"),
    "!cute.tile<(4,1@0)>": (1, "!cute.tile<…> is of integers, layouts"),
    "!cute.memref<f16, xmem, 4:1>": (14, "'xmem' is no memory; they are generic, gmem, smem, rmem, tmem"),
    "!cute.memref<f17, smem, 4:1>": (14, "'f17' is no element type; they are i1, i8"),
    "!cute.memref<f16, smem, swizzled, 4:1>": (14, "'swizzled' says nothing of a pointer"),
    "!cute.memref<f16, smem>": (14, "a tensor ends with its layout"),
    "!cute.memref<f16, smem, align<3>, 4:1>": (14, "alignment 3 bytes is not a power of two"),
    "!cute.coord_tensor<4:1>": (20, "a coordinate tensor says what lies at its origin, then its layout"),
    "!cute.coord_tensor<!cute.ptr<f16, smem>, 4:1>": (1, "what this says is no cute.coord_tensor"),
    "!cute.vector<f32>": (14, "a vector says its element type and its shape"),
    "!cute.pipeline.PipelineState<stage = 4>": (30, "has no field 'stage'; its fields are stages, count, index, phase"),
    "!cute.pipeline.PipelineState": (1, "PipelineState: the field 'stages' has no value"),
    "!cute.pipeline.PipelineState<stages = 4, stages = 5>": (42, "the field 'stages' is given twice"),
    "!cute.pipeline.PipelineState<4>": (30, "PipelineState has only fields, by name: stages, count, index, phase"),
    "!cute.ptr<address = 0, f16>": (24, "what has no name stands before the fields"),
    "!cute_nvgpu.mma_atom<!f16,!f16,!f32,[64,64,17],SM90>": (22, "SM90 has no matrix instruction of f16, f16, f32"),
    "!cute_nvgpu.mma_atom<!f16,!f16,!f32,[64,64,16],sm_90>": (22, "sm_90 is neither a GPU such as SM90 nor an"),
    "!cute_nvgpu.mma_atom<!f16,!f16,!f32,[64,64,8],warpgroup.MmaF16BF16Op>": (22, "MmaF16BF16Op has none of f16, f16"),
    "!cute_nvgpu.mma_atom<!f16,!f16>": (22, "an MMA atom says the types of A, B and the accumulator, the shape"),
    '!cute_nvgpu.tma_load<!f16,[8,8],"96B">': (22, "its swizzle, one of none, 32B, 64B, 128B, and an operation"),
    "!cute_nvgpu.tma_load<!f16,8>": (22, "a TMA atom says its element type and its box"),
    "!cute_nvgpu.tma_load<!f16,[8],cpasync.CopyBulkTensorTileS2GOp>": (1, "what this says is no cute_nvgpu.tma_load"),
    "!cute_nvgpu.copy_atom<NoOp,!f16>": (23, "NoOp is no operation; they are CopyG2ROp"),
    "!cute.constant<#AddressSpace.smm>": (16, "AddressSpace has the members generic, gmem, smem, rmem, tmem"),
    "!cute.constant<#Space.smem>": (16, "there is no enumeration 'Space'; they are cute.AddressSpace"),
    '!cute.constant<@"numba_cute:nothing">': (16, "the module numba_cute has no nothing"),
    '!cute.constant<@"numba_cute.nothing:f">': (16, "there is no module numba_cute.nothing, or it is not loaded"),
    '!cute.constant<@"numba_cute.config:os">': (16, "the module numba_cute.config has no os that kernels know"),
    '!cute.constant<@"numba_cute.config:os.system">': (16, "has no os.system that kernels know"),
    '!cute.constant<@"builtins:eval">': (16, "kernels have no such value"),
    '!cute.constant<@"numba_cute:gemm"(x = 1)>': (16, "is no class of records"),
    '!cute.constant<@"f">': (16, 'a symbol is "module:qualname"'),
    '!cute.object<@"numba_cute:gemm">': (14, "begins with the symbol of a `static` class"),
    "!numba.array<f32, 2, K>": (1, "the layout of an array is C, F or A, not K"),
    "(4,\n5": (2, "expected ',' or ')'"),
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_an_error_says_where_and_what_was_expected(text):
    column, problem = REFUSED[text]
    with pytest.raises(cute.CuteError) as caught:
        parse_description(text)
    said = str(caught.value)
    assert problem in said
    first, shown, mark = said.rsplit("\n", 2)
    assert f"column {column}: " in first and mark.index("^") == column - 1 + 2
    assert shown.strip() in text and first.startswith("line 2, " if "\n" in text else "column")


# ------------------------------------------------------------------ classes, enumerations, element types, symbols


def marked():
    found: list[type] = []
    seam.tell_marked(found.append)
    return [cls for cls in found if registry.is_own(cls)]


def test_who_asks_for_marked_classes_is_told_of_those_to_come():
    found: list[list[type]] = [[], []]
    for classes in found:
        seam.tell_marked(classes.append)

    @seam.static
    class Late:
        x: int

    assert all(Late in classes for classes in found)


def test_every_class_of_the_library_has_a_type_of_its_own():
    names = {cls: registry.mnemonic_of(cls) for cls in marked()}
    assert len(set(names.values())) == len(names) > 150
    assert {registry.class_of(name) for name in names.values()} == set(names)
    assert {name.partition(".")[0] for name in names.values()} == {"cute", "cute_nvgpu"}
    assert not {names[cls] for cls in names} & {registry.OBJECT, registry.STRUCT}


def test_objects_of_every_class_are_written_by_their_fields():
    """As far as a field says nothing by itself, it holds an odd string here."""
    for cls in marked():
        if hasattr(cls, "__post_init__") or registry.mnemonic_of(cls) in FORMS:
            continue
        fields = {name: Constant(f"{name} of {i}") for i, name in enumerate(names_of(cls))}
        struct = seam.is_struct_class(cls)
        d = Struct(cls, tuple(fields.items())) if struct else Object(cls, tuple(fields.values()))
        assert all(f"{name} = " in both_ways(d) for name in fields)
        if not struct and default_fields(cls).keys() == fields.keys():
            assert both_ways(described_value(cls())) == f"!{registry.mnemonic_of(cls)}"


def test_operations_of_every_class_are_written_with_their_atoms():
    made = [op() for op in map(_usual, registry.short_names(cute.nvgpu.CopyOp).values()) if op is not None]
    assert len(made) > 30
    for op in made:
        text = both_ways(described_value(cute.CopyAtom(op, F16, 128)))
        assert text.startswith(("!cute_nvgpu.copy_atom<", "!cute_nvgpu.tma_")) and " op = " not in text


def _usual(cls):
    missing = dataclasses.MISSING
    return cls if all(f.default is not missing for f in dataclasses.fields(cls)) else None


MMA_OPS = [
    warp.MmaF16BF16Op(BF16, F32, (16, 8, 16)), warp.MmaTF32Op((16, 8, 8)), warp.MmaF64Op((8, 8, 4)),
    warp.MmaFP8Op(E4M3, F32, (16, 8, 32)), warp.MmaI8Op(S8, S8, (16, 8, 32)), warp.MmaI8Op(S8, S8, (16, 8, 32), False),
    warp.MmaF16BF16SparseOp(F16, F32, (16, 8, 32)),
    warpgroup.MmaF16BF16Op(F16, F32, (64, 128, 16), warpgroup.OperandSource.RMEM, K, warpgroup.OperandMajorMode.MN),
    warpgroup.MmaF8Op(E4M3, cute.Float8E5M2, F32, (64, 8, 32), SMEM), warpgroup.MmaTF32Op((64, 256), SMEM),
    warpgroup.MmaI8Op(S8, cute.Uint8, cute.Int32, (64, 32, 32), SMEM), warpgroup.MmaB1Op((64, 32, 256), SMEM),
    tcgen05.MmaF16BF16Op(BF16, F32, (256, 256, 16), tcgen05.CtaGroup.TWO, SMEM, K, K),
    tcgen05.MmaTF32Op((128, 64, 8), ONE, SMEM, K, K), tcgen05.MmaI8Op(S8, (128, 64, 32), ONE, SMEM, K, K),
    tcgen05.MmaF8F6F4Op(E4M3, cute.Float4E2M1FN, F32, (128, 64, 32), ONE, SMEM, K, K),
    tcgen05.MmaMXF8Op(E4M3, (128, 128, 32), ONE, SMEM, K, K), tcgen05.MmaMXF4Op((128, 128, 64), ONE, SMEM),
    tcgen05.MmaMXF4NVF4Op(cute.Float8E4M3FN, (128, 128, 64), ONE, SMEM), cute.nvgpu.MmaUniversalOp(F32),
]  # fmt: skip


@pytest.mark.parametrize("op", MMA_OPS, ids=repr)
def test_matrix_operations_are_written_with_their_atoms(op):
    atom = described_value(cute.make_mma_atom(op))
    text = both_ways(atom)
    assert " op = " not in text and text.count("[") == 1
    types = ",".join(f"!{registry.element_name(t)}" for t in (op.a_type, op.b_type, op.accumulator))
    assert text.startswith(f"!cute_nvgpu.mma_atom<{types},[")


def test_options_of_an_operation_stand_by_name_beside_the_atom():
    op = CopyG2ROp(memory_order=MemoryOrder.WEAK, load_cache_mode=LoadCacheMode.STREAMING)
    text = both_ways(described_value(cute.make_copy_atom(op, F16, 128)))
    assert text == (
        "!cute_nvgpu.copy_atom<CopyG2ROp,!f16, load_cache_mode = #cute_nvgpu.LoadCacheMode.STREAMING, num_bits = 128>"
    )


def test_every_member_of_every_enumeration_is_a_constant():
    for cls in seam.StaticEnum.__subclasses__():
        if registry.is_own(cls):
            for member in cls:
                assert both_ways(Constant(member)).startswith("!cute.constant<")
    assert len(registry.enumerations()) > 25


def test_floats_are_told_apart_by_sign_and_nan_is_nan():
    texts = [both_ways(Constant(x)) for x in (0.0, -0.0, float("nan"), 1.0)] + [both_ways(Constant(1))]
    assert texts == [*(f"!cute.constant<{x}>" for x in ("0.0", "-0.0", "nan", "1.0")), "!cute.int<1>"]
    assert len({Constant(x) for x in (0.0, -0.0, 0, False)}) == 4


def test_every_element_type_is_a_constant_and_a_type_of_numbers():
    known = [d for d in vars(dtypes).values() if isinstance(d, dtypes.DType)]
    assert set(registry.ELEMENTS.values()) == set(known) and len(registry.ELEMENTS) == len(set(known)) == 24
    for name, dtype in registry.ELEMENTS.items():
        assert both_ways(Constant(dtype)) == f"!cute.constant<!{name}>" and both_ways(Scalar(dtype)) == name
        both_ways(Group((Scalar(dtype), Constant(dtype))))


@dataclasses.dataclass(frozen=True)
class Record:
    """A constant of the user's."""

    x: Any
    y: Any = None


def test_classes_of_the_user_bear_their_symbols():
    mine = Object(Mine, (Scalar(F32), Constant(3)))
    assert both_ways(mine) == f'!cute.object<@"{Mine.__module__}:Mine", a = ?{{f32}}>'
    state = Struct(MyState, (("held", mine), ("count", Scalar(cute.Int32))))
    assert both_ways(state) == f'!cute.struct<@"{Mine.__module__}:MyState", held = !{both_ways(mine)[1:]}>'
    assert both_ways(Constant(Mine)) == f'!cute.constant<@"{Mine.__module__}:Mine">'


def test_records_are_constants_by_their_fields():
    record = Record((1, F16, Record("x")), cute.make_layout(4))
    text = both_ways(Constant(record))
    inner = f'@"{__name__}:Record"(x = "x", y = _)'
    assert text == f'!cute.constant<@"{__name__}:Record"(x = (1,!f16,{inner}), y = 4:1)>'
    for wrong, why in (("x = ?", "is known whole"), ("z = 1", "cannot be made of these fields"), ("1", "only fields")):
        with pytest.raises(cute.CuteError, match=why):
            parse_description(f'!cute.constant<@"{__name__}:Record"({wrong})>', [sys.modules[__name__]])


def local(n):
    @seam.static
    class Local:
        n: Any

    def function():
        return n

    return Local, function


def test_what_is_made_in_a_function_is_found_in_this_process():
    (a, f), (b, g) = local(1), local(2)
    symbols = [symbol_of(x) for x in (a, b, f, g)]
    assert len(set(symbols)) == 4 and all("local.<locals>" in s for s in symbols)
    assert symbols == [symbol_of(x) for x in (a, b, f, g)]
    assert f'@"{symbols[1]}", n = 1' in both_ways(Object(b, (Constant(1),)))
    both_ways(Constant(g))


def test_symbols_are_names_to_import():
    for obj in (cute.make_layout, cute.layout.make_layout, cute.gemm, warpgroup.fence, Layout, cute.nvgpu, print):
        symbol = symbol_of(obj)
        assert Names().find(symbol) is obj and "#" not in symbol
    assert symbol_of(inspect) == "inspect:"
    assert symbol_of(warpgroup.fence).startswith("numba_cute.nvgpu")


# ------------------------------------------------------------------ at random


@settings(max_examples=40, deadline=None)
@given(DESCRIPTIONS)
def test_descriptions_made_at_random_are_text_and_back(d):
    both_ways(d)


@pytest.mark.slow
@settings(max_examples=1500, deadline=None)
@given(DESCRIPTIONS)
def test_many_descriptions_made_at_random_are_text_and_back(d):
    both_ways(d)


def mistyped(text, at, sign, cut):
    at %= len(text) + 1
    return text[:at] + sign + text[at + cut :]


MISTYPED = st.builds(
    mistyped, st.sampled_from(SAME), st.integers(0, 200), st.sampled_from(["", *"(),<>:?@#!_=[]\"{}41o", " o ", "f16"]),
    st.integers(0, 3),
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(MISTYPED)
def test_what_is_mistyped_is_another_type_or_refused(text):
    try:
        d = parse_description(text)
    except cute.CuteError as e:
        assert "column" in str(e)
    else:
        both_ways(d)


@settings(max_examples=40, deadline=None)
@given(layouts | dynamic_layouts() | composed)
def test_layouts_stand_in_any_place_as_they_are_printed(d):
    bare = spell(d).partition("<")[2].removesuffix(">")
    again = parse_description(bare if d.cls is cute.ComposedLayout else spell(d))
    assert again == d
    lay = f"{bare}" if d.cls is cute.ComposedLayout else ":".join(_halves(bare))
    assert parse_description(f"!cute.tuple<({lay},4)>") == Group((d, Constant(4)))
    assert parse_description(f'!{spell(d)[1:].partition("<")[0]}<"{lay}">') == d


def _halves(text):
    """What stands before and after the comma that is in no parentheses or braces."""
    depth = 0
    for i, char in enumerate(text):
        depth += (char in "({") - (char in ")}")
        if char == "," and depth == 0:
            return text[:i], text[i + 2 :]
    raise AssertionError(text)


# ------------------------------------------------------------------ the examples' kernels


HERE = ("reduce", "hopper_gemm")
"""Those that are tested here by default."""


def test_quick_examples_are_examples():
    assert set(HERE) <= set(QUICK) <= set(KERNELS)


@pytest.mark.parametrize("name", [n if n in HERE else pytest.param(n, marks=pytest.mark.slow) for n in KERNELS])
def test_every_value_of_an_example_is_text_and_back(name):
    for d in descriptions(name):
        text = both_ways(d)
        if not isinstance(d, Foreign):
            assert "!numba.type" not in text or "Foreign" in repr(d)


PRINT = """
import sys
from tests.ir.example_kernels import descriptions
from numba_cute.typed.descriptions import Foreign
from numba_cute.ir.spelling import spell
print(*(spell(d) for d in descriptions("hopper_gemm") if not isinstance(d, Foreign)), sep="\\n")
"""


@pytest.mark.slow
def test_another_process_prints_the_same_and_reads_it():
    mine = [d for d in descriptions("hopper_gemm") if not isinstance(d, Foreign)]
    run = lambda text, **given: subprocess.run(  # noqa: E731
        [sys.executable, "-c", text], env={**os.environ, "PYTHONHASHSEED": "7"}, check=True, text=True, timeout=300,
        capture_output=True, **given,
    ).stdout  # fmt: skip
    theirs = run(PRINT)
    assert theirs == "".join(f"{spell(d)}\n" for d in mine)
    read = "import sys\nfrom numba_cute.ir.spelling import spell, parse_description\n"
    read += "for line in sys.stdin: print(spell(parse_description(line.strip())))"
    assert run(read, input=theirs) == theirs


def test_fields_have_their_names():
    d = parse_description("!cute.ptr<f16, smem, align<16>>")
    assert isinstance(d, Object) and fields_by_name(d)["alignment"] == Constant(16)
    assert both_ways(described_value(CopyUniversalOp())) == "!cute_nvgpu.CopyUniversalOp"
    assert both_ways(described_value(cpasync.CopyBulkG2SOp())) == "!cute_nvgpu.cpasync.CopyBulkG2SOp"
