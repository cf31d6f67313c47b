# SPDX-License-Identifier: Apache-2.0
"""The machine code of launches, and what it calls of Python."""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

from ....seam.hooks.recording import ACTIVE
from . import casting, words
from .language import Code, Foreign, python_api

MARK = "_cute_cast"
"""The attribute of an object that says which template it was cast from."""
_NAMES = {"DTYPE": "dtype", "DIVISOR": "divisor", "VALUE": "value"}
_NAMES |= {"MARK": MARK, "ITERATOR": "iterator", "ADDRESS": "address", "DICT": "__dict__"}
"""Attributes that machine code asks for: its names for them, and theirs."""
API = {
    "Py_IncRef": "void i64", "Py_DecRef": "void i64", "PyErr_Clear": "void", "PyErr_Occurred": "i64",
    "PyLong_AsVoidPtr": "i64 i64", "PyLong_AsLongLong": "i64 i64", "PyLong_AsUnsignedLongLong": "i64 i64",
    "PyFloat_AsDouble": "f64 i64", "PyNumber_Index": "i64 i64", "PyObject_GetAttr": "i64 i64 i64",
    "PyTuple_GetItem": "i64 i64 i64", "PyTuple_Size": "i64 i64", "PyBytes_AsString": "i64 i64",
    "PyObject_CallNoArgs": "i64 i64", "PyObject_Call": "i64 i64 i64 i64",
    "PyTuple_New": "i64 i64", "PyTuple_SetItem": "i32 i64 i64 i64", "PyBytes_FromStringAndSize": "i64 i64 i64",
    "PyDict_New": "i64", "PyDict_Copy": "i64 i64", "PyDict_GetItem": "i64 i64 i64", "PyDict_SetItem": "i32 i64 i64 i64",
    "PyDict_Size": "i64 i64", "PyDict_Next": "i32 i64 i64 i64 i64",
    "PyLong_FromLongLong": "i64 i64", "PyType_GenericAlloc": "i64 i64 i64", "PyObject_GenericGetDict": "i64 i64 i64",
    "PyObject_GenericSetAttr": "i32 i64 i64 i64",
    "PyEval_SaveThread": "i64", "PyEval_RestoreThread": "void i64",
}  # fmt: skip
"""Functions of Python's C API that are symbols of every Python that is promised: result and parameters."""


_keeper: list[Callable[[str, Callable[[], bytes]], bytes]] = []


@functools.cache
def code(module: Any = words) -> Any:
    """Make the machine code of a module's functions of words, once."""
    foreign = {n: Foreign(python_api(n), *kinds.split()) for n, kinds in API.items()}
    fixed = {"NONE": id(None), "TRUE": id(True), "FALSE": id(False), "RECORDED": ctypes.addressof(ACTIVE)}
    fixed |= {name: id(sys.intern(text)) for name, text in _NAMES.items()}
    fixed |= {"INT_CLASS": id(int), "TUPLE_CLASS": id(tuple)}
    functions = [f for f in vars(module).values() if isinstance(f, FunctionType)]
    kept = functools.partial(_keeper[-1], module.__name__) if _keeper else None
    return Code(functions, foreign, fixed, kept)


def keep_by(keeper: Callable[[str, Callable[[], bytes]], bytes]) -> None:
    """Have `keeper(module's name, make)` give code that is made later: what `make()` gives, which it may have kept."""
    _keeper[:] = [keeper]


FASTCALL_WITH_NAMES, NO_ARGUMENTS = 0x82, 0x4
"""Python's methodobject.h: METH_FASTCALL | METH_KEYWORDS, METH_NOARGS."""


class _Method(ctypes.Structure):
    """Python's PyMethodDef."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


_METHODS: dict[str, _Method] = {}


def function(name: str, state: tuple[Any, ...], flags: int = FASTCALL_WITH_NAMES) -> Any:
    """A function of Python that calls machine code with `state`, whose first item is an address."""
    method = _METHODS.get(name)
    if method is None:
        module = next(m for m in (words, casting) if hasattr(m, name))
        method = _METHODS[name] = _Method(name.encode(), code(module).address(name), flags, None)
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return new(ctypes.addressof(method), state, None)
