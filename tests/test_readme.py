# SPDX-License-Identifier: Apache-2.0
"""The README's kernel runs as it stands there."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_readme_kernel_runs_in_the_simulator_and_is_right(tmp_path):
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    file = tmp_path / "readme.py"  # a file, so that errors and Numba find the source
    file.write_text(code)
    exec(compile(code, str(file), "exec"), {"__name__": "readme"})


def test_readme_names_exactly_two_commands():
    text = (ROOT / "README.md").read_text()
    assert re.findall(r"^    make (\w+)", text, re.MULTILINE) == ["demo", "test"]
