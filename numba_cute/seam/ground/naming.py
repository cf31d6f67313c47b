# SPDX-License-Identifier: Apache-2.0
"""Values and types as messages name them: in at most a line, and without an exception."""

from __future__ import annotations

import re
import reprlib
import types
from typing import Any

from .leaf import Leaf

_short = reprlib.Repr()
_short.maxlevel, _short.maxtuple, _short.maxlist, _short.maxdict = 4, 8, 8, 4
_short.maxstring = _short.maxother = 60


def shown(x: Any) -> str:
    """Write a value in at most a line, whatever it is."""
    try:
        text = repr(x) if isinstance(x, Leaf) or "__cute_frozen__" in type(x).__dict__ else _short.repr(x)
    except Exception:  # a number of too many digits, or an object that cannot be written
        return f"<{type(x).__name__}>"
    text = " ".join(text.split())
    return text if len(text) <= 90 else text[:87] + "..."


def is_unicode(text: str) -> bool:
    """Return whether a text can be written as UTF-8: it has no half of a surrogate pair."""
    return not any("\ud800" <= c <= "\udfff" for c in text)


def article(words: str) -> str:
    """Put "a" or "an" before the words."""
    spelt = words[:1] in "FHLMNRSX" and words[1:2].isupper()  # an MmaOp, but a Mbarrier
    return f"{'an' if spelt or words[:1] in tuple('aeioAEIO') else 'a'} {words}"


def described(x: Any) -> str:
    """Write a value and of what type it is."""
    if x is None or isinstance(x, (bool, types.ModuleType)):
        return shown(x)
    if isinstance(x, type):
        return f"the class {x.__name__}"
    if isinstance(x, Leaf) and not hasattr(x, "value"):
        return f"{shown(x)}, a number known only at run time"
    return f"{shown(x)}, {article(type(x).__name__)}"


_TYPES = {
    "int": "int64",
    "float": "float64",
    "Array": "array",
    "ndarray": "array",
    "str_": "str",
    "NoneType": "None",
    "Boolean": "bool",
}


def type_name(name: str) -> str:
    """Return how errors call a type that Python calls by that name."""
    name = name.rpartition(".")[2]
    return _TYPES.get(name, name.lower() if re.fullmatch(r"(Int|Uint|Float)\d+", name) else name)
