# SPDX-License-Identifier: Apache-2.0
"""Decide whether machine code may be trusted with this Python: its functions exist, and objects lie as it reads and
makes them. Asked before its first use; if it may not, launches and what is made for them go through Python."""

from __future__ import annotations

import ctypes
from typing import Any

from ....seam.ground.pythons import Inside
from . import casting, launcher, templates, words
from .language import python_api

_NEEDED = (*launcher.API, "PyCFunction_NewEx")


def _launches() -> str | None:
    """Say what of Python's C API or of its objects is not as launches in machine code have it."""
    missing = [name for name in _NEEDED if not python_api(name)]
    if missing:
        return f"its C API has no {', '.join(missing)}"
    for obj in (1, 1.0, (), _launches, None, words):  # an object's second word is its type
        if ctypes.c_void_p.from_address(id(obj) + 8).value != id(type(obj)):
            return f"the second word of {type(obj).__name__} objects is not their class"

    def slow(*args: Any, **named: Any) -> Any:
        return args, named

    site = (ctypes.c_int64 * words.SITE_WORDS)(0, id(slow))
    call = launcher.function("launch", (ctypes.addressof(site), site, slow))
    for args, named in (((1, "a"), {}), ((None,), {"b": 2, "c": 3})):
        if call(*args, **named) != (args, named):
            return "a call is given other arguments"
    return None


class _Held:
    """An object with fields, as those that are cast."""

    def __init__(self, number: int, text: str) -> None:
        self.number, self.text = number, text


class _Slotted:
    """One whose class has slots."""

    __slots__ = ("number", "text")


def _casts() -> str | None:
    """Say how an object that machine code makes is not as Python makes one."""
    inner = templates.Made(_Slotted, {"text": "b"}, {"number": templates.Address(0, 3)}, slots=True)
    template = templates.Template(
        templates.Made(_Held, {"text": "a"}, {"number": templates.Address(0, 1), "inner": inner}), [0], False
    )
    made: Any = launcher.function("cast_at", (0, template))(template.address, None, 1 << 40)
    if type(made) is not _Held or type(held := vars(made).get("inner")) is not _Slotted:
        return "an object is not made"
    if (getattr(held, "number", None), getattr(held, "text", None)) != ((1 << 40) + 3, "b"):
        return "an object with slots has other values"
    wanted = {"text": "a", "number": (1 << 40) + 1, "inner": held}
    for name, value in wanted.items():
        if getattr(made, name, None) != value or vars(made).get(name) != value:
            return f"an object has the fields {vars(made)}, not {wanted}"
    if getattr(made, launcher.MARK).address != template.address or _template_of(made) != template.address:
        return "an object does not tell what it was cast from"
    made.text = "c"
    return None if vars(made)["text"] == made.text == "c" else "an object keeps a field that was set"


def _template_of(made: Any) -> int:
    call = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.py_object)(launcher.code(casting).address("template_of"))
    return int(call(made))


LAUNCHES = Inside("its C API", "launches go through Python, and take longer", _launches)
CASTS = Inside("its objects", "tensors and atoms are made anew for each launch, and take longer", _casts)
