# SPDX-License-Identifier: Apache-2.0
"""The types of the IR in xDSL: parsed, printed, verified as part of a module."""

from __future__ import annotations

import pytest

pytest.importorskip("xdsl")

from hypothesis import given, settings  # noqa: E402
from xdsl.dialects.builtin import IndexType  # noqa: E402
from xdsl.dialects.test import Test  # noqa: E402
from xdsl.parser import Parser  # noqa: E402
from xdsl.utils.exceptions import ParseError  # noqa: E402

import numba_cute as cute  # noqa: E402
from numba_cute.ir.library.types import TYPES, DescribedType, description_of, reading, type_of  # noqa: E402
from numba_cute.ir.module import context, dialects  # noqa: E402
from numba_cute.ir.text import registry  # noqa: E402
from numba_cute.ir.text.names import Names, collected  # noqa: E402
from numba_cute.ir.text.spelling import parse_description, spell  # noqa: E402
from numba_cute.typed.descriptions import Constant, Group, Scalar  # noqa: E402

from .random_types import DESCRIPTIONS  # noqa: E402
from .written_types import PRINTED, SAME  # noqa: E402

CONTEXT = context()
CONTEXT.load_dialect(Test)


def parsed(text):
    """The type that a text is in a module, from which the module prints the same again."""
    return Parser(CONTEXT, text).parse_type()


@pytest.mark.parametrize("text", SAME)
def test_a_type_is_one_of_xdsl_and_prints_as_it_is_read(text):
    t = parsed(text)
    assert str(t) == text and description_of(t) == parse_description(text) and type_of(description_of(t)) == t
    t.verify()


@pytest.mark.parametrize("text", [t for t in PRINTED if t.startswith("!") and "//" not in t])
def test_a_type_reads_as_its_description_does(text):
    t = parsed(text)
    assert description_of(t) == parse_description(PRINTED[text])
    again = parsed(str(t))
    assert again == t and hash(again) == hash(t)


def test_the_field_s_names_of_tuples_are_types_with_one_description():
    names = ["shape", "stride", "coord", "int_tuple"]
    types = [parsed(f'!cute.{name}<"(4,?)">') for name in names]
    assert len(set(types)) == 4 and [str(t) for t in types] == [f'!cute.{name}<"(4,?)">' for name in names]
    assert parsed("!numba_cute.tuple<(4,?)>") == parsed("!cute.tuple<(4,?)>") == types[-1]
    assert {description_of(t) for t in types} == {Group((Constant(4), Scalar(cute.Int32)))}
    assert type_of(description_of(types[0])) == types[-1]


def test_a_number_of_which_nothing_is_known_is_the_builtin_type():
    assert str(parsed("i32")) == "i32" and str(parsed("ui64")) == "ui64"
    assert parsed("i32") == type_of(Scalar(cute.Int32))
    assert isinstance(parsed("!numba_cute.int<?{ui32 div=4}>"), DescribedType)
    assert str(parsed("!cute.int<?{div=4}>")) == '!cute.int_tuple<"?{div=4}">'


def test_a_tma_atom_s_type_keeps_its_box_and_swizzle():
    """They are in the tensor map, of which a kernel knows nothing."""
    text = '!numba_cute.nvgpu.tma_load<!f16,[128,128],"128B">'
    t = parsed(text)
    assert str(t) == text and parsed(str(t)) == t
    assert t != parsed(text.replace("128B", "64B")) and description_of(t) == description_of(
        parsed(text.replace("128B", "64B"))
    )
    assert spell(description_of(t)) == "!numba_cute.nvgpu.tma_load<!f16,[16384], tma_modes = (1,0)>"


MODULE = """
!l = !cute.layout<"(4,8):(1,4)"> // a comment
%0 = "test.op"() : () -> !numba_cute.nvgpu.tma_load<!f16,[128,128],"128B">
%1, %2 = "test.op"(%0) : (!numba_cute.nvgpu.tma_load<!f16, [128,
    128], "128B">) -> (!numba_cute.memref<f16, smem, align<16>, /*X*/!l>, i32)
%3 = "test.op"() : () -> !numba_cute.nvgpu.tensor_map
%4 = "test.op"() : () -> !numba_cute<int<64>>
%5 = "test.op"() {a = !cute.shape<"(1)">, b = [!numba_cute.tuple<(_,"a>b")>,
!l]} : () -> !numba_cute.constant<@"numba_cute:gemm">
""".replace("/*X*/", "")


def test_types_stand_in_modules():
    module = Parser(CONTEXT, MODULE).parse_module()
    module.verify()
    text = str(module)
    assert '(!cute.memref<f16, smem, align<16>, "(4,8):(1,4)">, i32)' in text and '!cute.int_tuple<"64">' in text
    assert str(Parser(CONTEXT, text).parse_module()) == text


@pytest.mark.parametrize(
    ("text", "place", "why"),
    [
        ('%0 = "test.op"() : () -> !numba_cute.tuple<(4,\n  f32)>', ":2:3", "write !f32 for the element type"),
        ('%0 = "test.op"() : () -> !numba_cute.tuple<(4,!m)>', ":1:47", "the text defines no such name"),
        ('%0 = "test.op"() : () -> !numba_cute.layout<(4,4),\n  (1,4,5)>', ":1:45", "does not match shape=(4,4)"),
        ('%0 = "test.op"() : () -> !numba_cute.lay<4>', ":1:", "'numba_cute.lay' is not registered"),
    ],
    ids=["element type", "alias", "layout", "name"],
)
def test_an_error_names_the_line_of_the_module(text, place, why):
    with pytest.raises(ParseError) as caught:
        Parser(CONTEXT, text).parse_module()
    assert place in str(caught.value) and why in str(caught.value)


def test_what_is_no_type_of_a_kernel_has_no_description():
    with pytest.raises(cute.CuteError, match="index is not a type of a kernel's values"):
        description_of(IndexType())


def test_every_class_of_the_library_has_its_type_in_a_dialect():
    assert set(registry.mnemonics()) <= set(TYPES) and len(TYPES) > 180
    assert {t for d in dialects() for t in d.attributes} >= set(TYPES.values())
    assert all(reading(name) is None for name in TYPES)


@settings(max_examples=25, deadline=None)
@given(DESCRIPTIONS)
def test_types_made_at_random_stand_in_modules(d):
    t = type_of(d)
    with collected() as names:
        text = str(t)
    CONTEXT.names = Names(names)
    assert description_of(t) == d and parsed(text) == t
