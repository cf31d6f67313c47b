# SPDX-License-Identifier: Apache-2.0
"""Configurations of a launching function: which there are, which are worth a measurement, and for which arguments."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..compiler.host.fingerprint import Unfollowed, fingerprint
from ..dtypes import DType
from ..seam import CuteError
from ..tensor.dlpack import inspect_array

Configuration = dict[str, Any]
Arguments = Mapping[str, Any]


def listed(configs: Any, arguments: Arguments, allowed: Sequence[str]) -> list[Configuration]:
    """Return the configurations, as dicts. configs: as `autotune` takes them. arguments: of the call, by name. allowed:
    the parameters that a configuration may set."""
    if callable(configs):
        configs = configs(**taken(configs, arguments))
    if isinstance(configs, Mapping):
        choices = [list(values) for values in configs.values()]
        configs = [dict(zip(configs, values)) for values in itertools.product(*choices)]
    if not isinstance(configs, Iterable) or isinstance(configs, str):
        raise CuteError(f"autotune: configs {configs!r} must be a list of dicts, or a dict of lists to combine")
    out = [_as_dict(c) for c in configs]
    if not out:
        raise CuteError("autotune: configs is empty: there is nothing to choose from")
    for c in out:
        unknown = sorted(set(c) - set(allowed))
        if unknown:
            raise CuteError(
                f"autotune: configuration {text(c)} sets {', '.join(unknown)}, for which the function has no "
                f"parameter; it may set {', '.join(allowed)}"
            )
    return out


def taken(function: Callable[..., Any], arguments: Arguments) -> dict[str, Any]:
    """Return those of the arguments that a function takes by name."""
    parameters = inspect.signature(function).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return dict(arguments)
    return {name: value for name, value in arguments.items() if name in parameters}


def _as_dict(c: Any) -> Configuration:
    if isinstance(c, Mapping):
        return dict(c)
    if hasattr(c, "_asdict"):
        return dict(c._asdict())
    if dataclasses.is_dataclass(c) and not isinstance(c, type):
        return {f.name: getattr(c, f.name) for f in dataclasses.fields(c)}
    raise CuteError(f"autotune: configuration {c!r} must be a dict, a NamedTuple or a dataclass of parameters")


def text(c: Configuration) -> str:
    """Return a configuration in a line, which is its name in tables and in the store."""
    return ", ".join(f"{name}={key_text(value)}" for name, value in c.items()) or "as it is"


def worthwhile(
    configurations: list[Configuration], arguments: Arguments, prune: Callable[..., Any] | None,
    cost: Callable[..., Any] | None, keep: int,
) -> list[Configuration]:  # fmt: skip
    """Return those that are to be measured: that `prune` does not drop, and of them the `keep` that cost least."""
    left = [c for c in configurations if prune is None or not prune(c, arguments)]
    if not left:
        raise CuteError(f"autotune: prune dropped all of {len(configurations)} configurations")
    if cost is None:
        return left
    priced = [(cost(c, arguments), i) for i, c in enumerate(left)]
    return [left[i] for _, i in sorted(priced)[:keep]]


def key_of(key: Any, arguments: Arguments) -> str:
    """Return what a result holds for, as text: of the arguments' kinds, shapes and values. key: the names of those that
    matter, a function of all of them by name, or None for all."""
    if callable(key):
        return key_text(key(**taken(key, arguments)))
    names = list(arguments) if key is None else [key] if isinstance(key, str) else list(key)
    unknown = [n for n in names if n not in arguments]
    if unknown:
        raise CuteError(
            f"autotune: key {unknown[0]!r} is not an argument of the function; it has {', '.join(arguments)}"
        )
    return ", ".join(f"{n}={key_text(arguments[n])}" for n in names)


def key_text(value: Any) -> str:
    """Return a text that is the same for arguments that are of the same kind to a kernel, in any process."""
    if isinstance(value, (tuple, list)):
        return f"({', '.join(map(key_text, value))})"
    if isinstance(value, (DType, enum.Enum)) or value is None or isinstance(value, (bool, int, float, str)):
        return str(value)
    if hasattr(value, "element_type") and hasattr(value, "layout"):  # a CuTe tensor
        return f"{value.element_type}{value.layout}"
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return _array(value)
    named = value if inspect.isroutine(value) or inspect.isclass(value) else type(value)
    told = digest(value)
    if told is None:
        _alive[id(value)] = value
        return f"{named.__module__}.{named.__qualname__}@{UNTOLD}{id(value):x}"
    return f"{named.__module__}.{named.__qualname__}@{told[:12]}"


UNTOLD = "this process's "
"""The words, in the text of a value, for what no digest tells from others like it in another process."""
_alive: dict[int, Any] = {}


def digest(value: Any) -> str | None:
    """Return a digest of a function, a class or an object with all that it reaches; None of one that has none."""
    try:
        return fingerprint((value, "what is tuned"))
    except Unfollowed:
        return None


def _array(value: Any) -> str:
    try:
        info = inspect_array(value)
    except Exception:  # one that is on no device, or of another element type, has a shape too
        return f"{value.dtype}{tuple(value.shape)}"
    return f"{info.dtype}{info.shape}:{info.strides}".replace(" ", "")
