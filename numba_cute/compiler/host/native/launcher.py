# SPDX-License-Identifier: Apache-2.0
"""The machine code of launches, and what it calls of Python."""

from __future__ import annotations

import ctypes
import functools
from types import FunctionType
from typing import Any

from ....seam.recording import ACTIVE
from . import words
from .language import Code, Foreign, python_api

_NAMES = ("dtype", "divisor", "value")
_API = {
    "Py_IncRef": "void i64", "Py_DecRef": "void i64", "PyErr_Clear": "void", "PyErr_Occurred": "i64",
    "PyLong_AsVoidPtr": "i64 i64", "PyLong_AsLongLong": "i64 i64", "PyLong_AsUnsignedLongLong": "i64 i64",
    "PyFloat_AsDouble": "f64 i64", "PyNumber_Index": "i64 i64", "PyObject_GetAttr": "i64 i64 i64",
    "PyTuple_GetItem": "i64 i64 i64", "PyTuple_Size": "i64 i64", "PyBytes_AsString": "i64 i64",
    "PyObject_CallNoArgs": "i64 i64", "PyObject_CallOneArg": "i64 i64 i64",
    "PyObject_Vectorcall": "i64 i64 i64 i64 i64", "PyEval_SaveThread": "i64", "PyEval_RestoreThread": "void i64",
}  # fmt: skip
"""Functions of Python's C API: result and parameters."""
_FUNCTIONS = tuple(f for f in vars(words).values() if isinstance(f, FunctionType))


@functools.cache
def code() -> Any:
    """Make the machine code, once."""
    _check_objects()
    foreign = {n: Foreign(python_api(n), *kinds.split()) for n, kinds in _API.items()}
    fixed = {"NONE": id(None), "TRUE": id(True), "FALSE": id(False), "RECORDED": ctypes.addressof(ACTIVE)}
    fixed |= {n.upper(): id(_interned(n)) for n in _NAMES}
    return Code(_FUNCTIONS, foreign, fixed)


_KEPT: dict[str, str] = {}


def _interned(name: str) -> str:
    return _KEPT.setdefault(name, name)


def _check_objects() -> None:
    """See that an object's second word is its type, which the machine code reads."""
    for obj in (1, 1.0, (), code, None, words):
        assert ctypes.c_void_p.from_address(id(obj) + 8).value == id(type(obj))
