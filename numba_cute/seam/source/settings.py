# SPDX-License-Identifier: Apache-2.0
"""Find the attributes that functions of the user's set: fields of objects, whose numbers are not constants then."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from types import CodeType
from typing import Any, NamedTuple

from ..ground.bytecode import Operation, operations
from ..marks.host_objects import python_of

_LOADS = ("LOAD_FAST", "LOAD_DEREF")
"""Instructions that read a parameter: the second is used if an inner function reads it, too."""
_ASKED = (("LOAD_GLOBAL", "getattr"), ("LOAD_GLOBAL", "hasattr"))
_CONSTRUCTORS = ("__init__", "__post_init__", "__new__")


class Stores(NamedTuple):
    """The names of the attributes that code sets. own: of its first argument. others: of anything else."""

    own: frozenset[str]
    others: frozenset[str]


def set_by_methods(cls: Any) -> frozenset[str]:
    """Return the names of what methods set in objects of their class, but for constructors."""
    own = (stores_of(python_of(fn).__code__).own for name, fn in functions_of(cls) if name not in _CONSTRUCTORS)
    return frozenset().union(*own)


def functions_of(cls: Any) -> Iterator[tuple[str, Any]]:
    """Go over what a class and its bases have that may be a function, with its name."""
    for base in cls.__mro__[:-1]:
        for name, member in vars(base).items():
            parts = () if isinstance(member, staticmethod) else ("__func__", "fget", "fset", "func")
            for part in (member, *(getattr(member, p, None) for p in parts)):
                if python_of(part) is not None:
                    yield name, part


@functools.lru_cache(maxsize=4096)
def stores_of(code: CodeType) -> Stores:
    """Return the names of the attributes that code, and the functions in it, sets."""
    done = operations(code)
    this = code.co_varnames[:1] if code.co_argcount else ()
    own: set[str] = set()
    others: set[str] = set()
    for at, o in enumerate(done):
        if o.name == "STORE_ATTR":
            holder = done[_holder(done, at)]
            (own if holder.name in _LOADS and (holder.value,) == this else others).add(o.value)
    if any(o.name == "LOAD_GLOBAL" and o.value == "setattr" for o in done):
        others |= _texts(done)
    for const in code.co_consts:
        if isinstance(const, CodeType):
            others |= stores_of(const).own | stores_of(const).others
    return Stores(frozenset(own), frozenset(others))


def _texts(done: tuple[Operation, ...]) -> set[str]:
    """Return the texts that code may give to `setattr`: all but those that `getattr` and `hasattr` of a variable are
    given."""
    texts = (i for i, o in enumerate(done) if o.name == "LOAD_CONST" and isinstance(o.value, str))
    return {done[i].value for i in texts if i < 2 or done[i - 2][:2] not in _ASKED or done[i - 1].name not in _LOADS}


def _holder(done: tuple[Operation, ...], at: int) -> int:
    """Return the place of what gives the object in which a STORE_ATTR sets: of `x.n += …` that which is read before."""
    if done[at - 1].name not in ("SWAP", "ROT_TWO"):
        return at - 1
    for i in range(at - 1, 0, -1):
        if done[i][:2] == ("LOAD_ATTR", done[at].value) and done[i - 1].name in ("COPY", "DUP_TOP"):
            return i - 2
    return at - 1
