# SPDX-License-Identifier: Apache-2.0
"""Check `assert` in each thread: in the twin that `cute.debug` compiles of a kernel, and there alone."""

from __future__ import annotations

import json
from typing import Any

from ...seam.ground.packages import is_library_file
from . import llvmlite as ir
from .builder import Builder
from .within import Within

ASSERTS = Within()
MARK = "// numba_cute.assert "
"""Begins what stands in PTX for an exception that a thread raises: its class and message, as JSON in hexadecimal."""


def mark_raised(builder: Builder, kind: type, args: Any, file: str) -> None:
    """Leave a mark in the code where a thread of a twin raises an exception in the user's file."""
    if not ASSERTS or is_library_file(file):
        return
    said = [kind.__name__, ", ".join(map(str, args or ()))]
    text = MARK + json.dumps(said).encode().hex()
    builder.call(ir.InlineAsm(ir.FunctionType(ir.VoidType(), []), text, "", side_effect=True), [])
