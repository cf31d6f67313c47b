# SPDX-License-Identifier: Apache-2.0
"""Passes over the IR: each by texts with the lines that it must give, the command line, and kernels of three GPUs that
compute the same after all of them."""

from __future__ import annotations

import collections
import io
import re
from pathlib import Path

import numpy as np
import pytest

import numba_cute as cute

pytest.importorskip("xdsl")
pytest.importorskip("filecheck")

from filecheck.finput import FInput  # noqa: E402
from filecheck.matcher import Matcher  # noqa: E402
from filecheck.options import Options  # noqa: E402
from filecheck.parser import Parser, pattern_for_opts  # noqa: E402
from xdsl.passes import ModulePass  # noqa: E402

from numba_cute import ir  # noqa: E402
from numba_cute.__main__ import main  # noqa: E402
from numba_cute.compiler.inspection.inference import description_of_argument  # noqa: E402
from numba_cute.ir import passes  # noqa: E402
from numba_cute.ir.library.types import type_of  # noqa: E402
from numba_cute.ir.passes.rewriting import Refused  # noqa: E402
from numba_cute.runtime import from_dlpack  # noqa: E402

from . import example_kernels, lowered_kernels  # noqa: E402

TEXTS = sorted((Path(__file__).parent / "passes").glob("*.mlir"))
PASS = re.compile(r"^// PASS: (.*)$", re.MULTILINE)


def filecheck(checks: str, text: str) -> int:
    """Look for the lines that `checks` names in a text, as FileCheck does; 0 if they are all there."""
    options = Options(match_filename="checks")
    parser = Parser(options, io.StringIO(checks), *pattern_for_opts(options))
    return Matcher(options, FInput("text", text), parser).run()


@pytest.mark.parametrize("path", TEXTS, ids=lambda p: p.stem)
def test_a_pass_gives_the_lines_that_stand_beside_the_text(path, capsys):
    source = path.read_text()
    names = PASS.search(source)[1]
    assert main(["ir", str(path), "--pass", names]) == 0
    given = capsys.readouterr().out
    assert filecheck(source, given) == 0, given
    again = ir.parse(given)
    assert str(again) == given


def test_every_pass_has_a_text():
    run = {name for path in TEXTS for name in PASS.search(path.read_text())[1].split(",")}
    assert run == set(passes.PASSES)


# ------------------------------------------------------------------ the command line

GOOD = """builtin.module attributes {numba_cute.target = "sm_80"} {
  func.func @kernel() attributes {numba_cute.kernel} {
    %l = numba_cute.make_layout (4, 2)
    func.return
  }
}
"""


def run_main(capsys, *arguments):
    code = main(["ir", *map(str, arguments)])
    given = capsys.readouterr()
    return code, given.out, given.err


def test_a_module_is_printed_for_another_target(tmp_path, capsys):
    file = tmp_path / "k.mlir"
    file.write_text(GOOD)
    code, out, err = run_main(capsys, file, "--target", "sm_90a")
    assert (code, err) == (0, "") and 'numba_cute.target = "sm_90a"' in out and '!cute.layout<"(4,2):(1,4)">' in out


def test_a_module_goes_to_a_file_after_several_passes(tmp_path, capsys):
    file, to = tmp_path / "k.mlir", tmp_path / "out.mlir"
    file.write_text(GOOD)
    assert run_main(capsys, file, "--pass", "fold,dce", "--pass", "coalesce", "-o", to) == (0, "", "")
    assert "make_layout" not in to.read_text()


def test_the_passes_are_listed(capsys):
    code, out, _ = run_main(capsys, "-", "--pass", "list")
    assert code == 0 and [line.split(":")[0] for line in out.splitlines()] == list(passes.PASSES)


WRONG = {
    "syntax": ("%l = ", "%l = = ", "k.mlir:3"),
    "operation": ("make_layout", "make_lay", "k.mlir:3"),
    "rule": ("(4, 2)", '(4, 2), stride = "x"', "k.mlir:3"),
}


@pytest.mark.parametrize("case", WRONG)
def test_an_error_says_file_and_line_and_the_exit_code_is_1(tmp_path, capsys, case):
    was, now, place = WRONG[case]
    file = tmp_path / "k.mlir"
    file.write_text(GOOD.replace(was, now))
    code, out, err = run_main(capsys, file)
    assert (code, out) == (1, "") and place in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(("--pass", "cse"), "pass 'cse' is none of those that there are: fold"), (("--target", "sm_1"), "sm_1")],
    ids=["pass", "target"],
)
def test_a_wrong_argument_is_an_error(tmp_path, capsys, arguments, words):
    file = tmp_path / "k.mlir"
    file.write_text(GOOD)
    code, out, err = run_main(capsys, file, *arguments)
    assert (code, out) == (1, "") and words in err


def test_a_file_that_is_not_there_is_an_error(tmp_path, capsys):
    code, _, err = run_main(capsys, tmp_path / "none.mlir")
    assert code == 1 and "none.mlir: No such file" in err


def test_the_module_that_passes_run_over_stays():
    module = ir.parse(GOOD)
    before = str(module)
    assert str(passes.run(module, ["fold", "dce"])) != before == str(module)


# ------------------------------------------------------------------ meaning

SLOW = pytest.mark.slow
KERNELS = {
    "warp": (lowered_kernels.of_a_warp, 32, "sm_80"),
    "warpgroup": (lowered_kernels.of_a_warpgroup, 128, "sm_90a"),
    "matrix unit": (lowered_kernels.of_the_matrix_unit, 128, "sm_100a"),
}
PIPELINES = ("lower-to-nvgpu,lower-to-ptx", "fold,dce", "coalesce,vectorise,lower-to-nvgpu,lower-to-ptx,fold,dce")
RUNS = [
    pytest.param(kernel, names, id=f"{kernel}-{names}", marks=[] if (kernel, i) == ("warp", 0) else [SLOW])
    for kernel in KERNELS
    for i, names in enumerate(PIPELINES)
]


def plain(ptx):
    """PTX without comments and names of kernels."""
    text = re.sub(r"_ZN\w+", "K", re.sub(r"//.*", "", ptx))
    return [line.strip() for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize(("kernel", "names"), RUNS)
def test_a_kernel_computes_the_same_after_passes(rng, kernel, names):
    make, threads, arch = KERNELS[kernel]
    text, args, (a, b, c) = make(rng)
    module = ir.parse(text)
    lowered = passes.run(module, names.split(","))
    assert str(ir.parse(str(lowered))) == str(lowered)
    cute.simulate(ir.to_kernel(lowered), arch=arch)[1, threads](*args)
    np.testing.assert_array_equal(c, a.astype(np.float64) @ b.astype(np.float64).T)
    ptx = plain(cute.compile(ir.to_kernel(lowered), args, arch=arch).ptx)
    if kernel != "matrix unit" and "vectorise" not in names:
        assert ptx == plain(cute.compile(ir.to_kernel(module), args, arch=arch).ptx)


# ------------------------------------------------------------------ rows

ROWS = """builtin.module attributes {{numba_cute.target = "sm_80"}} {{
  func.func @kernel(%out: {out}) attributes {{numba_cute.kernel}} {{
    {line}
    func.return
  }}
}}
"""


def rows(line, out):
    return ROWS.format(out=type_of(description_of_argument(out)), line=line)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('numba_cute.nvgpu.ptx "mma"', "'mma' is not a row of the instruction table"),
        ("numba_cute.nvgpu.ptx num = 4", "give the row's name"),
        ('numba_cute.nvgpu.ptx "mapa"', "mapa"),
        ('numba_cute.nvgpu.ptx "cp_async_wait_group", n = -1', "cp_async_wait_group: no form with"),
        ('numba_cute.nvgpu.ptx "wgmma_fence"', "needs sm_90a, and the target is sm_80"),
    ],
    ids=["row", "name", "operand", "static", "target"],
)
def test_a_row_refuses_what_the_instruction_table_has_not(line, words):
    with pytest.raises(cute.CuteError) as e:
        ir.parse(rows(line, from_dlpack(np.zeros(4, np.float32))), "row.mlir")
    assert words in str(e.value) and "row.mlir:3" in str(e.value)


def test_a_load_of_one_word_is_a_tuple_in_both_engines():
    """`ld` of one word gives a vector of one: of the compiler a tuple, of the simulator the word."""
    line = """%atom = numba_cute.nvgpu.make_copy_atom "CopyG2ROp", !i8, 8, invariant = true
    %r = numba_cute.make_rmem_tensor 1, !i8
    %src = numba_cute.slice %out, (_, 0)
    %dst = numba_cute.slice %out, (_, 1)
    numba_cute.copy %atom, %src, %r
    numba_cute.autovec_copy %r, %dst"""
    array = np.array([[5, 1]], np.int8)
    out = from_dlpack(array)
    module = ir.parse(rows(line, out))
    lowered = passes.run(module, ["lower-to-nvgpu", "lower-to-ptx"])
    assert 'numba_cute.nvgpu.ptx "ld_global_nc"' in str(lowered)
    kernel = ir.to_kernel(lowered)
    cute.simulate(kernel)[1, 1](out)
    assert array.tolist() == [[5, 5]]
    assert plain(cute.compile(kernel, (out,)).ptx) == plain(cute.compile(ir.to_kernel(module), (out,)).ptx)


def test_a_pass_that_fails_names_the_pass_the_operation_and_its_line():
    class Failing(ModulePass):
        name = "failing"

        def apply(self, ctx, op):
            raise Refused(next(o for o in op.walk() if o.name == "numba_cute.make_layout"), "it is not to be")

    module = ir.parse(GOOD, "k.mlir")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(passes.PASSES, "failing", Failing)
        with pytest.raises(cute.CuteError, match=r"^k\.mlir:3: failing: numba_cute\.make_layout: it is not to be\n"):
            passes.run(module, ["failing"])


INSTRUCTION = re.compile(
    r"\s*(?:@\S+\s+)?((?:wgmma|mma|cp|tcgen05|ldmatrix|stmatrix|mbarrier|ld|st|bar|fence)\.[\w.:]*)"
)
EXAMPLES = (
    "transpose", "reduce", "hopper_gemm", "hopper_mixed_gemm", "blackwell_gemm", "blackwell_blockscaled_gemm",
)  # fmt: skip


def instructions(kernel, args, arch):
    """How often each instruction of memory, matrices and synchronisation stands in a kernel."""
    lines = plain(cute.compile(kernel, args, arch=arch).ptx)
    return collections.Counter(m[1] for m in map(INSTRUCTION.match, lines) if m)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_examples_kernel_issues_the_same_instructions_when_lowered(name):
    arch, make = example_kernels.KERNELS[name]
    kernel, args = make()
    module = ir.from_kernel(kernel, tuple(args), arch)
    lowered = ir.parse(str(passes.run(module, ["lower-to-nvgpu", "lower-to-ptx"])), names=module.names)
    assert {op.name for op in lowered}.isdisjoint({"numba_cute.copy", "numba_cute.gemm"})
    assert instructions(ir.to_kernel(lowered), tuple(args), arch) == instructions(kernel, tuple(args), arch)
