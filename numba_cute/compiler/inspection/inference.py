# SPDX-License-Identifier: Apache-2.0
"""What a call in a kernel gives, asked without a kernel: Numba's typing on descriptions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numba.cuda.core.errors import NumbaError

from ...seam import CuteError
from ..bridge import contexts
from ..ground.target import compiling_for
from .described import Description, described, numba_type


def infer(
    callee: Any, args: Sequence[Description], keywords: Mapping[str, Description] | None = None, *,
    attribute: str | None = None, arch: str = "sm_90a",
) -> Description:  # fmt: skip
    """Describe what a call gives in a kernel for `arch`.

    callee: a function or class; with `attribute`, None: the method of that name of the first of `args` is called.
    Raises CuteError for what the callee refuses, in its own words.
    """
    context = contexts.typing_context()
    context.refresh()
    given = [numba_type(a) for a in args]
    named = {name: numba_type(a) for name, a in (keywords or {}).items()}
    with compiling_for(arch):
        if attribute is not None:
            function = _asked(context.resolve_getattr, given.pop(0), attribute)
        else:
            function = _asked(context.resolve_value_type, callee)
        signature = _asked(context.resolve_function_type, function, tuple(given), named)
    if signature is None:
        name = attribute or getattr(callee, "__name__", repr(callee))
        raise CuteError(f"{name} takes no such arguments: {', '.join(map(str, (*args, *(keywords or {}).values())))}")
    return described(signature.return_type)


def infer_attribute(of: Description, name: str, *, arch: str = "sm_90a") -> Description:
    """Describe the attribute `name` of a value. Raises CuteError if it has none."""
    context = contexts.typing_context()
    context.refresh()
    with compiling_for(arch):
        found = _asked(context.resolve_getattr, numba_type(of), name)
    if found is None:
        raise CuteError(f"{of} has no attribute {name!r}")
    return described(found)


def _asked(ask: Any, *args: Any) -> Any:
    """Ask Numba's typing; an error of this library comes out of it as it went in."""
    try:
        return ask(*args)
    except NumbaError as e:
        cause: BaseException | None = e
        while cause is not None and not isinstance(cause, CuteError):
            cause = cause.__cause__ or cause.__context__
        raise CuteError(str(cause or e)) from None
