# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import importlib
import pickle
import pkgutil
import re
from copy import deepcopy

import pytest

from numba_cute import isa, seam
from numba_cute.isa import TABLE, rows, supports
from numba_cute.isa.form.instr import (
    ASYNC,
    CP_ASYNC_GROUP,
    SCOPES,
    SEMS,
    TCGEN05_LOADS,
    TCGEN05_STORES,
    WARP,
    instr,
)  # fmt: skip
from numba_cute.isa.form.kinds import (
    MEMORY,
    Role,
    choice,
    f32,
    inout,
    only,
    optional,
    out,
    pred,
    s32,
    same,
    smem,
    tmem,
    u16,
    u32,
    u64,
)  # fmt: skip
from numba_cute.seam import CuteError

from ..each import each
from .ptxas import assemble, find_ptxas

COORDINATES, OFFSETS = s32["rank"], u16["n"]
OTHER = optional(only(u32, "mode", "tile"), unless=("one",))
WORD = choice("width", {32: u32, 64: u64})
RESULT = out(WORD)
SAME_MASK = optional(same(u32))
SCALES = only(tmem, "scaled", True)
DISABLED = optional(only(u32["lanes"], "scaled", False))


@pytest.fixture(autouse=True)
def clean_table():
    before = dict(TABLE)
    yield
    TABLE.clear()
    TABLE.update(before)


def declare(ptx, fn, **changes):
    """Declare a row of a family that is right but for `changes`."""
    return instr(ptx, **{"target": "sm_90", "ref": "x", **changes})(fn)


def body(m, a: u32, b: out(u32)) -> None:
    """Documented."""


def undocumented(m, a: u32, b: out(u32)) -> None: ...


def addressed(m, a: smem, b: out(u32)) -> None:
    """Documented."""


K_WORDS = u32["k"]


def sized(m, a: K_WORDS, b: out(u32)) -> None:
    """Documented."""


def flipping(m, a: inout(pred)) -> None:
    """Documented."""


def needing_static(m, a: u32, b: out(u32), *, mode: str) -> None:
    """Documented."""


GOOD = "op.b32 $b, $a;"


@pytest.mark.parametrize(
    "ptx, fn, changes, why",
    [
        ("op.b32 $b;", body, {}, "operands .* differ"),
        ("op.b32 $b, $a, $c;", body, {}, "operands .* differ"),
        ("op.{mode}.b32 $b, $a;", body, {}, "lacks .*mode"),
        (GOOD, needing_static, {"over": [{"mod": 1}]}, "lacks .*mode"),
        (GOOD, sized, {}, "lacks .*k"),
        (GOOD, sized, {"over": [{"k": 0}]}, "empty vector in every case"),
        (GOOD, body, {"over": [{"a": 1}]}, "both|static parameter"),
        (GOOD, body, {"over": []}, "no case"),
        (GOOD, body, {"ranges": {"k": range(4)}}, "lacks one of the ranges"),
        (GOOD, undocumented, {}, "no docstring"),
        (GOOD, body, {"target": "90a"}, "target"),
        (GOOD, body, {"issuer": "quad"}, "issuer"),
        (GOOD, body, {"proxy": "tensor"}, "proxy"),
        (GOOD, body, {"done_by": "fate"}, "done_by"),
        (GOOD, body, {"pure": True, "issuer": WARP}, "alone can be pure"),
        (GOOD, addressed, {"pure": True}, "address is not pure"),
        ("op $a;", flipping, {}, "both read and written"),
    ],
)
def test_a_wrong_row_is_refused_when_it_is_first_asked_for(ptx, fn, changes, why):
    row = declare(ptx, fn, **changes)
    for _ in range(2):  # and ever after
        with pytest.raises(TypeError, match=why):
            row.operands  # noqa: B018


def test_a_row_is_read_when_it_is_first_asked_for_and_once():
    asked = []

    def cases():
        asked.append(True)
        yield {}

    row = declare(GOOD, body, over=cases())
    assert not asked and row.names == ("a", "b") and list(row.cases) == [{}] and asked == [True]
    with pytest.raises(AttributeError, match="'Instr' object has no attribute 'nothing'"):
        row.nothing  # noqa: B018


def test_every_row_is_right_and_is_itself_when_copied():
    assert [row.name for row in TABLE.values() if not row.operands and "$" in row.ptx] == []
    assert [
        n for n, row in TABLE.items() if deepcopy(row) is not row or pickle.loads(pickle.dumps(row)) is not row
    ] == []


def test_a_second_row_of_a_name_is_refused():
    declare(GOOD, body)
    with pytest.raises(TypeError, match="declared twice"):
        declare(GOOD, body)


def test_assembly_numbers_outputs_then_tied_inputs_then_inputs():
    def op(m, x: u64, acc: inout(f32[2]), y: u32) -> None:
        """Documented."""

    asm = declare("op $acc, $x, $y;", op).assembly({})
    assert asm.text == "op {$0, $1}, $4, $5;"
    assert asm.constraints == "=f,=f,0,1,l,r"
    assert [(o.name, i) for o, i in asm.outputs] == [("acc", 0), ("acc", 1)]
    assert [(o.name, i) for o, i in asm.inputs] == [("acc", 0), ("acc", 1), ("x", 0), ("y", 0)]


def test_assembly_tests_predicates_in_and_sets_them_out():
    def op(m, flag: pred, x: u32, result: out(pred)) -> None:
        """Documented."""

    text = declare("op $result, $x, $flag;", op).assembly({}).text
    assert text == (
        "{ .reg .pred p_flag; setp.ne.b32 p_flag, $1, 0; .reg .pred p_result; "
        "op p_result, $2, p_flag; selp.b32 $0, 1, 0, p_result; }"
    )


def test_case_takes_stated_defaults_and_refuses_others():
    over = [{"n": n, "sign": s} for s in "-+" for n in (8, 16)]
    row = declare("op.{n}.{sign} $b, $a;", body, over=over, defaults={"sign": "+"})
    assert row.case({"n": 16}) == {"n": 16, "sign": "+"}
    assert row.case({"n": 8, "sign": "-"}) == {"n": 8, "sign": "-"}
    with pytest.raises(CuteError, match=r"no form with {'n': 24}.*\[8, 16\]"):
        row.case({"n": 24})
    with pytest.raises(CuteError, match="no form with"):
        row.case({"m": 8})


class Recorder:
    def issue(self, row, case, values):
        return row.name, case, values


def test_a_call_issues_operands_by_position_or_name_and_statics_by_name():
    row = declare("op.{mode} $b, $a;", body, over=[{"mode": "x"}])
    with seam.running(Recorder()):
        assert row(7, mode="x") == row(a=7, mode="x") == ("body", {"mode": "x"}, {"a": 7})


@pytest.mark.parametrize(
    "args, kwargs, why",
    [((), {}, r"\['a'\] is missing"), ((1,), {"a": 2}, "given twice"), ((1, 2, 3), {}, "takes 2 operands"),
     ((1,), {"z": 3}, "no form with")],
)  # fmt: skip
def test_a_wrong_call_is_refused(args, kwargs, why):
    row = declare(GOOD, body)
    with seam.running(Recorder()), pytest.raises(CuteError, match=why):
        row(*args, **kwargs)


def test_a_call_on_the_host_says_where_it_works():
    with pytest.raises(CuteError, match="inside a kernel"):
        isa.mbarrier_arrive(0)


@pytest.mark.parametrize(
    "arch, target, yes",
    [
        ("sm_90a", "sm_90a", True), ("sm_90", "sm_90a", False), ("sm_100a", "sm_90a", False),
        ("sm_90a", "sm_90", True), ("sm_100a", "sm_90", True), ("sm_80", "sm_90", False), ("sm_86", "sm_80", True),
        ("sm_100f", "sm_100f", True), ("sm_103a", "sm_100f", True), ("sm_103", "sm_100f", False),
        ("sm_120a", "sm_100f", False), ("sm_100a", "sm_103f", False), ("sm_107a", "sm_100f", True),
        ("sm_110a", "sm_100f", False), ("sm_101a", "sm_110f", True), ("sm_101a", "sm_100f", False),
        ("sm_121a", "sm_120f", True), ("sm_75", "sm_70", True), ("sm_210a", "sm_90", True), ("sm_75", "sm_80", False),
    ],
)  # fmt: skip
def test_supports(arch, target, yes):
    assert supports(arch, target) is yes


@pytest.mark.parametrize("arch", ["90a", "sm_", "sm_90b", ""])
def test_supports_refuses_what_is_no_target(arch):
    with pytest.raises(CuteError, match="not a known target"):
        supports(arch, "sm_90")


def test_every_row_is_an_attribute_of_the_package_and_hides_no_module():
    modules = {m.name for m in pkgutil.iter_modules(isa.__path__)}
    for name, row in TABLE.items():
        assert getattr(isa, name) is row
        assert name not in modules


def test_importing_the_package_imports_every_family():
    before = set(TABLE)
    for module in pkgutil.iter_modules(rows.__path__):
        importlib.import_module(f"{rows.__name__}.{module.name}")
    assert set(TABLE) == before


GENERIC_LATE = {CP_ASYNC_GROUP, TCGEN05_LOADS, TCGEN05_STORES}
"""What completes later though it goes through the generic proxy; and st.async does."""


@each("row", TABLE.values(), ids=lambda r: r.name)
def test_every_row_cites_its_section_and_only_asynchronous_rows_complete_later(row):
    assert re.fullmatch(r"[a-z0-9-]+", row.ref)
    assert row.done_by is None or row.proxy == ASYNC or row.done_by in GENERIC_LATE or row is isa.st_async


# ---------------------------------------------------------------- operands that may be absent, and kinds by case


def copy(m, dst: smem, src: u64, mask: optional(u16, target="sm_100"), policy: optional(u64)) -> None:
    """Documented."""


COPY = "copy<policy:.hint><mask:.masked> [$dst], [$src]<policy:, $policy><mask:, $mask>;"


@pytest.mark.parametrize(
    "given, text, constraints, needs",
    [
        ((), "copy [$0], [$1];", "r,l", ("sm_90",)),
        (("policy",), "copy.hint [$0], [$1], $2;", "r,l,l", ("sm_90",)),
        (("mask", "policy"), "copy.hint.masked [$0], [$1], $3, $2;", "r,l,h,l", ("sm_90", "sm_100")),
    ],
)
def test_an_optional_operand_brings_its_parts_of_the_text_and_its_target(given, text, constraints, needs):
    row = declare(COPY, copy)
    asm = row.assembly({}, given)
    assert (asm.text, asm.constraints) == (text, constraints)
    assert row.needs({}, given) == needs
    assert (row.least, row.must) == (2, ("dst", "src"))
    assert given in [g for _, g in row.forms()] and len(list(row.forms())) == 4


def test_operands_are_left_out_by_not_giving_them_or_by_none():
    row = declare(COPY, copy)
    with seam.running(Recorder()):
        for left_out in (row(1, 2), row(1, 2, None), row(1, 2, mask=None, policy=None), row(dst=1, src=2)):
            assert left_out[2] == {"dst": 1, "src": 2}
        assert row(1, 2, policy=3)[2] == row(1, 2, None, 3)[2] == {"dst": 1, "src": 2, "policy": 3}


def at_offsets(m, at: COORDINATES, offsets: OFFSETS, one: optional(u32), other: OTHER) -> None:
    """Documented."""


BY_MODE = [{"mode": "tile", "rank": 2, "n": 0}, {"mode": "im2col", "rank": 3, "n": 1}]


@pytest.mark.parametrize(
    "kwargs, why",
    [
        ({"mode": "tile", "offsets": [1]}, "operand offsets is given, but the form with .*'n': 0.* has none"),
        ({"mode": "im2col"}, "operand .'offsets'. is missing"),
        ({"mode": "tile", "one": 1, "other": 2}, "other and one exclude each other"),
        ({"mode": "im2col", "offsets": [1], "other": 2}, "operand other is given, but the form with .*im2col"),
    ],
)
def test_a_form_refuses_operands_that_it_does_not_have(kwargs, why):
    row = declare("op.{mode} $at<offsets:, $offsets><one:, $one><other:, $other>;", at_offsets, over=BY_MODE)
    tile, im2col = row.cases
    assert list(row.forms()) == [(tile, ()), (tile, ("one",)), (tile, ("other",)),
                                 (im2col, ("offsets",)), (im2col, ("offsets", "one"))]  # fmt: skip
    with seam.running(Recorder()), pytest.raises(CuteError, match=why):
        row([1, 2], **kwargs)


def of_width(m, value: WORD, result: RESULT) -> None:
    """Documented."""


def test_a_static_parameter_chooses_an_operands_register():
    row = declare("op.b{width} $result, $value;", of_width, over=[{"width": 32}, {"width": 64, "target": "sm_100"}])
    assert [row.assembly(case).constraints for case in row.cases] == ["=r,r", "=l,l"]
    assert [o.kind for o in row.operands_in(row.case({"width": 64}))] == [u64, u64]
    assert [row.needs(case) for case in row.cases] == [("sm_90",), ("sm_100",)]


def test_a_static_parameter_may_be_any_number_of_a_range():
    over = [{"k": 2, "at": None}, {"k": 4, "at": 0}, {"k": 4, "at": 7}]
    row = declare("op<k:.{k}> $b, $a;", sized, over=over, ranges={"at": range(8)})
    made = row.case({"at": 5, "k": 4})
    assert made == {"k": 4, "at": 5} and row.case({"k": 4, "at": 5}) is made
    assert row.case({"at": 5}) is made and row.case({"k": 4, "at": 7}) is row.cases[2]
    for wrong in ({"k": 4, "at": 8}, {"k": 2, "at": 5}, {"at": -1}):
        with pytest.raises(CuteError, match="no form with .* 'at': '0 to 7'"):
            row.case(wrong)


def test_a_refused_form_says_which_values_go_with_the_others():
    row = declare("op.{mode} $b, $a;", needing_static, over=[{"mode": "x", "k": 1}, {"mode": "y", "k": 2}])
    with pytest.raises(CuteError, match=r"stay as they are, mode of \['y'\] or k of \[1\]"):
        row.case({"mode": "x", "k": 2})


def test_no_two_rows_share_a_case():
    """The simulator and the table know a case by its identity."""
    cases = [id(case) for row in TABLE.values() for case in row.spelled]
    assert len(set(cases)) == len(cases)


def test_parts_of_the_text_follow_static_parameters_and_nest():
    over = [{"trans": t, "hint": h} for t in (False, True) for h in (None, "keep")]
    row = declare("op<trans:.trans<hint:.{hint}>|.plain>.b32 $b, $a;", body, over=over)
    texts = [row.assembly(case).text.split()[0] for case in row.cases]
    assert texts == ["op.plain.b32", "op.plain.b32", "op.trans.b32", "op.trans.keep.b32"]


def agreed(m, value: u32, mask: SAME_MASK, b: out(u32)) -> None:
    """Documented."""
    m.seen = value, mask


def test_what_all_give_alike_comes_to_the_body_once():
    class Lanes:
        def uniform(self, operand):
            return set(operand).pop()

    row, m = declare("op $b, $a<mask:, $mask>;".replace("$a", "$value"), agreed, issuer=WARP), Lanes()
    row.perform(m, row.case({}), {"value": [1, 2], "mask": [7, 7]})
    assert m.seen == ([1, 2], 7)
    row.perform(m, row.case({}), {"value": [1, 2]})
    assert m.seen == ([1, 2], None)


# ---------------------------------------------------------------- what a row says


@pytest.mark.parametrize(
    "row, statics, order",
    [
        (isa.mbarrier_arrive, {}, ("release", "cta")),
        (isa.mbarrier_arrive, {"space": "cluster"}, ("release", "cluster")),
        (isa.mbarrier_arrive, {"space": "cluster", "scope": "cta"}, ("release", "cta")),
        (isa.mbarrier_arrive_expect_tx, {"sem": "relaxed"}, ("relaxed", "cta")),
        (isa.mbarrier_wait_parity, {"scope": "cluster"}, ("acquire", "cluster")),
        (isa.cluster_arrive, {}, ("release", "cluster")),
        (isa.fence_acq_rel, {"scope": "sys"}, ("acq_rel", "sys")),
        (isa.ld, {"space": "global", "width": 32}, (None, None)),
        (isa.ld, {"space": "global", "width": 32, "sem": "acquire", "scope": "gpu"}, ("acquire", "gpu")),
        (isa.atom, {"op": "add", "type": "u32", "space": "shared"}, ("relaxed", "gpu")),
        (isa.atom, {"op": "add", "type": "u32", "space": "dsmem"}, ("relaxed", "cluster")),
    ],
    ids=lambda x: getattr(x, "name", None),
)
def test_a_row_says_how_it_orders_memory(row, statics, order):
    assert row.order(row.case(statics)) == order


def spelled(row, case):
    """The order that the text of a case spells."""
    words = re.split(r"[.\s]", row.assembly(case).text)
    return {w for w in words if w in SEMS}, {w for w in words if w in SCOPES}


@each("row", [r for r in TABLE.values() if any(r.order(c).sem for c in r.spelled)], ids=lambda r: r.name)
def test_the_order_of_a_row_is_what_its_text_spells(row):
    for case in row.cases[:: max(1, len(row.cases) // 50)]:
        sems, scopes = spelled(row, case)
        assert sems <= {row.order(case).sem, "relaxed"} and scopes <= {row.order(case).scope}


@each("row", TABLE.values(), ids=lambda r: r.name)
def test_a_row_says_of_each_operand_that_its_text_dereferences_that_it_points_to_memory(row):
    dereferenced = set(re.findall(r"\[\$(\w+)", row.ptx))
    assert {o.name for o in row.operands if o.role in MEMORY} >= dereferenced
    text = re.findall(r"L2::cache_hint", row.ptx)
    assert bool(text) == any(o.role is Role.POLICY for o in row.operands if o.reads)


def test_the_form_carries_every_qualifier_of_a_multiply_of_blackwell(tmp_path):
    """tcgen05.mma with scale vectors, lanes left out, a scaled accumulator and collector usage: one row."""

    def mma(
        m, d: tmem, a: u64, b: u64, idesc: u32, scale_a: SCALES, scale_b: SCALES, disable: DISABLED, enable: pred
    ) -> None:
        """Documented."""

    kinds = [{"kind": "f16", "scaled": False, "vec": None}, {"kind": "mxf8f6f4", "scaled": True, "vec": "1X"}]
    over = [
        {**kind, "cta_group": g, "lanes": 4 * g, "collector": c, "by": by if kind["kind"] == "f16" else None}
        for kind in kinds for g in (1, 2) for c in (None, "fill", "use", "lastuse") for by in (None, 3)
    ]  # fmt: skip
    row = declare(
        "tcgen05.mma.cta_group::{cta_group}.kind::{kind}<scaled:.block_scale<vec:.scale_vec::{vec}>>"
        "<collector:.collector::a::{collector}> [$d], $a, $b, $idesc<scaled:, [$scale_a], [$scale_b]>"
        "<disable:, $disable>, $enable<by:, {by}>;", mma, over=over, target="sm_100a", issuer="thread",
    )  # fmt: skip
    forms = list(row.forms())
    assert len(forms) == 16 * 2 + 16
    if find_ptxas() is not None:
        assert assemble("sm_100a", row, forms, tmp_path) == ""
