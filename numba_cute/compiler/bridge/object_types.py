# SPDX-License-Identifier: Apache-2.0
"""The Numba types of this library's objects, and how their values are laid out.

`Value`: an immutable object, static part in the type, leaves in a struct. `StructRef`: a mutable object, a pointer
to a slot in the caller's frame. `BoundTraced` and `BoundJitted`: their methods.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from ...seam import CuteError
from ..ground import llvmlite as ir
from ..ground.builder import Builder
from ..ground.numba_cuda import Conversion, models, register_default, register_model, types
from . import tree
from .exact import Part, state
from .given_floats import GivenFloat
from .returns import Composite, Object

_serial = itertools.count()

TraceCall = Callable[[Any, types.Type, Callable[[Any], Any], Any, Any], Any]
"""A function that types a call: of a key, the receiver's type, what finds the callable in it, and the arguments."""
_tracing: list[TraceCall] = []


def traces_calls(trace: TraceCall) -> TraceCall:
    """Decorate the one function that types calls of objects and of their methods: it needs these types, and stands
    above them (bridge/calls.py)."""
    _tracing.append(trace)
    return trace


def _callee(obj: Any) -> Any:
    if not callable(obj):
        raise CuteError(f"{obj!r} is not callable")
    return obj


def names_of(sig: Any) -> tuple[str, ...] | None:
    """Return the names of a call's parameters, which may be the call's own; None where the signature has none."""
    return None if sig.pysig is None else tuple(sig.pysig.parameters)


def key_of(spec: Any, changes: Sequence[Part]) -> Any:
    """Return what tells the type of an object from others."""
    own = tree.identity(spec)
    return (own, state(changes)) if changes else own


class _Keyed(types.Type):
    """A type whose key stays, and may be deep: its number in dictionaries is computed once."""

    def __hash__(self) -> int:
        try:
            return self._hashed
        except AttributeError:
            self._hashed: int = hash(self.key)
            return self._hashed

    def __reduce__(self) -> Any:
        make, (remake, args, held) = super().__reduce__()
        return make, (remake, args, {n: x for n, x in held.items() if n != "_hashed"})  # which is of this process


class Value(_Keyed, types.Callable):
    """An immutable compile-time object with run-time leaves, or a compile-time callable. changes: what may be replaced
    in a kernel's argument: where it is, that has another type. lasts: whether nothing in it may be, so that an object
    has its type for good, and the leaves that it has now."""

    def __init__(self, spec: Any, changes: Sequence[Part] = (), lasts: bool = False) -> None:
        self.spec, self.changes = spec, changes
        self.lasts = lasts and not tree.has_partial(spec)
        self.leaves = tuple(tree.leaf_types(spec))
        self._key = key_of(spec, changes)
        head = spec[1].__name__ if spec[0] in ("node", "const") else "tuple"
        if spec[0] == "const":
            head = getattr(spec[2], "__name__", head)
        super().__init__(f"cute.{head}.{next(_serial)}")

    @property
    def key(self) -> Any:
        return self._key

    def unify(self, typingctx: Any, other: types.Type) -> types.Type | None:
        joined = tree.join(self.spec, other.spec) if isinstance(other, Value) else None
        return None if joined is None else Value(joined)

    def can_convert_to(self, typingctx: Any, other: types.Type) -> Any:
        if isinstance(other, Value) and tree.join(self.spec, other.spec) == other.spec:
            return Conversion.safe
        return None

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        (trace,) = _tracing
        return trace((Value, self.key), self, _callee, args, kws)

    def get_call_signatures(self) -> Any:
        return [], True

    def get_impl_key(self, sig: Any) -> Any:
        return (Value, self.key, names_of(sig), sig.args)


@register_model(Value)
class ValueModel(Composite, models.StructModel):
    def __init__(self, dmm: Any, fe: Value) -> None:
        super().__init__(dmm, fe, [(f"leaf{i}", t) for i, t in enumerate(fe.leaves)])

    @functools.cached_property
    def _same(self) -> bool:
        """True if a value is stored as it is."""
        return bool(self.get_data_type() == self.get_value_type())

    def as_data(self, builder: Builder, value: Any) -> Any:
        """Convert a value to the form in which it is stored."""
        return value if self._same else super().as_data(builder, value)

    def from_data(self, builder: Builder, value: Any) -> Any:
        """Convert a value back from the form in which it is stored."""
        return value if self._same else super().from_data(builder, value)


def is_stored(ty: types.Type) -> bool:
    """Say whether a struct's field of this type takes room: what the type says whole does not."""
    if isinstance(ty, Value):
        return bool(ty.leaves)
    if isinstance(ty, types.BaseTuple):
        return any(map(is_stored, ty))
    return not isinstance(ty, (types.Literal, types.NoneType, types.Dispatcher, GivenFloat))


class StructRef(_Keyed):
    """An instance of a `struct` class: its fields' types, and a pointer as its value."""

    mutable = True

    def __init__(self, cls: type, fields: tuple[tuple[str, types.Type], ...]) -> None:
        self.cls, self.fields = cls, fields
        self.types = dict(fields)
        self.stored = tuple(name for name, ty in fields if is_stored(ty))
        self._key = (cls, fields)
        super().__init__(f"cute.{cls.__name__}.{next(_serial)}")

    @property
    def key(self) -> Any:
        return self._key


@register_model(StructRef)
class StructRefModel(Object, models.DataModel):
    """A pointer, also where it is stored."""

    def __init__(self, dmm: Any, fe: StructRef) -> None:
        super().__init__(dmm, fe)
        self._members = [dmm.lookup(fe.types[name]) for name in fe.stored]

    def object_key(self) -> Any:
        return self._fe_type._key

    def contents(self) -> ir.Type:
        return ir.LiteralStructType([m.get_data_type() for m in self._members])

    def fields(self) -> list[Any]:
        return self._members

    def get_value_type(self) -> ir.Type:
        return self.contents().as_pointer()

    def get_data_type(self) -> ir.Type:
        return self.get_value_type()

    def as_data(self, builder: Builder, value: Any) -> Any:
        return value

    def from_data(self, builder: Builder, value: Any) -> Any:
        return value

    def as_argument(self, builder: Builder, value: Any) -> Any:
        return value

    def from_argument(self, builder: Builder, value: Any) -> Any:
        return value


class BoundTraced(_Keyed, types.BoundFunction):
    """A traced method of an object: `this` is the object's type, `attr` the method's name."""

    def __init__(self, this: types.Type, attr: str) -> None:
        self.this, self.attr, self.typing_key = this, attr, (BoundTraced, this, attr)
        types.Callable.__init__(self, f"{this}.{attr}")

    @property
    def key(self) -> Any:
        return self.typing_key

    def unify(self, typingctx: Any, other: types.Type) -> types.Type | None:
        """Join methods of an object that turned out less static than it first seemed (as a loop variable's)."""
        if not isinstance(other, BoundTraced) or other.attr != self.attr:
            return None
        this = typingctx.unify_pairs(self.this, other.this)
        return None if this is None else BoundTraced(this, self.attr)

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        (trace,) = _tracing
        return trace(self.typing_key, self.this, self._find, args, kws)

    def _find(self, obj: Any) -> Any:
        """Return the method of the object that traced code sees: of a struct's, not the proxy's own `__eq__`."""
        return obj.cute_method(self.attr) if isinstance(self.this, StructRef) else getattr(obj, self.attr)

    def get_impl_key(self, sig: Any) -> Any:
        return (*self.typing_key, sig.args)


class BoundJitted(_Keyed, types.BoundFunction):
    """A jitted method of a struct: `dispatcher` compiles it."""

    def __init__(self, this: types.Type, attr: str, dispatcher: Any) -> None:
        self.this, self.attr, self.dispatcher = this, attr, dispatcher
        self.typing_key = (BoundJitted, this, attr, dispatcher)
        types.Callable.__init__(self, f"{this}.{attr}()")

    @property
    def key(self) -> Any:
        return self.typing_key

    def unify(self, typingctx: Any, other: types.Type) -> types.Type | None:
        return None

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        template, pysig, args, kws = self.dispatcher.get_call_template((self.this, *args), kws)
        sig = template(context).apply(args, kws)
        params = list(pysig.parameters.values())[1:]
        method = sig.replace(args=tuple(sig.args[1:]), recvr=self.this)
        return method.replace(pysig=pysig.replace(parameters=params))

    def get_impl_key(self, sig: Any) -> Any:
        return self.dispatcher.get_overload(sig)


@register_default(BoundTraced)
@register_default(BoundJitted)
def _bound_method_model(dmm: Any, fe: types.BoundFunction) -> Any:
    """Hold a bound method as its object."""
    return dmm[fe.this]
