# SPDX-License-Identifier: Apache-2.0
"""The Numba types of this library, and how their values are laid out.

`Value`: an immutable object, static part in the type, leaves in a struct. `StructRef`: a mutable object, a pointer
to a slot in the caller's frame. `Registers`, `Vector`, `TensorMapType`: leaves that are not numbers.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

from llvmlite import ir
from numba.cuda import cgutils, types
from numba.cuda.datamodel import models, register_default
from numba.cuda.extending import register_model
from numba.cuda.typeconv import Conversion

from ... import dtypes
from ..emit.leaves import element_ir, slots

_serial = itertools.count()


class Registers(types.Type):
    """A register file: a pointer to an array in the frame."""

    def __init__(self, dtype: dtypes.DType, count: int) -> None:
        self.dtype, self.count = dtype, count
        super().__init__(f"registers<{count} x {dtype}>")


@register_model(Registers)
class RegistersModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe: Registers) -> None:
        array = ir.ArrayType(element_ir(fe.dtype), slots(fe.dtype, fe.count))
        super().__init__(dmm, fe, array.as_pointer())


class Vector(types.Type):
    """Some elements as one immutable value."""

    def __init__(self, dtype: dtypes.DType, count: int) -> None:
        self.dtype, self.count = dtype, count
        super().__init__(f"vector<{count} x {dtype}>")


@register_model(Vector)
class VectorModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe: Vector) -> None:
        super().__init__(dmm, fe, ir.ArrayType(element_ir(fe.dtype), slots(fe.dtype, fe.count)))


class TensorMapType(types.Type):
    """A tensor map. As a kernel's parameter it is 128 bytes by value; inside, its 64-bit generic address."""

    def __init__(self) -> None:
        super().__init__("tensor_map")


TENSOR_MAP = TensorMapType()
TENSOR_MAP_BYTES = ir.ArrayType(ir.IntType(8), 128)


@register_model(TensorMapType)
class TensorMapModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe: TensorMapType) -> None:
        super().__init__(dmm, fe, ir.IntType(64))

    def get_argument_type(self) -> ir.Type:
        return TENSOR_MAP_BYTES.as_pointer()

    def as_argument(self, builder: Any, value: Any) -> Any:
        return builder.inttoptr(value, TENSOR_MAP_BYTES.as_pointer())

    def from_argument(self, builder: Any, value: Any) -> Any:
        return builder.ptrtoint(value, ir.IntType(64))


class Multiple(types.Integer):
    """An integer type, and what is known to divide its values. Numba's own code sees the plain type (`unliteral`)."""

    def __init__(self, base: types.Integer, divisor: int) -> None:
        self.literal_type, self.divisor = base, divisor
        super().__init__(f"{base}%{divisor}", bitwidth=base.bitwidth, signed=base.signed)

    @property
    def key(self) -> Any:
        return self.literal_type, self.divisor

    def can_convert_to(self, typingctx: Any, other: types.Type) -> Any:
        if isinstance(other, Multiple):
            same = other.literal_type == self.literal_type and self.divisor % other.divisor == 0
            return Conversion.safe if same else None
        return typingctx.can_convert(self.literal_type, other)

    def unify(self, typingctx: Any, other: types.Type) -> types.Type | None:
        if isinstance(other, Multiple) and other.literal_type == self.literal_type:
            return multiple(self.literal_type, math.gcd(self.divisor, other.divisor))
        return typingctx.unify_pairs(self.literal_type, types.unliteral(other))  # type: ignore[no-any-return]


register_model(Multiple)(models.IntegerModel)


def multiple(base: types.Type, divisor: int) -> types.Type:
    """`base`, or the type of its multiples of `divisor`."""
    return Multiple(base, divisor) if divisor > 1 and isinstance(base, types.Integer) else base


class Value(types.Callable):
    """An immutable compile-time object with run-time leaves, or a compile-time callable."""

    def __init__(self, spec: Any) -> None:
        from . import tree

        self.spec = spec
        self.leaves = tuple(tree.leaf_types(spec))
        head = spec[1].__name__ if spec[0] in ("node", "const") else "tuple"
        if spec[0] == "const":
            head = getattr(spec[2], "__name__", head)
        super().__init__(f"cute.{head}.{next(_serial)}")

    @property
    def key(self) -> Any:
        return self.spec

    def unify(self, typingctx: Any, other: types.Type) -> types.Type | None:
        from . import tree

        joined = tree.join(self.spec, other.spec) if isinstance(other, Value) else None
        return None if joined is None else Value(joined)

    def can_convert_to(self, typingctx: Any, other: types.Type) -> Any:
        from . import tree

        if isinstance(other, Value) and tree.join(self.spec, other.spec) == other.spec:
            return Conversion.safe
        return None

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        from . import calls

        return calls.call_type(self, args, kws)

    def get_call_signatures(self) -> Any:
        return [], True

    def get_impl_key(self, sig: Any) -> Any:
        return (Value, self.spec, sig.args)


@register_model(Value)
class ValueModel(models.StructModel):
    def __init__(self, dmm: Any, fe: Value) -> None:
        super().__init__(dmm, fe, [(f"leaf{i}", t) for i, t in enumerate(fe.leaves)])


def is_stored(ty: types.Type) -> bool:
    """Whether a struct's field of this type takes room: what the type says whole does not."""
    if isinstance(ty, Value):
        return bool(ty.leaves)
    if isinstance(ty, types.BaseTuple):
        return any(map(is_stored, ty))
    return not isinstance(ty, (types.Literal, types.NoneType, types.Dispatcher))


class StructRef(types.Type):
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
class StructRefModel(models.DataModel):
    """A pointer as a value and as an argument; the fields themselves when stored, kept in a tuple, or returned."""

    def __init__(self, dmm: Any, fe: StructRef) -> None:
        super().__init__(dmm, fe)
        self._members = [dmm.lookup(fe.types[name]) for name in fe.stored]

    def _struct(self) -> ir.Type:
        return ir.LiteralStructType([m.get_data_type() for m in self._members])

    def get_value_type(self) -> ir.Type:
        return self._struct().as_pointer()

    def get_data_type(self) -> ir.Type:
        return self._struct()

    def get_argument_type(self) -> ir.Type:
        return self._struct().as_pointer()

    def get_return_type(self) -> ir.Type:
        return self._struct()

    def as_data(self, builder: Any, value: Any) -> Any:
        return builder.load(value)

    def from_data(self, builder: Any, value: Any) -> Any:
        slot = cgutils.alloca_once(builder, self._struct())
        builder.store(value, slot)
        return slot

    def as_argument(self, builder: Any, value: Any) -> Any:
        return value

    def from_argument(self, builder: Any, value: Any) -> Any:
        return value

    def as_return(self, builder: Any, value: Any) -> Any:
        return builder.load(value)

    def from_return(self, builder: Any, value: Any) -> Any:
        return self.from_data(builder, value)

    def load_from_data_pointer(self, builder: Any, ptr: Any, align: Any = None) -> Any:
        return ptr


class StructProxy:
    """A `StructRef` in traced code: fields are read from and written to the slot; methods are the class's."""

    __slots__ = ("_ty", "_ptr")

    def __init__(self, ty: StructRef, ptr: Any) -> None:
        object.__setattr__(self, "_ty", ty)
        object.__setattr__(self, "_ptr", ptr)

    def __getattr__(self, name: str) -> Any:
        from . import structs

        return structs.proxy_get(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        from . import structs

        structs.proxy_set(self, name, value)


class BoundTraced(types.BoundFunction):
    """A traced method of an object: `this` is the object's type, `attr` the method's name."""

    def __init__(self, this: types.Type, attr: str) -> None:
        self.this, self.attr, self.typing_key = this, attr, (BoundTraced, this, attr)
        types.Callable.__init__(self, f"{this}.{attr}")

    @property
    def key(self) -> Any:
        return self.typing_key

    def copy(self, this: types.Type) -> BoundTraced:
        return BoundTraced(this, self.attr)

    def unify(self, typingctx: Any, other: types.Type) -> types.Type | None:
        """A method of an object that turned out less static than it first seemed (as a loop variable's)."""
        if not isinstance(other, BoundTraced) or other.attr != self.attr:
            return None
        this = typingctx.unify_pairs(self.this, other.this)
        return None if this is None else BoundTraced(this, self.attr)

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        from . import calls

        return calls.method_type(self, args, kws)

    def get_impl_key(self, sig: Any) -> Any:
        return (*self.typing_key, sig.args)


class BoundJitted(types.BoundFunction):
    """A jitted method of a struct: `dispatcher` compiles it."""

    def __init__(self, this: types.Type, attr: str, dispatcher: Any) -> None:
        self.this, self.attr, self.dispatcher = this, attr, dispatcher
        self.typing_key = (BoundJitted, this, attr, dispatcher)
        types.Callable.__init__(self, f"{this}.{attr}()")

    @property
    def key(self) -> Any:
        return self.typing_key

    def copy(self, this: types.Type) -> BoundJitted:
        return BoundJitted(this, self.attr, self.dispatcher)

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
    """A bound method is held as its object."""
    return dmm[fe.this]
