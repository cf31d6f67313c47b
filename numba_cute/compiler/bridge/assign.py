# SPDX-License-Identifier: Apache-2.0
"""`x.name = value` in kernels where `x` is no struct but an object that knows how (storage in shared memory).

Numba asks for the attribute's type and casts the value to that; here the object itself takes the value, whatever its
type, so the question is answered before Numba's templates are asked.
"""

from __future__ import annotations

from typing import Any

from numba.cuda import types, typing
from numba.cuda.cudaimpl import registry as lowering_registry

from ... import seam
from ...seam import CuteError
from ..emit.tracer import Tracer
from ..errors import as_typing_error
from . import calls, contexts
from .numba_types import Value


@contexts.setattr_rule
def _resolve_setattr(target: Any, attr: str, value: Any) -> Any:
    if not isinstance(target, Value):
        return None
    tracer = Tracer()
    try:
        with seam.running(tracer):
            _assign(calls.abstract(target, None, tracer), attr, calls.abstract(value, None, tracer))
    except CuteError as e:
        raise as_typing_error(e) from e
    return typing.signature(types.void, target, value)


def _assign(obj: Any, attr: str, value: Any) -> None:
    if not hasattr(type(obj), "__cute_members__"):
        raise CuteError(f"{type(obj).__name__}.{attr} cannot be assigned: a {type(obj).__name__} is immutable")
    setattr(obj, attr, value)


@lowering_registry.lower_setattr_generic(Value)
def value_setattr(context: Any, builder: Any, sig: Any, args: Any, attr: str) -> None:
    tracer = Tracer(context, builder)
    with seam.running(tracer):
        obj, value = (calls.abstract(t, a, tracer) for t, a in zip(sig.args, args))
        _assign(obj, attr, value)
