# SPDX-License-Identifier: Apache-2.0
"""examples/debugging.md: its kernels give its reports, and its fixes silence them.

`python -m tests.sim.test_debugging` writes the reports into the page."""

import linecache
import re
from pathlib import Path

import pytest

from numba_cute.sim import SimError

PAGE = Path(__file__).resolve().parents[2] / "examples" / "debugging.md"
BLOCK = re.compile(r"```python(?: (\w+))?\n(.*?)```", re.DOTALL)
FENCE = 'arch.fence_proxy("async.shared", space="cta")'
MENDS = {
    "hangs": ("CooperativeGroup(THREAD, 3)", "CooperativeGroup(THREAD, 2)"),
    "numbers": (
        "    arch.sync_threads()",
        '    arch.fence_proxy("async.shared", space="cta")\n    arch.sync_threads()',
    ),
    "late": ("    else:\n        ready.arrive()", "    else:\n        ready.arrive_and_wait()"),
}


def blocks():
    return {name: code for name, code in BLOCK.findall(PAGE.read_text())}


def execute(name, code):
    """Run a block after the common one, as the file `name`.py."""
    space = {}
    for file, text in (("common.py", blocks()[""]), (f"{name}.py", code)):
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        exec(compile(text, file, "exec"), space)


def report(name):
    with pytest.raises(SimError) as caught:
        execute(name, blocks()[name])
    return f"{type(caught.value).__name__}: {caught.value}\n"


@pytest.mark.parametrize("name", MENDS)
def test_the_page_shows_the_report(name):
    shown = re.search(rf"```text {name}\n(.*?)```", PAGE.read_text(), re.DOTALL)[1]
    assert shown == report(name)


@pytest.mark.parametrize("name", MENDS)
def test_the_fix_silences_it(name):
    old, new = MENDS[name]
    code = blocks()[name]
    assert old in code
    execute(name, code.replace(old, new))


def write_reports():
    text = PAGE.read_text()
    for name in MENDS:
        head = f"```text {name}\n"
        text = re.sub(rf"{head}.*?```", lambda _, n=name, h=head: f"{h}{report(n)}```", text, flags=re.DOTALL)
    PAGE.write_text(text)


if __name__ == "__main__":
    write_reports()
