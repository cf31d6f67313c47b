# SPDX-License-Identifier: Apache-2.0
"""Functions, methods and attributes of arrays to which somebody gave a meaning for Numba by `@overload`,
`@overload_method` and `@overload_attribute`: by the arguments' types the Python that is compiled, which runs here.

Nothing here imports Numba: who extends it has brought it.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ...seam import CuteError
from .arithmetic.number import Number
from .arrays import DeviceArray, bare_array


class Extensions:
    """The overloads of Numba's extensions, looked up once in a run. rebuilt: gives the simulator's replacement of a
    Python function."""

    def __init__(self, rebuilt: Callable[[Any], Any]) -> None:
        self._rebuilt = rebuilt
        self._made: dict[Any, Any] = {}
        self._context: Any = None

    @property
    def context(self) -> Any:
        """Numba's typing context, with what was registered until now; None where there is none."""
        if self._context is None:
            descriptor = sys.modules.get("numba.cuda.descriptor")
            if descriptor is None:
                return None
            self._context = descriptor.cuda_target.typing_context
            self._context.refresh()
        return self._context

    def function(self, fn: Any) -> Any:
        """Return the replacement of a function that is overloaded, or None."""
        if self.context is None:
            return None
        cases = _cases(self.context._lookup_global(fn))
        return self._calling(fn.__name__, cases) if cases else None

    def of_array(self, array: Any, name: str) -> Any:
        """A method (bound) or an attribute of an array that somebody added. AttributeError: nobody did."""
        for template in self.context._get_attribute_templates(self._type(array)) if self.context is not None else ():
            if getattr(template, "_attr", None) == name and hasattr(template, "_overload_func"):
                call = partial(self._calling(name, [type(template)._overload_func]), array)
                return call if template.is_method else call()
        raise AttributeError(f"{type(array).__name__!r} object has no attribute {name!r}")

    def _calling(self, name: str, cases: list[Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            types = tuple(map(self._type, args))
            named_types = {k: self._type(v) for k, v in named.items()}
            key = tuple(cases), types, tuple(named_types.items())
            found = self._made.get(key)
            if found is None:
                found = self._made[key] = self._chosen(name, cases, types, named_types)
            return found(*args, **named)

        return call

    def _chosen(self, name: str, cases: list[Any], types: tuple[Any, ...], named: dict[str, Any]) -> Any:
        for case in cases:
            try:
                inspect.signature(case).bind(*types, **named)
            except TypeError:
                continue
            made = case(*types, **named)
            if made is not None:
                return self._rebuilt(made[1] if isinstance(made, tuple) else made)
        given = ", ".join([*map(str, types), *(f"{k}={v}" for k, v in named.items())])
        raise CuteError(f"{name}({given}): no @overload of it takes these types")

    def _type(self, value: Any) -> Any:
        """Numba's type of what a kernel holds."""
        resolve: Any = sys.modules["numba.cuda.typing.typeof"].typeof
        if isinstance(value, Number):
            return resolve(np.zeros(1, value.dtype.numpy)[0])
        if isinstance(value, DeviceArray):
            return resolve(bare_array(value))
        if type(value) is tuple:
            kinds = sys.modules["numba.cuda"].types
            return kinds.BaseTuple.from_types([self._type(v) for v in value])
        try:
            return resolve(value)
        except ValueError:
            raise CuteError(f"{value!r} is given to a function of Numba's extensions, and has no type there") from None


def _cases(known: Any) -> list[Any]:
    """The functions of the `@overload`s in what Numba knows of a function."""
    return [t._overload_func for t in getattr(known, "templates", ()) if hasattr(t, "_overload_func")]
