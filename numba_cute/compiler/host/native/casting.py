# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: F821
# mypy: ignore-errors
"""Make objects of the host again for other addresses, as functions of words (language.py): never run as Python.

A template (templates.py) is of the objects that a function gives for arrays of some kinds. Its work is steps, which
each make an object; the last one's is the result. Templates of a function of arrays are found by what DLPack's exchange
functions say of these and by its other arguments; those of what is made of a tensor among the children of that tensor's
template, by the function and its other arguments. Where there is none, or it does not suit, the function runs as
Python, and says what is wrong or leaves a template behind.
"""

from __future__ import annotations

from .calls import call_python, named_arguments, nothing, refused, released  # noqa: F401
from .reading import READING_SIZE, all_lead_there, has_items, leads_there, reads_the_same  # noqa: F401

# The state's words: Python functions that are called for a tensor that has no template, or say whether two arguments
# are alike; the kinds of arrays; the class of tensors; the frozen classes of arguments.
SLOW_DERIVED, ALIKE, KINDS, TENSOR, CLASSES = range(0, 40, 8)
STATE_WORDS = 5
# A function's words: what it reads (reading.py); the state; what is called where there is no template; its templates.
STATE, SLOW_FUNCTION, ROOTS = range(READING_SIZE, READING_SIZE + 24, 8)
BUCKETS = 256
FUNCTION_WORDS = READING_SIZE // 8 + 2 + BUCKETS
# A kind's words: its class, the function that views its arrays, and the name of a method that says whether their memory
# holds other numbers, or 0.
NEXT_KIND, CLASS, VIEW, OTHER_NUMBERS, KIND_WORDS = 0, 8, 16, 24, 4
# A frozen class's words: it, and the names of its fields, a tuple.
NEXT_CLASS, OF, FIELDS, CLASS_WORDS = 0, 8, 16, 3
# A template's words: where the next one is; of what function of a tensor; how many arguments; these; its work; of each
# array the bits that must be 0 in its address; how many arrays; the templates of what is made of it.
NEXT, FUNCTION, COUNT, GIVEN, WORK, MASKS, ARRAYS, CHILDREN = range(0, 64, 8)
TEMPLATE_WORDS = 8
# The words of an argument of a function of arrays: an array's class, or 0 and the argument itself; what is said of it.
ARRAY_CLASS, ITSELF, ELEMENT, WHERE, DIMS, FORM, ALIGNED, ARGUMENT_SIZE = range(0, 64, 8)
ALIGNMENT = 16
"""The alignment that divides arrays into kinds: they begin at a multiple of this many bytes, or not."""
# A step's words, and its kinds.
KIND, A, B, C, D, CAST_WORDS, CAST_SIZE = 0, 8, 16, 24, 32, 5, 40
NUMBER, TUPLE, PART, BYTES, SLOTTED, OBJECT = range(6)
# The words of a field that a step sets: its name; where its value comes from; which, or what.
NAME, SOURCE, WHICH, FIELD_SIZE = 0, 8, 16, 24
CONSTANT, MADE, GIVEN_OBJECT = range(3)
# The words of what an address changes of bytes: the place, whose address, how far from it; of a tensor map where it
# lies as it was last, for which address, and the driver's function that changes its address.
AT, WHOSE, DELTA, MAP, LAST, REPLACE, PATCH_SIZE = range(0, 56, 8)
MAP_BYTES = 128


def undone(made, count):
    """Let go of what was made: nothing is to be cast here."""
    PyErr_Clear()
    while count:
        count -= 1
        Py_DecRef(load64(made + 8 * count))
    return 0


def tuple_of(step, objs, made):
    left = load64(step + B)
    new = PyTuple_New(left)
    if new == 0:
        return 0
    fields = load64(step + A)
    while left:
        left -= 1
        value = field_value(fields + FIELD_SIZE * left, objs, made)
        Py_IncRef(value)
        PyTuple_SetItem(new, left, value)
    return new


def bytes_of(step, bases):
    """Return the bytes that a launch packs of the object, with the address at its places, or in a tensor map."""
    made = PyBytes_FromStringAndSize(load64(step + A), load64(step + B))
    if made == 0:
        return 0
    data = PyBytes_AsString(made)
    patch = load64(step + C)
    left = load64(step + D)
    while left:
        address = load64(bases + 8 * load64(patch + WHOSE)) + load64(patch + DELTA)
        held = load64(patch + MAP)
        if held:
            if load64(patch + LAST) != address:
                store64(patch + LAST, 0)
                if call32(load64(patch + REPLACE), held, address) != 0:
                    return released(made, 0)
                store64(patch + LAST, address)
            copy(data + load64(patch + AT), held, MAP_BYTES)
        else:
            store64(data + load64(patch + AT), address)
        patch += PATCH_SIZE
        left -= 1
    return made


def field_value(field, objs, made):
    source = load64(field + SOURCE)
    if source == CONSTANT:
        return load64(field + WHICH)
    if source == MADE:
        return load64(made + 8 * load64(field + WHICH))
    return load64(objs + 8 * load64(field + WHICH))


def set_fields(step, held, in_dictionary, objs, made):
    """Set a step's fields, as items of a dictionary or as attributes of an object; gives 0 where one could not be."""
    field = load64(step + B)
    left = load64(step + C)
    while left:
        value = field_value(field, objs, made)
        if in_dictionary:
            failed = PyDict_SetItem(held, load64(field + NAME), value)
        else:
            failed = PyObject_GenericSetAttr(held, load64(field + NAME), value)
        if failed != 0:
            return 0
        field += FIELD_SIZE
        left -= 1
    return 1


def slotted(step, objs, made):
    """An object whose class has slots."""
    new = PyType_GenericAlloc(load64(step + A), 0)
    if new == 0:
        return 0
    if set_fields(step, new, 0, objs, made) == 0:
        return released(new, 0)
    return new


def with_fields(step, objs, made):
    """An object that has a dictionary: a copy of another's, with other values for some of its fields."""
    held = PyDict_Copy(load64(step + D))
    if held == 0:
        return 0
    if set_fields(step, held, 1, objs, made) == 0:
        return released(held, 0)
    new = PyType_GenericAlloc(load64(step + A), 0)
    if new == 0:
        return released(held, 0)
    if PyObject_GenericSetAttr(new, DICT, held) != 0:
        Py_DecRef(held)
        return released(new, 0)
    return released(held, new)


def made_by(step, objs, bases, made):
    """A new reference to what a step makes; 0 if it cannot."""
    kind = load64(step + KIND)
    if kind == NUMBER:
        return PyLong_FromLongLong(load64(bases + 8 * load64(step + B)) + load64(step + A))
    if kind == OBJECT:
        return with_fields(step, objs, made)
    if kind == SLOTTED:
        return slotted(step, objs, made)
    if kind == BYTES:
        return bytes_of(step, bases)
    if kind == PART:
        return PyObject_GetAttr(load64(objs), load64(step + A))
    return tuple_of(step, objs, made)


def instantiate(template, objs, bases):
    """Make a template's result for objects whose memory begins at `bases`: a new reference; 0 if it does not suit."""
    left = load64(template + ARRAYS)
    masks = load64(template + MASKS)
    while left:
        left -= 1
        if load64(bases + 8 * left) & load64(masks + 8 * left):
            return 0
    work = load64(template + WORK)
    count = load64(work)
    made = scratch(8 * count)
    step = work + 8
    i = 0
    while i < count:
        one = made_by(step, objs, bases, made)
        if one == 0:
            return undone(made, i)
        store64(made + 8 * i, one)
        step += CAST_SIZE
        i += 1
    i -= 1
    result = load64(made + 8 * i)
    while i:
        i -= 1
        Py_DecRef(load64(made + 8 * i))
    return result


def cast_one(template, obj, base):
    """Make a template's result for one object."""
    objs = scratch(16)
    store64(objs, obj)
    store64(objs + 8, base)
    return instantiate(template, objs, objs + 8)


def alike_fields(state, a, b, names):
    """Say whether two objects of one frozen class have the same fields."""
    left = PyTuple_Size(names)
    while left:
        left -= 1
        name = PyTuple_GetItem(names, left)
        mine = PyObject_GetAttr(a, name)
        if mine == 0:
            return refused()
        other = PyObject_GetAttr(b, name)
        if other == 0:
            PyErr_Clear()
            return released(mine, 0)
        same = alike(state, mine, other)
        Py_DecRef(mine)
        if released(other, same) == 0:
            return 0
    return 1


def alike(state, a, b):
    """Say whether two arguments give the same result."""
    if a == b:
        return 1
    kind = load64(a + 8)
    if kind != load64(b + 8):
        return 0
    if kind == INT_CLASS:
        value = PyLong_AsLongLong(a)
        if value == -1 and PyErr_Occurred():
            return refused()
        other = PyLong_AsLongLong(b)
        if other == -1 and PyErr_Occurred():
            return refused()
        return value == other
    if kind == TUPLE_CLASS:
        count = PyTuple_Size(a)
        if count != PyTuple_Size(b):
            return 0
        while count:
            count -= 1
            if alike(state, PyTuple_GetItem(a, count), PyTuple_GetItem(b, count)) == 0:
                return 0
        return 1
    one = load64(state + CLASSES)
    while one:
        if load64(one + OF) == kind:
            return alike_fields(state, a, b, load64(one + FIELDS))
        one = load64(one + NEXT_CLASS)
    both = scratch(16)
    store64(both, a)
    store64(both + 8, b)
    found = call_python(load64(state + ALIKE), both, 2, 0)
    if found == 0:
        return refused()
    return released(found, found == TRUE)


def same_form(form, view, dims):
    """Say whether an array has the extents and strides of a template."""
    shape = load64(view + 24)
    strides = load64(view + 32)
    while dims:
        dims -= 1
        if load64(form + 16 * dims) != load64(shape + 8 * dims):
            return 0
        if load64(form + 16 * dims + 8) != load64(strides + 8 * dims):
            return 0
    return 1


def mixed_with(mixed, view):
    """A number of all that is said of some arrays. view: the next one's DLTensor."""
    dims = load32(view + 16)
    shape = load64(view + 24)
    strides = load64(view + 32)
    mixed = mixed * 31 + load32(view + 20) + dims
    while dims:
        dims -= 1
        mixed = (mixed * 31 + load64(shape + 8 * dims)) * 31 + load64(strides + 8 * dims)
    return mixed


def array_kind(state, obj):
    """The kind of arrays that an object is one of; 0 if of none."""
    kind = load64(state + KINDS)
    while kind and load64(kind + CLASS) != load64(obj + 8):
        kind = load64(kind + NEXT_KIND)
    return kind


def has_other_numbers(kind, obj):
    """Say whether an array's memory holds other numbers than the array has."""
    name = load64(kind + OTHER_NUMBERS)
    if name == 0:
        return 0
    asks = PyObject_GetAttr(obj, name)
    if asks == 0:
        PyErr_Clear()
        return 1
    found = PyObject_CallNoArgs(asks)
    Py_DecRef(asks)
    if found == 0:
        PyErr_Clear()
        return 1
    return released(found, found != FALSE)


def begins(view):
    return load64(view) + load64(view + 40)


def suits(state, argument, obj, view, kind):
    """Say whether an argument suits a template's. kind: of arrays; 0 for anything else."""
    if load64(argument + ARRAY_CLASS) == 0:
        return kind == 0 and alike(state, obj, load64(argument + ITSELF))
    if kind == 0 or load64(argument + ARRAY_CLASS) != load64(obj + 8):
        return 0
    dims = load64(argument + DIMS)
    if load64(argument + ELEMENT) != load32(view + 20) or dims != load32(view + 16):
        return 0
    if load64(argument + WHERE) != load64(view + 8):
        return 0
    if load64(argument + ALIGNED) != ((begins(view) & (ALIGNMENT - 1)) == 0):
        return 0
    return same_form(load64(argument + FORM), view, dims)


def all_suit(state, template, args, count, views, kinds):
    argument = load64(template + GIVEN)
    i = 0
    while i < count:
        if suits(state, argument, load64(args + 8 * i), views + 64 * i, load64(kinds + 8 * i)) == 0:
            return 0
        argument += ARGUMENT_SIZE
        i += 1
    return 1


def made_again(own, args, count):
    """Return the result of a function of arrays; 0 if there is no template."""
    state = load64(own + STATE)
    views = scratch(64 * count)
    kinds = scratch(8 * count)
    objs = scratch(8 * count)
    bases = scratch(8 * count)
    arrays = 0
    mixed = count
    i = 0
    while i < count:
        obj = load64(args + 8 * i)
        kind = array_kind(state, obj)
        store64(kinds + 8 * i, kind)
        if kind:
            view = views + 64 * i
            if call32(load64(kind + VIEW), obj, view) != 0:
                return refused()
            if begins(view) == 0 or load64(view + 32) == 0 or has_other_numbers(kind, obj):
                return 0
            store64(objs + 8 * arrays, obj)
            store64(bases + 8 * arrays, begins(view))
            arrays += 1
            mixed = mixed_with(mixed, view)
        i += 1
    mixed = mixed ^ (mixed >> 8) ^ (mixed >> 16)
    template = load64(own + ROOTS + 8 * (mixed & (BUCKETS - 1)))
    while template:
        if load64(template + COUNT) == count:
            if all_suit(state, template, args, count, views, kinds):
                return instantiate(template, objs, bases)
        template = load64(template + NEXT)
    return 0


def cast_of_arrays(self, args, count, names):
    """The call of a function of arrays: Python's METH_FASTCALL | METH_KEYWORDS."""
    own = PyLong_AsVoidPtr(PyTuple_GetItem(self, 0))
    if names == 0 and reads_the_same(own):
        made = made_again(own, args, count)
        if made:
            return made
    return call_python(load64(own + SLOW_FUNCTION), args, count, names)


def cast_at(self, args, count, names):
    """Cast from the template at an address, of an array whose memory begins at another; None if it does not suit.
    Python's METH_FASTCALL | METH_KEYWORDS."""
    template = PyLong_AsVoidPtr(load64(args))
    base = PyLong_AsVoidPtr(load64(args + 16))
    made = 0
    if base:
        made = cast_one(template, load64(args + 8), base)
    if made:
        return made
    return nothing()


def template_of(obj):
    """The template that an object was cast from; 0 if there is none."""
    held = PyObject_GenericGetDict(obj, 0)
    if held == 0:
        return refused()
    mark = PyDict_GetItem(held, MARK)
    Py_DecRef(held)
    if mark == 0:
        return 0
    address = PyObject_GetAttr(mark, ADDRESS)
    if address == 0:
        return refused()
    found = PyLong_AsVoidPtr(address)
    Py_DecRef(address)
    return found


def address_of(tensor):
    """Return the address of a tensor's memory; 0 if it is not known."""
    found = PyObject_GetAttr(tensor, ITERATOR)
    if found == 0:
        return refused()
    inner = PyObject_GetAttr(found, ADDRESS)
    Py_DecRef(found)
    if inner == 0:
        return refused()
    number = PyObject_GetAttr(inner, VALUE)
    Py_DecRef(inner)
    if number == 0:
        return refused()
    value = PyLong_AsLongLong(number)
    Py_DecRef(number)
    if value == -1 and PyErr_Occurred():
        return refused()
    return value


def all_alike(state, template, args, count):
    given = load64(template + GIVEN)
    i = 0
    while i < count:
        if alike(state, load64(args + 8 * i), load64(given + 8 * i)) == 0:
            return 0
        i += 1
    return 1


def made_of(state, args, count):
    """Return the result of a function of a tensor and other arguments; 0 if there is no template."""
    obj = load64(args + 8)
    if load64(obj + 8) != load64(state + TENSOR):
        return 0
    template = template_of(obj)
    if template == 0:
        return 0
    child = load64(template + CHILDREN)
    while child:
        if load64(child + FUNCTION) == load64(args) and load64(child + COUNT) == count - 2:
            if all_alike(state, child, args + 16, count - 2):
                base = address_of(obj)
                if base == 0:
                    return 0
                return cast_one(child, obj, base)
        child = load64(child + NEXT)
    return 0


def cast_derived(self, args, count, names):
    """`CASTING.derived(function, tensor, *others)`: Python's METH_FASTCALL | METH_KEYWORDS."""
    state = PyLong_AsVoidPtr(PyTuple_GetItem(self, 0))
    if count > 1 and names == 0:
        made = made_of(state, args, count)
        if made:
            return made
    return call_python(load64(state + SLOW_DERIVED), args, count, names)
