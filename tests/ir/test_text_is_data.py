# SPDX-License-Identifier: Apache-2.0
"""Reading a text imports nothing and calls nothing of the host's; what it names is what the caller lets it name."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import seam

pytest.importorskip("xdsl")

from numba_cute import ir
from numba_cute.__main__ import main
from numba_cute.ir import passes
from numba_cute.ir.kernels import to_python

HERE = sys.modules[__name__]
TOUCHED: list[str] = []


def touch(*args, **named):
    """A function of the user's, which no text calls unless it is given."""
    TOUCHED.append("touch")
    return 7


def seven():
    return 7


@dataclasses.dataclass(frozen=True)
class Record:
    n: int


@seam.frozen
class Mine:
    n: int


class Executes:
    """A class that does something when it is made."""

    def __init__(self, **named):
        TOUCHED.append("made")


def module_of(*lines: str) -> str:
    body = "\n".join(f"    {line}" for line in lines)
    return (
        f"builtin.module {{\n  func.func @k() attributes {{numba_cute.kernel}} {{\n{body}\n    func.return\n  }}\n}}\n"
    )


HOST = {
    "a function of another module": ('numba.call @"subprocess:getoutput" "touch FILE"', '!cute.int_tuple<"1">'),
    "by a call": ('numba_cute.call @"subprocess:getoutput" "touch FILE"', "i32"),
    "a builtin": ('numba_cute.call @"builtins:eval" "1 + 1"', "i32"),
    "a file": ('numba.call @"builtins:open" "FILE", "w"', "i32"),
    "a module that is not loaded": ('numba.value @"antigravity:x"', "i32"),
    "a constant of one": ('numba_cute.static', '!numba_cute.constant<@"antigravity:x">'),
    "an object of one": ('numba_cute.static', '!numba_cute.object<@"antigravity:C", n = 1>'),
    "what the library imports": ('numba_cute.call @"numba_cute.config:os.system" "touch FILE"', "i32"),
    "what Numba imports": ('numba.call @"numba.pycc.platform:subprocess.getoutput" "touch FILE"', "i32"),
    "the library's own host functions": ('numba_cute.call @"numba_cute.compiler.host.store:clear"', "i32"),
    "Numba's own host functions": ('numba.call @"numba.cuda:close"', "i32"),
    "a record of a function": ('numba_cute.static', '!numba_cute.constant<@"os:system"(command = "touch FILE")>'),
    "a record of a class that is none": ('numba_cute.static', f'!numba_cute.constant<@"{__name__}:Executes"(x = 1)>'),
    "a method of a module": ('numba_cute.method "getoutput" of @"subprocess:", "touch FILE"', "i32"),
    "a module of the library": ('numba_cute.get_attr @"numba_cute.nvgpu:", "cpasync"', "i32"),
    "an inside of Python's": ('numba_cute.get_attr @"numba_cute:gemm", "__globals__"', "i32"),
    "by getattr": ('numba.call @"builtins:getattr" @"numba_cute:gemm", "__globals__"', "i32"),
    "a method of Python's inside": ('numba_cute.method "__subclasses__" of @"numba_cute.layout.layout:Layout"', "i32"),
    "the user's, not given": (f'numba_cute.call @"{__name__}:touch"', "i32"),
    "a record of the user's, not given": ('numba_cute.static', f'!numba_cute.constant<@"{__name__}:Record"(n = 1)>'),
}  # fmt: skip


@pytest.mark.parametrize("says_type", [True, False], ids=["typed", "inferred"])
@pytest.mark.parametrize("call", HOST.values(), ids=HOST)
def test_a_text_runs_and_imports_nothing(call, says_type, tmp_path, monkeypatch):
    for host in ("system", "popen"):
        monkeypatch.setattr(f"os.{host}", touch)
    monkeypatch.setattr(subprocess, "getoutput", touch)
    TOUCHED.clear()
    before = set(sys.modules)
    line, type_ = (x.replace("FILE", str(tmp_path / "file")) for x in call)
    try:
        module = ir.parse(
            module_of(f"%z = {line}" + (f" : {type_}" if says_type or line == "numba_cute.static" else ""))
        )
        for name in passes.PASSES:
            passes.run(module, [name])
        str(module)
    except cute.CuteError:
        pass
    assert not TOUCHED and not list(tmp_path.iterdir()) and not {"antigravity"} & (set(sys.modules) - before)


UNKNOWN = {
    "a call": 'numba_cute.call @"elsewhere:f" 1 : i32',
    "a call of Numba's form": 'numba.call @"elsewhere:f" 1 : i32',
    "a value": 'numba.value @"elsewhere:f" : f32',
    "a constant": 'numba_cute.static : !numba_cute.constant<@"elsewhere:f">',
    "a record": 'numba_cute.static : !numba_cute.constant<@"elsewhere:R"(n = (1,!f16), m = @"elsewhere:f")>',
    "an object": 'numba_cute.static : !numba_cute.object<@"elsewhere:C", n = ?{f32}, m = 4:1>',
    "a type of Numba's": 'numba.value @"elsewhere:f" : !numba.type<"nobody\'s">',
    "an operand": 'numba_cute.make_tuple (1, @"elsewhere:f") : !numba_cute.tuple<(1,@"elsewhere:f")>',
    "a local": 'numba_cute.call @"elsewhere:f.<locals>.g" 1 : i32',
}


@pytest.mark.parametrize("line", UNKNOWN.values(), ids=UNKNOWN)
def test_a_symbol_that_nobody_gives_prints_back_and_makes_no_kernel(line):
    text = module_of(f"%z = {line}", 'numba_cute.call @"elsewhere:use" %z')
    module = ir.parse(text)
    assert str(module) == text and module.names == {}
    symbols = re.compile(r'@"[^"]+"').findall
    assert set(symbols(str(passes.run(module, list(passes.PASSES))))) == set(symbols(text))
    with pytest.raises(cute.CuteError, match=r'names .*@"elsewhere:.*, which it was read without: give parse .*names='):
        ir.to_kernel(module)


def test_what_hangs_on_an_unknown_symbol_needs_its_type_written():
    with pytest.raises(cute.CuteError, match=r'hangs on @"elsewhere:f", which is not among the names'):
        ir.parse(module_of('%z = numba_cute.call @"elsewhere:f" 1'))


GIVEN = {
    "a list of modules": [HERE],
    "a mapping": {f"{__name__}:seven": seven, f"{__name__}:Record": Record, f"{__name__}:Mine": Mine},
}


@pytest.mark.parametrize("names", GIVEN.values(), ids=GIVEN)
def test_names_that_are_given_are_the_users(names):
    text = module_of(
        f'%z = numba_cute.call @"{__name__}:seven"',
        f'%r = numba_cute.static : !numba_cute.constant<@"{__name__}:Record"(n = 1)>',
        f'%m = numba_cute.static : !numba_cute.object<@"{__name__}:Mine", n = 2>',
    )
    module = ir.parse(text, names=names)
    assert '"7"' in str(module) and str(ir.parse(str(module), names=module.names)) == str(module)
    assert set(module.names) == {f"{__name__}:{n}" for n in ("seven", "Record", "Mine")}
    assert "seven()" in to_python(module)


def test_a_mapping_decides_what_a_symbol_means():
    text = module_of('%z = numba_cute.call @"theirs:f"')
    module = ir.parse(text, names={"theirs:f": lambda: 3})
    other = ir.parse(text, names={"theirs:f": lambda: 4})
    assert '"3"' in str(module) and '"4"' in str(other)
    assert '@"theirs:f"' in str(module) and set(module.names) == {"theirs:f"}
    with pytest.raises(cute.CuteError, match="hangs on"):
        ir.parse(text)


def test_of_a_module_that_is_given_only_what_it_defines_is_meant():
    other = ModuleType("other")
    other.system, other.numpy, other.Kind = seven, np, Record
    for symbol in ("other:system", "other:numpy.load", "other:Kind", "other:__loader__"):
        module = ir.parse(module_of(f'%z = numba_cute.call @"{symbol}" : i32'), names=[other])
        with pytest.raises(cute.CuteError, match="which it was read without"):
            ir.to_kernel(module)


def test_the_text_of_a_kernel_is_read_again_by_its_own_names():
    @seam.traced
    def local(n):
        return n + cute.arch.lane_idx()

    @cuda.jit
    def kernel(out):
        out[0] = local(5)

    out = np.zeros(1, np.int32)
    lifted = ir.from_kernel(kernel, (out,))
    assert [s.rpartition(".")[2] for s in lifted.names] == ["local"]
    again = ir.parse(str(lifted), names=lifted.names)
    assert str(again) == str(lifted)
    cute.simulate(ir.to_kernel(again))[1, 1](out)
    assert out[0] == 5


@pytest.mark.parametrize("names", ["f", [1], {"f": 1}, {1: 2}], ids=repr)
def test_names_are_a_mapping_of_symbols_or_modules(names):
    with pytest.raises(cute.CuteError, match=r"names: .*give"):
        ir.parse(module_of(), names=names)


def test_the_command_line_imports_the_modules_that_it_is_given(tmp_path, monkeypatch, capsys):
    (tmp_path / "my_ir_names.py").write_text("def f():\n    return 7\n")
    monkeypatch.syspath_prepend(tmp_path)
    file = Path(tmp_path / "k.mlir")
    file.write_text(module_of('%z = numba_cute.call @"my_ir_names:f"'))
    assert main(["ir", str(file)]) == 1 and "hangs on" in capsys.readouterr().err
    assert "my_ir_names" not in sys.modules
    assert main(["ir", str(file), "--module", "my_ir_names"]) == 0 and '"7"' in capsys.readouterr().out
    assert main(["ir", str(file), "--module", "no_such_module"]) == 1
    assert "--module no_such_module: No module named" in capsys.readouterr().err
