# SPDX-License-Identifier: Apache-2.0
"""The record of how each operation of the IR is executed, as text that is read and edited.

A .mlir file has a room's operations that a kernel here is made of (`CALLS`): texts apart by an empty line, each of
which ends with its operation. tests.txt (`TESTS`) has operations under the test whose kernel executes them, lowered.txt
(`LOWERED`) those that do by way of `lower-to-nvgpu`; never.txt (`NEVER`) has the others, under the reason.
"""

import re
from collections.abc import Iterable
from pathlib import Path

FOLDER = Path(__file__).parent
_LAST = re.compile(r"(?:%\w+ = )?(numba_cute\.[\w.]+).*\Z")


def _calls() -> dict[str, str]:
    texts = [text for file in FOLDER.glob("*.mlir") for text in file.read_text().strip().split("\n\n")]
    return _each_once((_LAST.match(text.splitlines()[-1])[1], text) for text in texts)


def _under(file: str) -> dict[str, str]:
    """What an operation stands under: names are indented."""
    found, head = [], ""
    for line in (FOLDER / file).read_text().splitlines():
        if line.startswith(" "):
            found.append((f"numba_cute.{line.strip()}", head))
        else:
            head = line
    return _each_once(found)


def _each_once(found: Iterable[tuple[str, str]]) -> dict[str, str]:
    out: dict[str, str] = {}
    for name, text in sorted(found):
        assert name not in out, f"tests/ir/executed: {name} stands there twice"
        out[name] = text
    return out


CALLS, TESTS, LOWERED, NEVER = _calls(), _under("tests.txt"), _under("lowered.txt"), _under("never.txt")
