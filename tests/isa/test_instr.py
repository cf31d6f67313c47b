# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import importlib
import pkgutil
import re

import pytest

from numba_cute import isa, seam
from numba_cute.isa import TABLE, rows, supports
from numba_cute.isa.form.instr import ASYNC, WARP, instr
from numba_cute.isa.form.kinds import f32, inout, out, pred, smem, u32, u64
from numba_cute.seam import CuteError


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
def test_a_wrong_row_is_refused_when_it_is_declared(ptx, fn, changes, why):
    with pytest.raises(TypeError, match=why):
        declare(ptx, fn, **changes)


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


def test_case_gives_the_first_row_that_agrees_and_refuses_others():
    row = declare("op.{n}.{sign} $b, $a;", body, over=[{"n": n, "sign": s} for s in "+-" for n in (8, 16)])
    assert row.case({"n": 16}) == {"n": 16, "sign": "+"}
    assert row.case({"n": 8, "sign": "-"}) == {"n": 8, "sign": "-"}
    with pytest.raises(CuteError, match=r"no form with {'n': 24}.*\[16, 8\]"):
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
        ("sm_120a", "sm_100f", False), ("sm_100a", "sm_103f", False),
    ],
)  # fmt: skip
def test_supports(arch, target, yes):
    assert supports(arch, target) is yes


@pytest.mark.parametrize("arch", ["90a", "sm_", "sm_90b", ""])
def test_supports_refuses_what_is_no_target(arch):
    with pytest.raises(CuteError, match="looks like"):
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


@pytest.mark.parametrize("row", TABLE.values(), ids=lambda r: r.name)
def test_every_row_cites_its_section_and_only_asynchronous_rows_complete_later(row):
    assert re.fullmatch(r"[a-z0-9-]+", row.ref)
    assert row.done_by is None or row.proxy == ASYNC or row.name.startswith(("st_async_", "cp_async"))
