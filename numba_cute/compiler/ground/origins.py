# SPDX-License-Identifier: Apache-2.0
"""Find where the values of a statement became known only at run time, as far as Numba's typing had come."""

from __future__ import annotations

import linecache
import re
from typing import Any

from .numba_cuda import types


def origins(error: BaseException, file: str, line: int) -> str:
    """Write, for each variable of the statement at a line, that is known only at run time, where it was set; nothing
    where typing had not come so far. error: what typing raised."""
    typed = inference_of(error)
    if typed is None:
        return ""
    arguments = {n.removeprefix("arg.") for n in typed.arg_names.values()}
    said: dict[str, str] = {}
    names = _names(file, line)
    while names and len(said) < _MOST:
        name = names.pop(0)
        found = [v for n, v in typed.typevars.items() if n.partition(".")[0] == name and v.defined]
        if name in said or not any(_holds_numbers(v.type) for v in found):
            continue
        if name in arguments:
            said[name] = f"\n  {name} is an argument"
            continue
        at = max((v.define_loc.line for v in found if v.define_loc.line < line), default=None)
        if at is not None:
            said[name] = f"\n  {name} is set at line {at}: `{linecache.getline(file, at).strip()}`"
            names += _names(file, at)
    return "".join(said.values())


_MOST = 5
"""At most so many variables are told of."""


def _names(file: str, line: int) -> list[str]:
    """The variables that a line of source names, but for what it indexes, calls, sets, or takes attributes of."""
    return re.findall(r"(?<![.\w])(?!_\b)[A-Za-z_]\w*\b(?!\s*[(=\[.])", linecache.getline(file, line))


def inference_of(error: BaseException) -> Any:
    """Find the type inference that an error came out of; None if none did."""
    at, found = error.__traceback__, None
    while at is not None:
        for value in (at.tb_frame.f_locals.get("typeinfer"), at.tb_frame.f_locals.get("infer")):
            if hasattr(value, "typevars") and hasattr(value, "arg_names"):
                found = value
        at = at.tb_next
    return found


def _holds_numbers(ty: Any) -> bool:
    """Say whether a value of a type is a number that is known only at run time, or holds one."""
    if isinstance(ty, types.BaseTuple):
        return any(map(_holds_numbers, ty))
    if isinstance(ty, types.Literal):
        return False
    return isinstance(ty, (types.Number, types.Boolean)) or bool(getattr(ty, "leaves", ()))
