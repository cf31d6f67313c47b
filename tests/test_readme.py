# SPDX-License-Identifier: Apache-2.0
"""The README's kernel runs as it stands there."""

import re
from pathlib import Path

import numba_cute as cute

ROOT = Path(__file__).resolve().parents[1]


def test_readme_kernel_is_right_in_the_simulator_and_compiles(tmp_path):
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    file = tmp_path / "readme.py"  # a file, so that errors and Numba find the source
    file.write_text(code)
    scope = {"__name__": "readme"}
    exec(compile(code, str(file), "exec"), scope)
    compiled = cute.compile(scope["total"], (scope["tma"], scope["source"], scope["out"]), arch="sm_90a")
    assert compiled.resources.local == 0


def test_the_port_in_the_documentation_runs_in_the_simulator_and_compiles(tmp_path):
    page = (ROOT / "docs" / "differences.md").read_text().partition("## Porting from the CuTe DSL")[2]
    file = tmp_path / "port.py"
    file.write_text(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1])
    scope = {"__name__": "port"}
    exec(compile(file.read_text(), str(file), "exec"), scope)
    assert (scope["out"] == scope["x"] / 2).all() and scope["compiled"].kernels[0].resources.local == 0


def test_readme_names_exactly_two_commands():
    text = (ROOT / "README.md").read_text()
    assert re.findall(r"^    make (\w+)", text, re.MULTILINE) == ["demo", "test"]
