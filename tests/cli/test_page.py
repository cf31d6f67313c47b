# SPDX-License-Identifier: Apache-2.0
"""docs/cli.md says what the commands print, every command is on it, and help has an example of each."""

from __future__ import annotations

import argparse
import shlex
import sys

import pytest

from numba_cute.__main__ import main, parser

from . import page

COMMANDS = page.commands()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("cli").resolve()
    page.write_file(made)
    yield made
    sys.modules.pop("saxpy", None)


@pytest.mark.parametrize("command, said", COMMANDS, ids=[c for c, _ in COMMANDS])
def test_a_command_prints_what_the_page_says(command, said, folder, monkeypatch):
    monkeypatch.setenv("COLUMNS", "110")
    monkeypatch.setenv("NUMBA_CUTE_CACHE", "1")
    monkeypatch.setenv("NUMBA_CUTE_CACHE_DIR", str(folder / "kept"))
    got = page.printed(command, folder)
    if command.startswith("info"):  # which is of a machine
        shown, here = ({line.split()[0] for line in text.splitlines() if line} for text in (said, got))
        assert shown - here <= {"missing:", "GPU", "driver", "torch"} and {"ptxas", "libNVVM", "numba-cuda"} <= here
        return
    assert page.compared(got) == page.compared(said)


def subcommands():
    (found,) = (a for a in parser()._actions if isinstance(a, argparse._SubParsersAction))
    return found.choices


def test_every_command_is_on_the_page():
    known = set(subcommands())
    shown = {c.split()[0] for c, _ in COMMANDS}
    assert known >= {"compile", "simulate", "explain", "show", "info", "cache", "docs", "run", "ir", "opt"}
    assert known - shown <= {"run", "ir", "opt"}  # which docs/cute_ir.md and docs/cute_dsl_files.md show
    text = page.PAGE.read_text()
    assert all(f"`{name}`" in text for name in known)


@pytest.mark.parametrize("name", sorted(set(subcommands()) - {"opt"}))
def test_help_teaches_by_example_that_can_be_read(name, capsys):
    with pytest.raises(SystemExit):
        main([name, "--help"])
    said = capsys.readouterr().out
    examples = [line.strip() for line in said.partition("examples:\n")[2].splitlines() if line.strip()]
    assert examples
    for example in examples:
        words = shlex.split(example.partition("   ")[0])
        assert words[:4] == ["python", "-m", "numba_cute", name]
        if "--help" not in words and "lift" not in words:
            parser().parse_known_args([w for w in words[3:] if w not in ("<", "/dev/null")])


@pytest.mark.parametrize(
    "command, says",
    [
        ("compile none.py", "there is no file 'none.py'"),
        ("compile saxpy.py:nothing", "saxpy.py has no kernel 'nothing'; it has saxpy"),
        ("compile saxpy.py:saxpy 1 zz", "argument 'zz': NameError: name 'zz' is not defined"),
        ("compile saxpy.py:saxpy 1 'float32[-1]'", "an array's extents are numbers from 0 on"),
        ("compile saxpy.py:saxpy --arch sm_1", "arch 'sm_1': not a known target"),
        ("simulate saxpy.py:saxpy 2.0 'f32[4]' 'f32[4]'", "give --grid and --block"),
        ("simulate saxpy.py:saxpy --grid x", "--grid x: give one to three numbers"),
        ("simulate saxpy.py:saxpy --checks nothing", "are none of"),
        ("explain rac", "did you mean races?"),
        ("docs make_layot", "did you mean make_layout"),
        ("show 'make_layot(3)'", "NameError"),
        ("show '(4,8):(8)'", "stride"),
        ("cache why saxpy.py", "name a kernel of it, as saxpy.py:saxpy"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(command, says, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert main(shlex.split(command)) == 1
    said = capsys.readouterr()
    assert says in said.err and said.out == "" and "Traceback" not in said.err


CHECKS = """
import numpy as np
from numba import cuda
import numba_cute as cute


@cuda.jit
def first(a):
    cute.make_tensor(a)[cuda.threadIdx.x] = 1


@cuda.jit
def second(a):
    cute.make_tensor(a)[cuda.threadIdx.x] = 2


a = np.zeros(4, np.float32)
first[1, 4](a)
assert a[0] == 1
cute.simulate(second)[1, 4](a)
"""


def test_a_file_that_looks_at_results_is_run_with_its_launches_simulated(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    (folder / "looks_at_results.py").write_text(CHECKS)
    assert main(["compile", "looks_at_results.py"]) == 0
    said = capsys.readouterr().out
    assert said.count("for sm_90a") == 2 and "first(float32[4])" in said and "second(float32[4])" in said
    assert main(["simulate", "looks_at_results.py:second"]) == 0
    assert capsys.readouterr().out.startswith("second[1, 4](float32[4]): nothing wrong")


def test_what_the_file_raises_is_shown_from_the_file_on(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    (folder / "raises.py").write_text("def fail():\n    return {}['missing']\n\n\nfail()\n")
    assert main(["simulate", "raises.py"]) == 1
    said = capsys.readouterr().err
    assert "KeyError: 'missing'" in said and "numba_cute" not in said and "runpy" not in said
    assert said.splitlines()[1].strip().startswith('File "') and "raises.py" in said.splitlines()[1]


def test_a_kernels_memory_is_shown(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert main(["show", "saxpy.py:saxpy", "2.0", "f32[8]", "f32[8]", "--grid", "1", "--block", "32"]) == 0
    said = capsys.readouterr().out
    assert "reads x" in said and "memory over steps" in said
    assert main(shlex.split("show saxpy.py:saxpy 2.0 'f32[8]' 'f32[8]' --grid 1 --block 32 --html k.html")) == 0
    assert (folder / "k.html").read_text().count("<svg") == 3
    assert main(shlex.split("show saxpy.py:saxpy 2.0 'f32[8]' 'f32[8]' --grid 1 --block 32 --svg k.svg")) == 1
    assert "several" in capsys.readouterr().err


def test_options_and_arguments_come_in_any_order(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    for words in ("--grid 2 --block 4 2.0 'f32[6]' 'f32[6]'", "2.0 --grid 2 'f32[6]' --block 4 'f32[6]'"):
        assert main(shlex.split(f"simulate saxpy.py:saxpy {words}")) == 0
        assert capsys.readouterr().out.startswith("saxpy[2, 4](2.0, float32[6], float32[6]): nothing wrong")
    with pytest.raises(SystemExit):
        main(shlex.split("compile saxpy.py --nothing"))


def test_code_and_pictures_are_written(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert main(["compile", "saxpy.py:saxpy", "-o", "saxpy.ptx", "--sass"]) == 0
    assert ".visible .entry" in (folder / "saxpy.ptx").read_text()
    said = capsys.readouterr().out
    assert "y[i] = a * x[i] + y[i]\n            | " in said and "| EXIT" in said
    assert main(["show", "S<3,4,3>", "--svg", "a.svg", "--html", "a.html"]) == 0
    assert (folder / "a.svg").read_text().startswith("<svg") and "nc-step" in (folder / "a.html").read_text()
    assert main(["simulate", "saxpy.py:saxpy", "--trace", "run.html"]) == 0
    assert "<svg" in (folder / "run.html").read_text() and "coalescing" in capsys.readouterr().out
