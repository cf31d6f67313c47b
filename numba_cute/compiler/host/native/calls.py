# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: F821
# mypy: ignore-errors
"""Work on Python's objects that all machine code shares, as functions of words (language.py): never run as Python."""

from __future__ import annotations


def nothing():
    Py_IncRef(NONE)
    return NONE


def refused():
    PyErr_Clear()
    return 0


def released(obj, result):
    Py_DecRef(obj)
    return result


def named_arguments(names, args):
    """A dictionary of the arguments that lie from `args` on, by their names, a tuple; 0 where it cannot be made."""
    made = PyDict_New()
    count = PyTuple_Size(names)
    i = 0
    while made != 0 and i < count:
        if PyDict_SetItem(made, PyTuple_GetItem(names, i), load64(args + 8 * i)) != 0:
            return released(made, 0)
        i += 1
    return made


def call_python(function, args, count, names):
    """Call a Python function as `PyObject_Vectorcall` does, which is not a symbol of Python 3.10."""
    given = PyTuple_New(count)
    if given == 0:
        return 0
    i = 0
    while i < count:
        Py_IncRef(load64(args + 8 * i))
        PyTuple_SetItem(given, i, load64(args + 8 * i))
        i += 1
    if names == 0:
        return released(given, PyObject_Call(function, given, 0))
    named = named_arguments(names, args + 8 * count)
    if named == 0:
        return released(given, 0)
    made = PyObject_Call(function, given, named)
    Py_DecRef(named)
    return released(given, made)


def call_with(function, obj):
    """Call a Python function with one argument."""
    args = scratch(8)
    store64(args, obj)
    return call_python(function, args, 1, 0)
