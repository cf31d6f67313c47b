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
from numba_cute.ir.text import registry
from numba_cute.ir.text.fields import FORMS, default_fields, described_value, fields_by_name, names_of
from numba_cute.ir.text.names import Names, collected, symbol_of
from numba_cute.ir.text.spelling import parse_description, spell
from numba_cute.layout import Layout
from numba_cute.nvgpu import CopyG2ROp, CopyUniversalOp, LoadCacheMode, MemoryOrder, cpasync, tcgen05, warp, warpgroup
from numba_cute.typed.descriptions import Constant, Foreign, Group, Object, Scalar, Struct

from .example_kernels import KERNELS, QUICK, descriptions
from .random_types import DESCRIPTIONS, Mine, MyState, composed, dynamic_layouts, layouts
from .written_types import PRINTED, REFUSED, SAME

BF16, F16, F32, S8, E4M3 = cute.BFloat16, cute.Float16, cute.Float32, cute.Int8, cute.Float8E4M3FN
SMEM, K, ONE = warpgroup.OperandSource.SMEM, warpgroup.OperandMajorMode.K, tcgen05.CtaGroup.ONE


def both_ways(d: Any) -> str:
    """The text of a description, which parses back to it; so does the type of xDSL, printed."""
    with collected() as names:
        text = spell(d)
    assert parse_description(text, names) == d
    return text


@pytest.mark.parametrize("text", SAME)
def test_a_type_is_printed_as_it_is_read(text):
    assert both_ways(parse_description(text)) == text


@pytest.mark.parametrize("text", PRINTED)
def test_a_type_is_read_in_other_ways_too(text):
    d = parse_description(text)
    assert both_ways(d) == PRINTED[text]
    assert parse_description(PRINTED[text]) == d


# ------------------------------------------------------------------ what is not a type


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

    @seam.frozen
    class Late:
        x: int

    assert all(Late in classes for classes in found)


def test_every_class_of_the_library_has_a_type_of_its_own():
    names = {cls: registry.mnemonic_of(cls) for cls in marked()}
    assert len(set(names.values())) == len(names) > 150
    assert {registry.class_of(name) for name in names.values()} == set(names)
    assert {name.partition(".")[0] for name in names.values()} == {"numba_cute"}
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
        assert (
            text.startswith(("!cute_nvgpu.atom.", "!numba_cute.nvgpu.copy_atom<", "!numba_cute.nvgpu.tma_"))
            and " op = " not in text
        )


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
    assert text.startswith(f"!numba_cute.nvgpu.mma_atom<{types},[")


def test_options_of_an_operation_stand_by_name_beside_the_atom():
    op = CopyG2ROp(memory_order=MemoryOrder.WEAK, load_cache_mode=LoadCacheMode.STREAMING)
    text = both_ways(described_value(cute.make_copy_atom(op, F16, 128)))
    assert text == (
        "!numba_cute.nvgpu.copy_atom<CopyG2ROp,!f16, load_cache_mode = "
        "#numba_cute.nvgpu.LoadCacheMode.STREAMING, num_bits = 128>"
    )


def test_every_member_of_every_enumeration_is_a_constant():
    for cls in seam.StaticEnum.__subclasses__():
        if registry.is_own(cls):
            for member in cls:
                assert both_ways(Constant(member)).startswith("!numba_cute.constant<")
    assert len(registry.enumerations()) > 25


def test_floats_are_told_apart_by_sign_and_nan_is_nan():
    texts = [both_ways(Constant(x)) for x in (0.0, -0.0, float("nan"), 1.0)] + [both_ways(Constant(1))]
    assert texts == [*(f"!numba_cute.constant<{x}>" for x in ("0.0", "-0.0", "nan", "1.0")), '!cute.int_tuple<"1">']
    assert len({Constant(x) for x in (0.0, -0.0, 0, False)}) == 4


def test_every_element_type_is_a_constant_and_a_type_of_numbers():
    known = [d for d in vars(dtypes).values() if isinstance(d, dtypes.DType)]
    assert set(registry.ELEMENTS.values()) == set(known) and len(registry.ELEMENTS) == len(set(known)) == 24
    for name, dtype in registry.ELEMENTS.items():
        assert both_ways(Constant(dtype)) == f"!numba_cute.constant<!{name}>" and both_ways(Scalar(dtype)) == name
        both_ways(Group((Scalar(dtype), Constant(dtype))))


@dataclasses.dataclass(frozen=True)
class Record:
    """A constant of the user's."""

    x: Any
    y: Any = None


def test_classes_of_the_user_bear_their_symbols():
    mine = Object(Mine, (Scalar(F32), Constant(3)))
    assert both_ways(mine) == f'!numba_cute.object<@"{Mine.__module__}:Mine", a = ?{{f32}}>'
    state = Struct(MyState, (("held", mine), ("count", Scalar(cute.Int32))))
    assert both_ways(state) == f'!numba_cute.struct<@"{Mine.__module__}:MyState", held = !{both_ways(mine)[1:]}>'
    assert both_ways(Constant(Mine)) == f'!numba_cute.constant<@"{Mine.__module__}:Mine">'


def test_records_are_constants_by_their_fields():
    record = Record((1, F16, Record("x")), cute.make_layout(4))
    text = both_ways(Constant(record))
    inner = f'@"{__name__}:Record"(x = "x", y = _)'
    assert text == f'!numba_cute.constant<@"{__name__}:Record"(x = (1,!f16,{inner}), y = 4:1)>'
    for wrong, why in (("x = ?", "is known whole"), ("z = 1", "cannot be made of these fields"), ("1", "only fields")):
        with pytest.raises(cute.CuteError, match=why):
            parse_description(f'!numba_cute.constant<@"{__name__}:Record"({wrong})>', [sys.modules[__name__]])


def local(n):
    @seam.frozen
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
    name, _, rest = spell(d)[1:].partition("<")
    bare = rest.removesuffix(">")
    lay = bare.strip('"') if d.cls is cute.ComposedLayout or '"' in bare else ":".join(_halves(bare))
    assert parse_description(lay) == d
    assert parse_description(f"!numba_cute.tuple<({lay},4)>") == Group((d, Constant(4)))
    assert parse_description(f"!{name}<{lay}>") == d


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
from numba_cute.ir.text.spelling import spell
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
    read = "import sys\nfrom numba_cute.ir.text.spelling import spell, parse_description\n"
    read += "for line in sys.stdin: print(spell(parse_description(line.strip())))"
    assert run(read, input=theirs) == theirs


def test_fields_have_their_names():
    d = parse_description("!cute.ptr<f16, smem, align<16>>")
    assert isinstance(d, Object) and fields_by_name(d)["alignment"] == Constant(16)
    assert both_ways(described_value(CopyUniversalOp())) == "!numba_cute.nvgpu.CopyUniversalOp"
    assert both_ways(described_value(cpasync.CopyBulkG2SOp())) == "!numba_cute.nvgpu.cpasync.CopyBulkG2SOp"
