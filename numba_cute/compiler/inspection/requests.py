# SPDX-License-Identifier: Apache-2.0
"""Record what traced code asks of its backend, one request after the other: code that lowers an IR listens."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ... import dtypes, seam
from ...seam import CuteError, Regs
from ...seam.guards import facade
from ...typed.descriptions import Constant, Description
from ..bridge import tree
from ..bridge.values import abstract
from ..emit.leaves import NumberLeaf, RegFile, VectorLeaf, dtype_of, joined
from ..emit.tracer import Tracer
from ..ground.numba_cuda import types
from ..ground.target import compiling_for
from .type_descriptions import description_of_type, numba_type

ANSWERED = ("cast", "select", "compare", "read", "vector", "pack", "bitcast", "lane", "take", "convert", "elementwise",
            "load", "registers")  # fmt: skip
"""Requests that give something; `arith`, arithmetic on leaves, and `issue` do too."""
DONE = ("write", "fill", "unvector", "store", "copy_to_regs", "copy_from_regs")
"""Requests that do something."""
UNKNOWN = ("flag", "static_smem", "smem_base", "smem_needs", "allocate_smem", "allocates_smem", "at_exit",
           "tensor_map", "told", "timeline", "printf", "either")  # fmt: skip
"""Requests that are the kernel's own: not told."""


class Listener(Protocol):
    """A listener to the requests. Values are its own: it is given again what it gave."""

    def asked(self, name: str, args: tuple[Any, ...], gives: Sequence[Description]) -> Sequence[Any]:
        """Take a request and give a value for each leaf of its result. args: as the backend's method has them; leaves
        are `Known`. gives: what the leaves are."""

    def branch(self, condition: Any, then: Callable[[], None]) -> None:
        """Have `then` told for a condition that is true."""

    def loop(self, start: Any, stop: Any, of: Description, body: Callable[[Any], None]) -> None:
        """Have `body(value)` told for each number of a range."""


class Known:
    """A leaf in a request. value: the listener's. of: its description."""

    __slots__ = ("of", "value")

    def __init__(self, value: Any, of: Description) -> None:
        self.value, self.of = value, of


class Untold(CuteError):
    """A request that a listener cannot be told."""


class Requesting(Tracer):
    """Runs traced code as typing does, and tells its requests. A leaf's `ir` is the listener's value."""

    def __init__(self, listener: Listener) -> None:
        super().__init__()
        self.listener = listener

    def tell(self, name: str, args: Any, result: Any) -> Any:
        """Tell a request, and give its result with the listener's values."""
        leaves: list[Any] = []
        tree.flatten(result, leaves)
        values = self.listener.asked(name, _known(tuple(args)), [described_leaf(x) for x in leaves])
        for leaf, value in zip(leaves, values):
            leaf.ir = value
        return result

    def arith(self, op: str, a: Any, b: Any) -> NumberLeaf:
        return self.tell("arith", (op, a, b), super().arith(op, a, b))  # type: ignore[no-any-return]

    def issue(self, instr: Any, statics: dict[str, Any], operands: dict[str, Any]) -> Any:
        result = super().issue(instr, statics, operands)
        return self.tell("issue", (instr, tuple(statics.items()), tuple(operands.items())), result)

    def when(self, cond: Any, then: Callable[[], None], *, of_python: bool = False) -> None:
        if isinstance(cond, NumberLeaf):
            self.listener.branch(_known(cond), then)
        elif cond:
            then()

    def loop(self, start: Any, stop: Any, body: Callable[[Any], None]) -> None:
        ty = joined(start, stop) if isinstance(start, NumberLeaf) or isinstance(stop, NumberLeaf) else types.int32
        self.listener.loop(
            _known(start), _known(stop), description_of_type(ty), lambda value: body(NumberLeaf(ty, value))
        )


def _answered(name: str) -> Callable[..., Any]:
    plain = getattr(Tracer, name)

    @functools.wraps(plain)
    def request(self: Requesting, *args: Any) -> Any:
        result = plain(self, *args)
        if not isinstance(result, (seam.Leaf, tuple)) or getattr(result, "ir", None) is not None:
            return result  # it is static, or one of the arguments
        return self.tell(name, args, result)

    return request


def _done(name: str) -> Callable[..., Any]:
    @functools.wraps(getattr(Tracer, name))
    def request(self: Requesting, *args: Any) -> None:
        self.tell(name, args, None)

    return request


def _unknown(name: str) -> Callable[..., Any]:
    @functools.wraps(getattr(Tracer, name))
    def request(self: Requesting, *args: Any) -> Any:
        raise Untold(f"{name} is the kernel's own")

    return request


for _names, _make in ((ANSWERED, _answered), (DONE, _done), (UNKNOWN, _unknown)):
    for _name in _names:
        setattr(Requesting, _name, _make(_name))


def described_leaf(leaf: Any) -> Description:
    """Describe a leaf."""
    if isinstance(leaf, NumberLeaf):
        return description_of_type(leaf.type)  # (what divides it is found only after it was told)
    spec: list[Any] = []
    return description_of_type(tree.flatten(leaf, spec)[1])


def _known(x: Any) -> Any:
    """A request's arguments, their leaves as `Known`."""
    if isinstance(x, (NumberLeaf, RegFile, VectorLeaf)):
        return Known(x.ir, described_leaf(x))
    if isinstance(x, (tuple, list)):
        return tuple(map(_known, x))
    if isinstance(x, Regs):
        return Regs(_known(x.file), x.dtype, _known(x.start), x.count)
    return x.value if isinstance(x, dtypes.Scalar) else x


Path = tuple[Any, ...]
"""The path to a leaf in an object: names of fields, and numbers of a tuple's items."""


def run(
    function: Callable[..., Any], args: Sequence[Any], keywords: dict[str, Any], listener: Listener, *, arch: str,
    leaf: Callable[[Any, Path], Any], describe: Callable[[Any], Description | None],
) -> Any:  # fmt: skip
    """Run a traced function for what it asks. Gives the operand that it gave back, or what it made: None, a number as
    `Known`, or a tuple of such.

    args, keywords: nested tuples of constants and of the listener's operands, which `describe` describes; it gives None
    of a constant. leaf: gives the value of the leaf at a path of an operand, when it is needed. Raises CuteError as the
    function does, and `Untold`.
    """
    with compiling_for(arch):
        tracer = Requesting(listener)
        made: dict[int, tuple[Any, Any]] = {}

        def argument(x: Any) -> Any:
            d = describe(x)
            if d is None:
                return tuple(map(argument, x)) if isinstance(x, tuple) else x
            if id(x) not in made:
                obj = abstract(numba_type(d), None, tracer)
                for found, path in _leaves(obj, ()):
                    found.ir = Later(leaf, x, path)
                made[id(x)] = x, obj
            return made[id(x)][1]

        given, named = [argument(x) for x in args], {name: argument(x) for name, x in keywords.items()}
        with seam.running(tracer):
            result = facade.plain(function)(*given, **named)
    for x, obj in made.values():
        if result is obj:
            return x
    leaves: list[Any] = []
    tree.flatten(result, leaves)
    if isinstance(result, (seam.Leaf, tuple)) or result is None:
        return _known(result)
    raise Untold(f"it gives {type(result).__name__}")


class Later:
    """A leaf's value that is asked for when it is used."""

    __slots__ = ("_get", "_of", "_path")

    def __init__(self, get: Callable[[Any, Path], Any], of: Any, path: Path) -> None:
        self._get, self._of, self._path = get, of, path

    def __call__(self) -> Any:
        return self._get(self._of, self._path)


def _leaves(obj: Any, path: Path) -> list[tuple[Any, Path]]:
    """The leaves of an object, and where they are."""
    if isinstance(obj, seam.Leaf):
        return [(obj, path)]
    if isinstance(obj, tuple):
        return [found for i, x in enumerate(obj) for found in _leaves(x, (*path, i))]
    if not seam.is_frozen_class(type(obj)):
        return []
    names = tree.fields_of(type(obj))
    return [found for name in names for found in _leaves(getattr(obj, name), (*path, name))]


def meeting(a: Description, b: Description) -> Any:
    """Return the element type in which two numbers are compared, a static one as `Constant`."""
    return dtype_of(joined(*(d.value if isinstance(d, Constant) else NumberLeaf(numba_type(d)) for d in (a, b))))
