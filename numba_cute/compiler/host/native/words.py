# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: F821
# mypy: ignore-errors
"""The work of a launch, as functions of words (language.py): never run as Python.

A site, where kernels are launched, has plans. A plan is of one specialisation of the kernel: steps, which each check an
argument and pack it, and what the driver is given. The first plan that all arguments suit is launched; if none is, or
the driver refuses, the site's Python function is called with the same arguments, and says what is wrong or adds a plan.
Nothing of an argument is kept: references are borrowed from the caller, who holds the arguments.

A step's result: 1, it suits; 0, it does not; 2, an exception is set.
"""

from __future__ import annotations

from .calls import call_python, call_with, named_arguments, nothing, refused, released  # noqa: F401

# A site's words.
FIRST, SLOW, SITE_WORDS = 0, 8, 2
# A plan's words.
NEXT, ARGUMENTS, STEPS, STEP_COUNT, TEMPLATE, SIZE, OFFSETS, PARAMETERS = range(0, 64, 8)
CONFIG, KERNEL, CONTEXT, TIED, STREAMS, STREAM_COUNT, POINTERS, AGAIN = range(64, 128, 8)
DRIVER, LAUNCHED, GRAPH, GRAPH_LAUNCH, CAPTURES = range(128, 168, 8)
PLAN_WORDS = 21
# The driver's functions, as words.
LAUNCH, CURRENT, PUSH, POP = range(0, 32, 8)
# A stream's words: the function of DLPack that tells it, or one of Python; and the device.
TELLS, CALLS, ON, STREAM_SIZE = 0, 8, 16, 24
# A step's words.
KIND, PARENT, INDEX, TYPE, A, B, C, D, E, F, G, OUT = range(0, 96, 8)
STEP_WORDS, STEP_SIZE = 12, 96
TUPLE, SAME, INTEGER, FLOAT, BOOLEAN, EQUAL, REMEMBERED, EXCHANGED, DESCRIBED, ASKED, WATCHED = range(11)
NO_ARGUMENT = -2
"""The parent of a step that is of no argument: of what the step itself names."""
SMALL, UNSIGNED, ABOVE = range(3)
"""The integers that a step takes: those of 63 bits and a sign; those of 64 bits; those above the first."""
OBJECT, INDEXED, SCALAR = range(3)
"""The source of a step's number: the object, its __index__, the value of one of this library's scalars."""
# The words of a description by attributes.
CHECKED, IS, DEVICE, DEVICE_OF, POINTER, POINTER_OF, SHAPE, STRIDES = range(0, 64, 8)
CALLED, UNIT, FALSE_ATTRIBUTE, DESCRIPTION_WORDS = 64, 72, 80, 11
CALL_DEVICE, CALL_POINTER, CALL_STRIDES = 1, 2, 4
IN_C, IN_F, IN_NEITHER, IN_ANY = range(4)
MOST_DIMS = 32
DL_CUDA = 2
MINUS_ONE = -4616189618054758400
"""The bits of -1.0, which is what `PyFloat_AsDouble` gives for an error."""


def stored(out, size, value):
    if size == 8:
        store64(out, value)
    elif size == 4:
        store32(out, value)
    elif size == 2:
        store16(out, value)
    else:
        store8(out, value)
    return 1


def number_of(step, obj):
    """A new reference to the number that an argument is; 0 if it is another."""
    source = load64(step + E)
    if source == OBJECT:
        Py_IncRef(obj)
        return obj
    if source == INDEXED:
        found = PyNumber_Index(obj)
        if found == 0:
            PyErr_Clear()
        return found
    dtype = PyObject_GetAttr(obj, DTYPE)
    if dtype == 0:
        return refused()
    Py_DecRef(dtype)
    divisor = PyObject_GetAttr(obj, DIVISOR)
    if divisor == 0:
        return refused()
    promised = PyLong_AsLongLong(divisor)
    Py_DecRef(divisor)
    if dtype != load64(step + F) or promised != 1:
        return 0
    found = PyObject_GetAttr(obj, VALUE)
    if found == 0:
        PyErr_Clear()
    return found


def integer(step, obj, out):
    number = number_of(step, obj)
    if number == 0:
        return 0
    value = 0
    which = load64(step + G)
    if which:
        value = PyLong_AsUnsignedLongLong(number)
    else:
        value = PyLong_AsLongLong(number)
    Py_DecRef(number)
    if value == -1 and PyErr_Occurred():
        return refused()
    if which == SMALL and (value < load64(step + B) or value > load64(step + C)):
        return 0
    if which == ABOVE and value >= 0:
        return 0
    return stored(out, load64(step + A), value)


def floating(step, obj, out):
    number = number_of(step, obj)
    if number == 0:
        return 0
    value = PyFloat_AsDouble(number)
    Py_DecRef(number)
    if value == MINUS_ONE and PyErr_Occurred():
        return refused()
    if load64(step + A) == 4:
        return stored(out, 4, narrowed(value))
    return stored(out, 8, value)


def equal(step, obj):
    value = PyLong_AsLongLong(obj)
    if value == -1 and PyErr_Occurred():
        return refused()
    return value == load64(step + A)


def remembered(step, obj, out):
    """Read the parameters that an object of this library remembers of itself; if none, a Python function gives them."""
    held = PyObject_GetAttr(obj, load64(step + A))
    if held == 0:
        PyErr_Clear()
        held = call_with(load64(step + D), obj)
        if held == 0:
            return 2
        if held == NONE:
            return released(held, 0)
    data = PyBytes_AsString(held)
    if data == 0:
        PyErr_Clear()
        return released(held, 0)
    same = load64(data) == load64(step + B) and load64(data + 8) == load64(step + E)
    if same:
        copy(out, data + 64, load64(step + C))
    return released(held, same)


def asked(step, obj, out):
    """Parameters that a Python function tells; None if the argument is another."""
    held = call_with(load64(step + D), obj)
    if held == 0:
        return 2
    if held == NONE:
        return released(held, 0)
    data = PyBytes_AsString(held)
    if data == 0:
        PyErr_Clear()
        return released(held, 0)
    copy(out, data, load64(step + C))
    return released(held, 1)


def watched(step):
    """Say whether an attribute is the same object as before."""
    found = PyObject_GetAttr(load64(step + A), load64(step + B))
    if found == 0:
        return refused()
    return released(found, found == load64(step + C))


def array(out, data, shape, strides, dims, size, unit, want):
    """Pack an array as Numba's kernels take it, if its strides are as they were compiled for."""
    count = 1
    in_f = 1
    i = 0
    while i < dims:
        n = load64(shape + 8 * i)
        d = load64(strides + 8 * i) * unit
        if n != 1 and d != count * size:
            in_f = 0
        count = count * n
        store64(out + 40 + 8 * i, n)
        store64(out + 40 + 8 * dims + 8 * i, d)
        i += 1
    if want != IN_ANY:
        if count == 0:
            return 0
        in_c = 1
        step = size
        while i:
            i -= 1
            n = load64(shape + 8 * i)
            if n != 1 and load64(strides + 8 * i) * unit != step:
                in_c = 0
            step = step * n
        found = IN_NEITHER
        if in_c:
            found = IN_C
        elif in_f:
            found = IN_F
        if found != want:
            return 0
    store64(out + 16, count)
    store64(out + 32, data)
    return 1


def is_false(obj, name):
    if name == 0:
        return 1
    flag = PyObject_GetAttr(obj, name)
    if flag == 0:
        return refused()
    return released(flag, flag == FALSE)


def exchanged(step, obj, out):
    """An array that DLPack's exchange functions describe."""
    view = scratch(64)
    if call32(load64(step + A), obj, view) != 0:
        return refused()
    if load32(view + 8) != DL_CUDA or load32(view + 12) != load64(step + C):
        return 0
    if load32(view + 20) != load64(step + B) or load32(view + 16) != load64(step + D):
        return 0
    if load64(view + 32) == 0:
        return 0
    if is_false(obj, load64(step + G)) == 0:
        return 0
    size = load64(step + F)
    where = load64(view) + load64(view + 40)
    return array(out, where, load64(view + 24), load64(view + 32), load64(step + D), size, size, load64(step + E))


def attribute(obj, name, called):
    """A new reference to an attribute of an object, or to what it gives when it is called; 0 if there is none."""
    found = PyObject_GetAttr(obj, name)
    if found == 0:
        return refused()
    if called == 0:
        return found
    told = PyObject_CallNoArgs(found)
    Py_DecRef(found)
    if told == 0:
        PyErr_Clear()
    return told


def word_at(obj, first, second, called, place):
    """Put the integer at `obj.first` or `obj.first.second` in its place; 0 if there is none."""
    found = attribute(obj, first, called)
    if found == 0:
        return 0
    if second:
        inner = attribute(found, second, 0)
        Py_DecRef(found)
        if inner == 0:
            return 0
        found = inner
    value = PyLong_AsLongLong(found)
    Py_DecRef(found)
    if value == -1 and PyErr_Occurred():
        return refused()
    store64(place, value)
    return 1


def words_of(numbers, dims, out):
    """Put the integers of a tuple in their places; 0 if it is another."""
    if numbers == 0:
        return 0
    if PyTuple_Size(numbers) != dims:
        PyErr_Clear()
        return released(numbers, 0)
    i = 0
    while i < dims:
        value = PyLong_AsLongLong(PyTuple_GetItem(numbers, i))
        if value == -1 and PyErr_Occurred():
            PyErr_Clear()
            return released(numbers, 0)
        store64(out + 8 * i, value)
        i += 1
    return released(numbers, 1)


def described(step, obj, out):
    """An array that its attributes describe."""
    how = load64(step + A)
    called = load64(how + CALLED)
    kind = attribute(obj, load64(how + CHECKED), 0)
    if kind == 0:
        return 0
    Py_DecRef(kind)
    if kind != load64(how + IS):
        return 0
    if is_false(obj, load64(how + FALSE_ATTRIBUTE)) == 0:
        return 0
    words = scratch(1024)
    if load64(how + DEVICE):
        if word_at(obj, load64(how + DEVICE), load64(how + DEVICE_OF), called & CALL_DEVICE, words) == 0:
            return 0
        if load64(words) != load64(step + C):
            return 0
    if word_at(obj, load64(how + POINTER), load64(how + POINTER_OF), called & CALL_POINTER, words) == 0:
        return 0
    dims = load64(step + D)
    shape = words + 64
    strides = words + 512
    if words_of(attribute(obj, load64(how + SHAPE), 0), dims, shape) == 0:
        return 0
    if words_of(attribute(obj, load64(how + STRIDES), called & CALL_STRIDES), dims, strides) == 0:
        return 0
    size = load64(step + F)
    return array(out, load64(words), shape, strides, dims, size, load64(how + UNIT), load64(step + E))


def packed(step, obj, out):
    kind = load64(step + KIND)
    if kind == EXCHANGED:
        return exchanged(step, obj, out)
    if kind == REMEMBERED:
        return remembered(step, obj, out)
    if kind == INTEGER:
        return integer(step, obj, out)
    if kind == FLOAT:
        return floating(step, obj, out)
    if kind == SAME:
        return obj == load64(step + A)
    if kind == EQUAL:
        return equal(step, obj)
    if kind == BOOLEAN:
        return stored(out, 1, obj == TRUE)
    if kind == DESCRIBED:
        return described(step, obj, out)
    if kind == TUPLE:
        return PyTuple_Size(obj) == load64(step + A)
    if kind == WATCHED:
        return watched(step)
    return asked(step, obj, out)


def stream_now(of, place):
    """Put the stream that a library is using in its place."""
    tells = load64(of + TELLS)
    if tells:
        if call32(tells, DL_CUDA, load64(of + ON), place) != 0:
            return refused()
        return 1
    found = PyObject_CallNoArgs(load64(of + CALLS))
    if found == 0:
        return 2
    value = PyLong_AsLongLong(found)
    Py_DecRef(found)
    if value == -1 and PyErr_Occurred():
        return refused()
    store64(place, value)
    return 1


def captured(plan, stream):
    """Say whether a stream is being captured, where the kernel itself is launched: no graph goes into another."""
    place = scratch(8)
    store64(place, 0)
    return call32(load64(plan + CAPTURES), stream, place) != 0 or load32(place) != 0


def submitted(plan, pointers):
    """Launch: in the stream that the arguments' libraries are using, if none was named; on the arguments' device."""
    config = scratch(64)
    copy(config, load64(plan + CONFIG), 56)
    place = scratch(8)
    of = load64(plan + STREAMS)
    left = load64(plan + STREAM_COUNT)
    first = 1
    while left:
        done = stream_now(of, place)
        if done != 1:
            return done
        if first:
            store64(config + 32, load64(place))
        elif load64(place) != load64(config + 32):
            return 0
        first = 0
        of += STREAM_SIZE
        left -= 1
    driver = load64(plan + DRIVER)
    if call32(load64(driver + CURRENT), place) != 0:
        return 0
    pushed = 0
    if load64(place) != load64(plan + CONTEXT):
        if load64(plan + TIED) == 0:
            return 0
        if call32(load64(driver + PUSH), load64(plan + CONTEXT)) != 0:
            return 0
        pushed = 1
    thread = PyEval_SaveThread()
    result = 0
    if load64(plan + GRAPH) and captured(plan, load64(config + 32)) == 0:
        result = call32(load64(plan + GRAPH_LAUNCH), load64(plan + GRAPH), load64(config + 32))
    else:
        result = call32(load64(driver + LAUNCH), config, load64(plan + KERNEL), pointers, 0)
    PyEval_RestoreThread(thread)
    if pushed:
        call32(load64(driver + POP), place)
    if result:
        return 0
    store64(plan + LAUNCHED, load64(plan + LAUNCHED) + 1)
    return 1


def attempt(plan, args, count):
    """Launch a plan, if the arguments suit it."""
    if count != load64(plan + ARGUMENTS):
        return 0
    steps = load64(plan + STEP_COUNT)
    values = scratch(load64(plan + SIZE))
    objects = scratch(8 * steps + 8)
    copy(values, load64(plan + TEMPLATE), load64(plan + SIZE))
    step = load64(plan + STEPS)
    i = 0
    while i < steps:
        parent = load64(step + PARENT)
        obj = 0
        if parent == NO_ARGUMENT:
            obj = load64(step + C)
        elif parent < 0:
            obj = load64(args + 8 * load64(step + INDEX))
        else:
            obj = PyTuple_GetItem(load64(objects + 8 * parent), load64(step + INDEX))
        store64(objects + 8 * i, obj)
        kind = load64(step + TYPE)
        if kind != 0 and load64(obj + 8) != kind:
            return 0
        done = packed(step, obj, values + load64(step + OUT))
        if done != 1:
            return done
        step += STEP_SIZE
        i += 1
    many = load64(plan + PARAMETERS)
    pointers = scratch(8 * many + 8)
    offsets = load64(plan + OFFSETS)
    i = 0
    while i < many:
        store64(pointers + 8 * i, values + load64(offsets + 8 * i))
        i += 1
    return submitted(plan, pointers)


def launch(self, args, count, names):
    """The call of a site: Python's METH_FASTCALL | METH_KEYWORDS."""
    site = PyLong_AsVoidPtr(PyTuple_GetItem(self, 0))
    if names == 0 and load64(RECORDED) == 0:
        plan = load64(site + FIRST)
        while plan:
            done = attempt(plan, args, count)
            if done == 1:
                return nothing()
            if done == 2:
                return 0
            plan = load64(plan + NEXT)
    return call_python(load64(site + SLOW), args, count, names)


def again(self, unused):
    """The call of a plan whose arguments were packed before: Python's METH_NOARGS."""
    plan = PyLong_AsVoidPtr(PyTuple_GetItem(self, 0))
    done = submitted(plan, load64(plan + POINTERS))
    if done == 1:
        return nothing()
    if done == 2:
        return 0
    return PyObject_CallNoArgs(load64(plan + AGAIN))
