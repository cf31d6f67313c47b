# SPDX-License-Identifier: Apache-2.0
"""Rows that differ in a few operands, made in a loop, and what copies by the TMA unit check alike."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

from ...seam import CuteError
from .instr import Instr, instr
from .machine import Machine


def declare(name: str, ptx: str, operands: dict[str, Any], doc: str, body: Callable[..., Any], **facts: Any) -> Instr:
    """A row whose body gets its operands by name, `body(m, **operands)`, as an attribute of the body's module."""
    names = list(operands)

    def run(m: Machine, *values: Any, **statics: Any) -> Any:
        return body(m, **dict(zip(names, values)), **statics)

    Parameter = inspect.Parameter  # noqa: N806
    parameters = [Parameter("m", Parameter.POSITIONAL_OR_KEYWORD)]
    parameters += [Parameter(n, Parameter.POSITIONAL_OR_KEYWORD, annotation=k) for n, k in operands.items()]
    parameters += [Parameter(n, Parameter.KEYWORD_ONLY) for n in facts.pop("statics", ())]
    run.__name__, run.__doc__ = name, doc
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__module__ = body.__module__
    row = instr(ptx, **facts)(run)
    vars(sys.modules[body.__module__])[name] = row
    return row


def need_aligned(what: str, value: int, unit: int) -> None:
    if value % unit:
        raise CuteError(f"{what} is {value:#x}: it must be a multiple of {unit} bytes")


def receivers(mask: int | None, cta: int) -> list[int]:
    """The ranks of the CTAs that a load writes to."""
    if mask is None:
        return [cta]
    if mask == 0:
        raise CuteError("TMA load: cta_mask is 0: it must name at least one CTA of the cluster")
    return [c for c in range(16) if mask >> c & 1]
