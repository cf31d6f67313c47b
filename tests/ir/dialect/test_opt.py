# SPDX-License-Identifier: Apache-2.0
"""`opt` reads, folds, prints and compares diagnostics as MLIR's tools do; `run` runs programs."""

import io
import sys

import pytest

pytest.importorskip("xdsl")

from numba_cute.__main__ import main  # noqa: E402
from numba_cute.ir.dialect import modules, opt, running  # noqa: E402
from numba_cute.seam import CuteError  # noqa: E402

FOLDED = """
func.func @f(%n: i32) -> (i1, i1, !cute.int_tuple<"4">, !cute.int_tuple<"?">) {
  %l = cute.static : !cute.layout<"(4,8):(1,4)">
  %dead = cute.coalesce(%l) : (!cute.layout<"(4,8):(1,4)">) -> !cute.layout<"32:1">
  %s = cute.get_shape(%l) : !cute.layout<"(4,8):(1,4)"> -> !cute.shape<"(4,8)">
  %a = cute.size<[0]> (%l) : (!cute.layout<"(4,8):(1,4)">) -> !cute.int_tuple<"4">
  %b = cute.make_int_tuple(%n) : (i32) -> !cute.int_tuple<"?">
  %c = cute.tuple_add(%a, %b) : (!cute.int_tuple<"4">, !cute.int_tuple<"?">) -> !cute.int_tuple<"?">
  %x = cute.make_coord() : () -> !cute.coord<"(3,8)">
  %less = cute.elem_less(%x, %s) : (!cute.coord<"(3,8)">, !cute.shape<"(4,8)">) -> i1
  %same = cute.equal(%a, %a) : (!cute.int_tuple<"4">, !cute.int_tuple<"4">) -> i1
  cute.print(%s) : !cute.shape<"(4,8)">
  return %less, %same, %a, %c : i1, i1, !cute.int_tuple<"4">, !cute.int_tuple<"?">
}
"""


def lines(text):
    return [line.strip() for line in text.splitlines()]


def ran(source, *arguments):
    return opt.run(source, opt.parsed(arguments))


def test_folding_leaves_what_is_static_as_constants_and_what_runs():
    made = lines(ran(FOLDED, "-cute-fold-static").text)
    operations = [
        line.partition(" = ")[2] or line for line in made if " cute." in f" {line.partition(' = ')[2] or line}"[:6]
    ]
    kinds = [line.split("(")[0].split(" ")[0] for line in operations]
    assert kinds == ["cute.static"] * 3 + ["cute.make_int_tuple", "cute.tuple_add", "cute.print"]
    assert "%false = arith.constant false" in made
    assert "%true = arith.constant true" in made
    assert (
        ran(ran(FOLDED, "-cute-fold-static").text, "-p", "builtin.module(cute-fold-static)").text
        == ran(FOLDED, "-cute-fold-static").text
    )


@pytest.mark.parametrize("by, goes", [('"2"', True), ('"0"', False)])
def test_division_that_nobody_uses_goes_where_it_divides_by_no_zero(by, goes):
    source = f"""func.func @f(%a: !cute.int_tuple<"?">, %b: !cute.int_tuple<{by if goes else '"?"'}>) {{
      %r = cute.ceil_div(%a, %b) : (!cute.int_tuple<"?">, !cute.int_tuple<{by if goes else '"?"'}>) -> !cute.int_tuple<"?">
      return
    }}"""  # noqa: E501
    assert ("ceil_div" not in ran(source, "-cute-fold-static").text) == goes


@pytest.mark.parametrize("name", ["cse", "canonicalize", "dce", "loop-invariant-code-motion", "cute-fold-static"])
def test_passes_keep_what_a_program_prints(name):
    assert run(ran(PROGRAM, f"-{name}").text) == OUTPUT


def test_equal_operations_become_one_and_prints_stay():
    twice = """func.func @f(%n: i32) {
      %a = cute.make_shape(%n) : (i32) -> !cute.shape<"?">
      %b = cute.make_shape(%n) : (i32) -> !cute.shape<"?">
      cute.print(%a) : !cute.shape<"?">
      cute.print(%b) : !cute.shape<"?">
      return
    }"""
    made = ran(twice, "-cse").text
    assert made.count("make_shape") == 1
    assert made.count("cute.print(%0)") == 2


def test_pieces_are_read_alone_and_wrong_ones_told_with_their_lines():
    source = 'func.func @f() {\n  return\n}\n// -----\nfunc.func @f(%a: !cute.shape<"x,">) {\n  return\n}\n'
    made = ran(source, "-split-input-file", "a.mlir")
    assert made.text.count("func.func") == 1
    (problem,) = made.problems
    assert problem.startswith("a.mlir:5:29: error: failed to parse shape")


def test_expected_diagnostics_are_compared_by_line_and_words():
    wrong = 'func.func @f(%a: !cute.shape<"4">) {\n  return %a : i32\n}\n'
    due = f"// expected-error@+1 {{{{previously used}}}}\n{wrong}"
    assert len(ran(due, "-verify-diagnostics").problems) == 2  # it stands at another line
    right = wrong.replace("  return", "  // expected-error @below {{previously used}}\n  return")
    assert ran(right, "--verify-diagnostics").problems == []
    assert ran(right.replace("previously", "never"), "-verify-diagnostics").problems != []
    assert opt.unexpected(right.replace("previously", "never"), modules.read(right).problems, words=False) == []


def test_each_function_tells_its_first_mistake():
    one = 'func.func @{}(%a: !cute.shape<"4">) {{\n  %r = cute.tuple_product(%a) : (!cute.shape<"4">) -> !cute.shape<"5">\n  %s = cute.tuple_product(%a) : (!cute.shape<"4">) -> !cute.shape<"6">\n  return\n}}\n'  # noqa: E501
    assert [d.line for d in modules.read(one.format("f") + one.format("g")).problems] == [2, 2, 7, 7]


@pytest.mark.parametrize(
    "arguments, words",
    [(["-no-such"], "is not an option"), (["-p", "fold"], "no pass 'fold'"), (["-pass-pipeline"], "is not an option")],
)
def test_wrong_option_is_refused_in_words(arguments, words):
    with pytest.raises(CuteError, match=words):
        opt.parsed(arguments)


def test_name_with_letters_beyond_ascii_is_read_again_in_both_forms():
    made = modules.read("func.func @éf(%a: i32) {\n  return\n}\n")
    for generic in (False, True):
        printed = modules.printed(made.op, generic=generic)
        again = modules.read(printed)
        assert again.problems == [] and modules.printed(again.op, generic=generic) == printed


def test_text_that_never_ends_a_string_is_refused_at_once():
    found = modules.read('func.func @f(%a: !cute.shape<"' + "(" * 400)
    assert "ends on another line" in found.problems[0].message


# ------------------------------------------------------------------ programs

PROGRAM = """
module attributes {gpu.container_module} {
  func.func @scaled(%n: i32) -> !cute.layout<"(4,?):(1,?)"> {
    %four = arith.constant 4 : i32
    %m = arith.muli %n, %four : i32
    %s = cute.make_shape(%n) : (i32) -> !cute.shape<"(4,?)">
    %d = cute.make_stride(%m) : (i32) -> !cute.stride<"(1,?)">
    %l = cute.make_layout(%s, %d) : (!cute.shape<"(4,?)">, !cute.stride<"(1,?)">) -> !cute.layout<"(4,?):(1,?)">
    return %l : !cute.layout<"(4,?):(1,?)">
  }
  gpu.module @device {
    gpu.func @each(%n: i32) kernel {
      %x = gpu.thread_id x
      %b = gpu.block_id y
      %t = arith.index_cast %x : index to i32
      %y = arith.index_cast %b : index to i32
      %c = cute.make_coord(%t, %y) : (i32, i32) -> !cute.coord<"(?,_,?)">
      cute.print(%c) : !cute.coord<"(?,_,?)">
      %one = arith.constant 1 : i32
      %last = arith.cmpi sge, %t, %one : i32
      scf.if %last {
        gpu.printf "%d of %d%%\\n", %n, %t : i32, i32
      }
      gpu.return
    }
  }
  func.func @main() {
    %n = arith.constant 6 : i32
    %l = func.call @scaled(%n) : (i32) -> !cute.layout<"(4,?):(1,?)">
    cute.print(%l) : !cute.layout<"(4,?):(1,?)">
    %q = cute.logical_divide(%l, %t) : (!cute.layout<"(4,?):(1,?)">, !cute.shape<"(2,3)">) -> !cute.layout<"((2,2),(3,?)):((1,2),(?,?))">
    cute.print(%q) : !cute.layout<"((2,2),(3,?)):((1,2),(?,?))">
    %zero = arith.constant 0 : index
    %three = arith.constant 3 : index
    %unit = arith.constant 1 : index
    %sum = scf.for %i = %zero to %three step %unit iter_args(%a = %n) -> (i32) {
      %b = arith.addi %a, %n : i32
      scf.yield %b : i32
    }
    %s = cute.make_int_tuple(%sum) : (i32) -> !cute.int_tuple<"(?,7)">
    cute.print(%s) : !cute.int_tuple<"(?,7)">
    %two = arith.constant 2 : index
    gpu.launch_func @device::@each blocks in (%unit, %two, %unit) threads in (%two, %unit, %unit) args(%n : i32)
    return
  }
}
""".replace("    %q =", '    %t = cute.static : !cute.shape<"(2,3)">\n    %q =')  # noqa: E501
OUTPUT = """(4,6):(1,24)
((2,2),(3,2)):((1,2),(24,72))
(24,7)
(0,_,0)
(1,_,0)
6 of 1%
(0,_,1)
(1,_,1)
6 of 1%
"""


def run(source, environment=(), entry="main"):
    found = modules.read(source)
    assert not found.problems, found.problems
    output = []
    running.run(found.op, output.append, dict(environment), entry)
    return "".join(output)


def test_program_prints_what_it_computes():
    assert run(PROGRAM) == OUTPUT
    assert run(modules.printed(modules.read(PROGRAM).op, generic=True)) == OUTPUT


def test_environment_reaches_a_program_by_getenv():
    source = r"""
    llvm.func @getenv(!llvm.ptr) -> !llvm.ptr
    llvm.func @atoi(!llvm.ptr) -> i32
    llvm.mlir.global internal constant @name("N\00") {addr_space = 0 : i32}
    func.func @main() {
      %a = llvm.mlir.addressof @name : !llvm.ptr
      %e = llvm.call @getenv(%a) : (!llvm.ptr) -> !llvm.ptr
      %n = llvm.call @atoi(%e) : (!llvm.ptr) -> i32
      %s = cute.make_shape(%n) : (i32) -> !cute.shape<"?">
      cute.print(%s) : !cute.shape<"?">
      return
    }
    """
    assert run(source, {"N": "42"}) == "42\n"
    with pytest.raises(CuteError, match="null pointer"):
        run(source)


@pytest.mark.parametrize(
    "body, words",
    [
        ("%a = arith.constant 1.0 : f32", "integers can"),
        ("%z = arith.constant 0 : i32\n %a = arith.divsi %z, %z : i32", "division by zero"),
        ('%n = arith.constant 6 : i32\n %a = cute.make_shape(%n) : (i32) -> !cute.shape<"?{div=4}">', "not a multiple"),
        ("func.call @main() : () -> ()", "calls itself too deep"),
        ("%x = gpu.thread_id x", "stands on the host"),
    ],
)
def test_what_cannot_be_run_is_refused_in_words(body, words):
    source = f"func.func @main() {{\n{body}\nreturn\n}}"
    with pytest.raises(CuteError, match=words):
        run(source)


def test_entry_that_is_not_there_is_refused():
    with pytest.raises(CuteError, match="no function @other"):
        run(PROGRAM, entry="other")


# ------------------------------------------------------------------ the command line


def test_command_line_runs_both(tmp_path, capsys, monkeypatch):
    program, wrong = tmp_path / "program.mlir", tmp_path / "wrong.mlir"
    program.write_text(PROGRAM)
    wrong.write_text("func.func @f( {")
    assert main(["run", str(program)]) == 0
    assert capsys.readouterr().out == OUTPUT
    assert main(["opt", "-cute-fold-static", str(program)]) == 0
    assert 'cute.static : !cute.shape<"(2,3)">' in capsys.readouterr().out
    assert main(["opt", str(wrong)]) == main(["run", str(wrong)]) == 1
    assert capsys.readouterr().err.count("wrong.mlir:1:") == 2
    assert main(["opt", str(tmp_path / "none")]) == main(["run", str(tmp_path / "none")]) == 1
    assert main(["opt", "-what"]) == 1
    assert "is not an option" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(PROGRAM.encode())))
    assert main(["run", "-"]) == 0


@pytest.mark.parametrize(
    "body, line",
    [
        ("cute.print(%a) : !cute.shape<\"4\">\n%a = cute.static : !cute.shape<\"4\">", 2),
        ("cute.print(%a) : !cute.shape<\"4\">", 2),
        ("scf.if %c {\n%a = cute.static : !cute.shape<\"4\">\n}\ncute.print(%a) : !cute.shape<\"4\">", 5),
        ("cf.cond_br %c, ^one, ^two\n^one:\n%a = cute.static : !cute.shape<\"4\">\ncf.br ^two\n^two:\ncute.print(%a) : !cute.shape<\"4\">", 7),  # noqa: E501
    ],
)  # fmt: skip
def test_value_that_is_not_made_before_its_use_is_refused(body, line):
    found = modules.read(f"func.func @f(%c: i1) {{\n{body}\nreturn\n}}")
    assert line in [d.line for d in found.problems]


def test_value_of_an_outer_block_may_be_used_within():
    body = "%a = cute.static : !cute.shape<\"4\">\nscf.if %c {\ncute.print(%a) : !cute.shape<\"4\">\n}"  # fmt: skip
    assert not modules.read(f"func.func @f(%c: i1) {{\n{body}\nreturn\n}}").problems


def test_launches_count_their_threads_one_at_a_time():
    source = PROGRAM.replace("%two = arith.constant 2", "%two = arith.constant 2000000000")
    output = []

    class Enough(Exception):
        pass

    def printed(text):
        output.append(text)
        if len(output) > 5:
            raise Enough

    with pytest.raises(Enough):
        running.run(modules.read(source).op, printed, {})
    assert output[3:6] == ["(0,_,0)\n", "(1,_,0)\n", "6 of 1%\n"]
