# SPDX-License-Identifier: Apache-2.0
"""Texts of the published dialect and of what the CuTe DSL prints beside it, and what reads and prints them."""

from __future__ import annotations

import functools

from xdsl.context import Context

import numba_cute as cute
from numba_cute.ir.dialect import modules
from tests import printed_ir


def texts() -> list[str]:
    """Return right texts: one of each operation that the CuTe DSL prints, of each part of a tensor, and a kernel."""
    from tests.ir.dialect import test_partitions as parts, test_printed_operations as own

    lines = [(own.name_of(line), line) for line in own.lines(own.WRITTEN)]
    lines += [(parts.name_of(line), f"%r = {line}") for line in parts.lines(parts.TOLD)]
    kernel = "\n".join(own.lines(own.KERNEL))
    return [kernel, *(printed_ir.module_of(name, line) for name, line in lines)]


@functools.cache
def _context() -> Context:
    return modules.context()


def read(data: bytes) -> None:
    """Read a text as the tools do. Raises CuteError for one that is wrong."""
    found = modules.read(data.decode("utf-8", "surrogateescape"), _context())
    if found.op is None or found.problems:
        raise cute.CuteError(found.problems[0].message)
    printed = modules.printed(found.op)
    assert _again(printed) == printed, "what is read again is another"
    generic = _again(modules.printed(found.op, generic=True), generic=True)  # it does not tell how results are called
    assert _again(generic, generic=True) == generic, "what is read again is another"


def _again(text: str, generic: bool = False) -> str:
    found = modules.read(text, _context())
    assert found.op is not None and not found.problems, "what is printed is not read again"
    return modules.printed(found.op, generic=generic)
