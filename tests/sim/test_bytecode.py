# SPDX-License-Identifier: Apache-2.0
"""Code that is taken apart and put together again is what it was: its instructions, jumps, lines and handlers."""

import argparse
import ast
import dataclasses
import dis
import inspect
import types

import pytest

from numba_cute.compiler.bridge import code_reads, reach
from numba_cute.seam.ground.bytecode import _named, names_in, operations
from numba_cute.sim.python.jitted.bytecode import decode, encode


def codes(code):
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from codes(const)


def of_module(module):
    return codes(compile(inspect.getsource(module), module.__file__, "exec", dont_inherit=True))


def table(code):
    """Return what code holds beside its instructions, as Python reads it."""
    places = list(code.co_positions()) if hasattr(code, "co_positions") else list(code.co_lines())
    return places, getattr(code, "co_exceptiontable", b"")


def _meant(code):
    """Return instructions and their arguments: Python 3.10 leaves something in the place of those of NOP."""
    return [(i.offset, i.opname, i.arg) for i in dis.get_instructions(code)]


@pytest.mark.parametrize("module", [argparse, ast, dataclasses], ids=lambda m: m.__name__)
def test_code_put_together_again_is_what_it_was(module):
    for code in of_module(module):
        again = encode(code, decode(code), code.co_consts, 0)
        assert _meant(again) == _meant(code), code
        assert table(again) == table(code), code


@pytest.mark.parametrize("module", [code_reads, reach, dis, argparse, inspect])
def test_names_are_those_of_the_operations(module):
    """However they are found: in the bytes alone, as for keys of the disk cache, or among all that code does."""
    found = 0
    for code in of_module(module):
        assert names_in(code) == tuple(_named(operations(code)))
        found += len(names_in(code))
    assert found > 100
