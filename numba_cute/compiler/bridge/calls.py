# SPDX-License-Identifier: Apache-2.0
"""Traced calls, attributes and operators: Numba's typing and lowering run the library's own Python.

Typing runs it on leaves without values and takes the result's type; lowering runs it again on leaves that emit
into the caller's frame. Nothing is registered for each function: anything that `seam` marks is found here.
"""

from __future__ import annotations

import enum
import functools
import inspect
import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.cuda import types, typing
from numba.cuda.cudadecl import registry as typing_registry
from numba.cuda.cudaimpl import registry as lowering_registry
from numba.cuda.descriptor import cuda_target
from numba.cuda.dispatcher import CUDADispatcher
from numba.cuda.typing.templates import AbstractTemplate, AttributeTemplate, fold_arguments

from ... import dtypes, seam
from ...seam import CuteError
from ..emit.leaves import Number
from ..emit.tracer import Tracer
from ..errors import as_typing_error
from ..host.target import current_arch
from . import contexts, structs, tree
from .numba_types import BoundTraced, StructProxy, StructRef, Value

# ---------------------------------------------------------------- Numba values as Python objects, and back


def abstract(ty: types.Type, value: Any, tracer: Tracer) -> Any:
    """A Numba type (and LLVM value, when lowering) as the object that traced code sees."""
    if isinstance(ty, types.Omitted):
        return ty.value
    if isinstance(ty, types.Literal):
        return ty.literal_value
    if isinstance(ty, types.NoneType):
        return None
    if isinstance(ty, (types.Number, types.Boolean)):
        return tree.make_leaf(ty, value)
    if isinstance(ty, types.IntEnumMember):
        return tree.make_leaf(ty.dtype, value)
    if isinstance(ty, types.BaseTuple):
        b = tracer.builder if value is not None else None  # a static tuple in a struct has no value
        return tuple(abstract(t, b and _member(b, value, i), tracer) for i, t in enumerate(ty))
    if isinstance(ty, Value):
        b = tracer.builder
        leaves = (tree.make_leaf(t, b and _member(b, value, i)) for i, t in enumerate(ty.leaves))
        return tree.unflatten(ty.spec, leaves)
    if isinstance(ty, StructRef):
        return StructProxy(ty, value)
    if isinstance(ty, types.Array):
        return _array(ty, value, tracer)
    if isinstance(ty, types.SliceType):
        return slice(None)
    if isinstance(ty, types.Dispatcher):
        return ty.dispatcher
    raise CuteError(f"a value of Numba type {ty} cannot be passed to a CuTe function")


def _member(builder: Any, value: Any, i: int) -> Any:
    """Member `i` of an LLVM aggregate; what was put there itself where that is seen (the IR stays small, and the
    tracer sees how an address came about)."""
    at = value
    while isinstance(at, ir.instructions.InsertValue):
        if list(at.indices) == [i]:
            return at.operands[1]
        at = at.operands[0]
    return builder.extract_value(value, i)


def _array(ty: types.Array, value: Any, tracer: Tracer) -> seam.ArrayView:
    dtype = _DTYPES.get(ty.dtype)
    if dtype is None:
        raise CuteError(f"an array of {ty.dtype} has no CuTe element type")
    if tracer.builder is None:
        data: Any = Number(types.uint64)
        shape: tuple[Any, ...] = tuple(Number(types.int64) for _ in range(ty.ndim))
        strides: tuple[Any, ...] = shape
    else:
        from numba.cuda import cgutils
        from numba.cuda.np.arrayobj import make_array

        b = tracer.builder
        array = make_array(ty)(tracer.context, b, value)
        data = Number(types.uint64, b.ptrtoint(array.data, ir.IntType(64)))
        shape = tuple(Number(types.int64, v) for v in cgutils.unpack_tuple(b, array.shape, ty.ndim))
        strides = tuple(Number(types.int64, v) for v in cgutils.unpack_tuple(b, array.strides, ty.ndim))
    size = dtype.bytes
    elements: list[Any] = [tracer.arith("sdiv", s, size) for s in strides]
    if ty.layout == "C":
        elements[-1:] = [1]
    elif ty.layout == "F":
        elements[:1] = [1]
    return seam.ArrayView(dtype, data, shape, tuple(elements), not ty.mutable)


_DTYPES = {
    types.boolean: dtypes.Boolean, types.int8: dtypes.Int8, types.int16: dtypes.Int16, types.int32: dtypes.Int32,
    types.int64: dtypes.Int64, types.uint8: dtypes.Uint8, types.uint16: dtypes.Uint16, types.uint32: dtypes.Uint32,
    types.uint64: dtypes.Uint64, types.float16: dtypes.Float16, types.bfloat16: dtypes.BFloat16,
    types.float32: dtypes.Float32, types.float64: dtypes.Float64,
}  # fmt: skip


def numba_type(obj: Any) -> types.Type:
    """The Numba type of what traced code returned."""
    if isinstance(obj, Number):
        return tree.leaf_type(obj)
    if isinstance(obj, (bool, int, str)) and not isinstance(obj, enum.Enum):
        return types.literal(obj)
    if obj is None:
        return types.none
    if isinstance(obj, float):
        return types.float64
    if isinstance(obj, StructProxy):
        return obj._ty
    if seam.is_struct_class(type(obj)):
        return structs.type_of_instance(obj)
    if isinstance(obj, (tuple, list)):
        return types.BaseTuple.from_types([numba_type(x) for x in obj])
    if isinstance(obj, CUDADispatcher):
        return types.Dispatcher(obj)
    return Value(tree.flatten(obj, []))


def concrete(obj: Any, ty: types.Type, tracer: Tracer) -> Any:
    """The LLVM value of what traced code returned, as a value of this Numba type."""
    context, b = tracer.context, tracer.builder
    if isinstance(ty, types.Literal) and isinstance(obj, (bool, int)):
        return context.get_constant_generic(b, types.unliteral(ty), obj)
    if isinstance(ty, (types.NoneType, types.Literal, types.Dispatcher)):
        return context.get_dummy_value()
    if isinstance(ty, (types.Number, types.Boolean)):
        return tracer.ir(obj, types.unliteral(ty))
    if isinstance(ty, types.BaseTuple):
        return context.make_tuple(b, ty, [concrete(x, t, tracer) for x, t in zip(obj, ty)])
    if isinstance(ty, StructRef):
        return obj._ptr if isinstance(obj, StructProxy) else structs.materialize(obj, ty, tracer)
    leaves: list[Any] = []
    tree.flatten(obj, leaves)
    value = context.get_value_type(ty)(None) if not leaves else ir.Constant(context.get_value_type(ty), ir.Undefined)
    for i, (leaf, t) in enumerate(zip(leaves, ty.leaves)):
        scalar = types.uint64 if t is tree.nt.TENSOR_MAP else types.unliteral(t)
        member = tracer.ir(leaf, scalar) if _numeric(leaf) else leaf.ir
        value = b.insert_value(value, member, i)
    return value


def _numeric(leaf: Any) -> bool:
    return isinstance(leaf, (Number, dtypes.Scalar))


# ---------------------------------------------------------------- running traced code


def run(fn: Callable[..., Any], pysig: inspect.Signature, args: list[Any], tracer: Tracer) -> Any:
    """Call `fn` with one value for each of its parameters."""
    plain, named = [], {}
    for p, a in zip(pysig.parameters.values(), args):
        if p.kind is p.VAR_POSITIONAL:
            plain.extend(a)
        elif p.kind is p.KEYWORD_ONLY:
            named[p.name] = a
        else:
            plain.append(a)
    with seam.running(tracer):
        return fn(*plain, **named)


@functools.cache
def _signature(fn: Callable[..., Any]) -> tuple[inspect.Signature, inspect.Signature]:
    """A callable's signature, and the same with keyword-only parameters made ordinary (what Numba can fold)."""
    sig = inspect.signature(fn)
    if any(p.kind is p.VAR_KEYWORD for p in sig.parameters.values()):
        raise CuteError(f"{fn!r} takes **kwargs, which a kernel cannot pass: name its parameters")
    params = [
        p.replace(kind=p.POSITIONAL_OR_KEYWORD) if p.kind is p.KEYWORD_ONLY else p for p in sig.parameters.values()
    ]
    if any(p.kind is p.VAR_POSITIONAL for p in params):  # what follows *args is given by name, which Python checks not
        return sig, inspect.Signature(params, __validate_parameters__=False)
    required = [p for p in params if p.default is p.empty]
    ordered = required + [p for p in params if p.default is not p.empty]
    return sig, sig.replace(parameters=ordered, return_annotation=inspect.Signature.empty)


def _fold(fn: Any, pysig: inspect.Signature, args: Any, kws: Any) -> tuple[types.Type, ...]:
    try:
        pysig.bind(*args, **dict(kws))
    except TypeError as e:
        name = getattr(fn, "__qualname__", type(fn).__name__)
        raise CuteError(f"{name}{pysig} was called with other arguments: {e}") from None
    return tuple(
        fold_arguments(
            pysig, args, dict(kws),
            lambda index, param, value: value,
            lambda index, param, default: types.Omitted(default),
            lambda index, param, values: types.BaseTuple.from_types(list(values)),
        )
    )  # fmt: skip


_results: dict[Any, Any] = {}


def trace_call(key: Any, receiver: Any, find: Callable[[Any], Callable[..., Any]], args: Any, kws: Any) -> Any:
    """The signature of calling `find(the receiver object)`, with its lowering registered under `key`.

    receiver: the Numba type whose object `find` is given: the callable itself or a method's object.
    """
    try:
        typing_tracer = Tracer()
        with seam.running(typing_tracer):
            fn = find(abstract(receiver, None, typing_tracer))
        real, folded = _signature(fn) if _is_shared(fn) else _signature.__wrapped__(fn)
        types_ = _fold(fn, folded, args, kws)
        memo = (key, types_, current_arch())
        result = _results.get(memo)
        if result is None:
            names = list(folded.parameters)
            order = [names.index(p) for p in real.parameters]
            values = [abstract(t, None, typing_tracer) for t in types_]
            result = numba_type(run(fn, real, [values[i] for i in order], typing_tracer))
            _register(key, receiver, find, real, order, types_)
            _results[memo] = result
    except CuteError as e:
        raise as_typing_error(e) from e
    return typing.signature(result, *types_, recvr=receiver if _has_receiver(key, receiver) else None).replace(
        pysig=folded
    )


def _has_receiver(key: Any, receiver: Any) -> bool:
    """Whether lowering is given the receiver's value: a method's object, or a called object that has leaves."""
    return key[0] is BoundTraced or bool(receiver.leaves)


def _is_shared(fn: Any) -> bool:
    """Whether this callable is one for all calls (bound methods are made anew for each)."""
    return inspect.isfunction(fn) or isinstance(fn, type)


def _register(key: Any, receiver: Any, find: Any, real: Any, order: list[int], types_: Any) -> None:
    bound = _has_receiver(key, receiver)
    full = ((receiver,) if bound else ()) + types_

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        tracer = Tracer(context, builder)
        self_value = args[0] if bound else context.get_value_type(receiver)(None)
        values = [abstract(t, a, tracer) for t, a in zip(types_, args[1:] if bound else args)]
        with seam.running(tracer):
            fn = find(abstract(receiver, self_value, tracer))
        result = run(fn, real, [values[i] for i in order], tracer)
        return concrete(result, sig.return_type, tracer)

    impl_key = (*key, full)
    selector = cuda_target.target_context._defns[impl_key]
    if full not in [s for s, _ in selector.versions]:
        selector.append(lower, full)


def call_type(value: Value, args: Any, kws: Any) -> Any:
    """The signature of calling a compile-time object from a kernel."""
    return trace_call((Value, value.spec), value, _callee, args, kws)


def _callee(obj: Any) -> Callable[..., Any]:
    if not callable(obj):
        raise CuteError(f"{obj!r} is not callable")
    return obj


def method_type(bound: BoundTraced, args: Any, kws: Any) -> Any:
    key = (BoundTraced, bound.this, bound.attr)
    return trace_call(key, bound.this, operator.attrgetter(bound.attr), args, kws)


# ---------------------------------------------------------------- attributes and operators


def _is_method(obj: Any, attr: str) -> bool:
    if isinstance(obj, type):
        return False
    return inspect.isfunction(inspect.getattr_static(type(obj), attr, None))


def _attribute(obj: Any, attr: str) -> Any:
    try:
        return getattr(obj, attr)
    except AttributeError:
        kind = obj.__name__ if isinstance(obj, type) else type(obj).__name__
        raise CuteError(f"{kind} has no attribute {attr!r}") from None


@typing_registry.register_attr
class ValueAttributes(AttributeTemplate):
    key = Value

    def generic_resolve(self, typ: Value, attr: str) -> Any:
        if attr == "__call__":  # Numba asks for it before it asks the type itself
            return None
        tracer = Tracer()
        try:
            obj = abstract(typ, None, tracer)
            if _is_method(obj, attr):
                return BoundTraced(typ, attr)
            if seam.is_struct_class(obj) and structs.is_jitted(obj, attr):
                return structs.jitted_type(obj, attr)
            with seam.running(tracer):
                return numba_type(_attribute(obj, attr))
        except CuteError as e:
            raise as_typing_error(e) from e


@lowering_registry.lower_getattr_generic(Value)
def value_getattr(context: Any, builder: Any, typ: Value, val: Any, attr: str) -> Any:
    tracer = Tracer(context, builder)
    obj = abstract(typ, val, tracer)
    if _is_method(obj, attr):
        return val
    if seam.is_struct_class(obj) and structs.is_jitted(obj, attr):
        return context.get_dummy_value()
    with seam.running(tracer):
        result = _attribute(obj, attr)
        return concrete(result, numba_type(result), tracer)


@lowering_registry.lower_constant(Value)
def value_constant(context: Any, builder: Any, ty: Value, obj: Any) -> Any:
    leaves: list[Any] = []
    tree.align(obj, ty.spec, leaves)
    for leaf in leaves:
        leaf.captured()
    return concrete(obj, ty, Tracer(context, builder))


def value_cast(context: Any, builder: Any, fromty: Value, toty: Value, val: Any) -> Any:
    """Between types that differ in what is static: constants become leaves."""
    if fromty == toty:
        return val
    tracer = Tracer(context, builder)
    leaves: list[Any] = []
    tree.align(abstract(fromty, val, tracer), toty.spec, leaves)
    value = ir.Constant(context.get_value_type(toty), ir.Undefined)
    for i, (leaf, t) in enumerate(zip(leaves, toty.leaves)):
        member = tracer.ir(leaf, types.unliteral(t)) if isinstance(leaf, (int, Number)) else leaf.ir
        value = builder.insert_value(value, member, i)
    return value


lowering_registry.lower_cast(Value, Value)(value_cast)


def _getitem(obj: Any, index: Any) -> Any:
    return obj[index]


def _setitem(obj: Any, index: Any, value: Any) -> None:
    obj[index] = value


def _comparison(op: Callable[..., Any]) -> Callable[..., Any]:
    """`==` or `!=` of objects; a leaf is equal to no other while compiling, whatever its value will be."""

    def compare(a: Any, b: Any) -> Any:
        result = op(a, b)
        if type(result) is bool and result is (op is operator.ne) and _may_be_equal(a, b):
            raise CuteError(
                f"{a!r} {'==' if op is operator.eq else '!='} {b!r}: what they hold is known only at run time, and "
                "objects are compared while the kernel is compiled; compare numbers, as cute.size(a) == cute.size(b)"
            )
        return result

    return compare


def _may_be_equal(a: Any, b: Any) -> bool:
    """Whether two objects that are not the same differ in nothing but run-time values."""
    leaves: list[Any] = []
    specs = [tree.flatten(x, leaves) for x in (a, b)]
    return bool(leaves) and tree.join(*specs) is not None


_OPERATORS: dict[Any, Callable[..., Any]] = {operator.getitem: _getitem, operator.setitem: _setitem, len: len}
_OPERATORS[divmod] = divmod
for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "and_", "or_", "xor", "lshift", "rshift"):
    _OPERATORS[getattr(operator, _name)] = getattr(operator, _name)
for _name in ("lt", "le", "gt", "ge", "eq", "ne", "neg", "invert", "matmul", "pow", "is_", "is_not"):
    _OPERATORS[getattr(operator, _name)] = getattr(operator, _name)
_OPERATORS |= {op: _comparison(op) for op in (operator.eq, operator.ne)}


def _register_operator(op: Any, fn: Callable[..., Any]) -> None:
    @contexts.template(op)
    class Template(AbstractTemplate):
        prefer_literal = True
        refused: CuteError | None = None

        def generic(self, args: Any, kws: Any) -> Any:
            if not any(isinstance(a, Value) for a in args[: 1 if op in (operator.getitem, operator.setitem) else 2]):
                return None
            tracer = Tracer()
            try:
                # Numba tries literals first, then again without: what was refused must not pass as run-time values.
                if self.refused is not None:
                    raise self.refused
                with seam.running(tracer):
                    result = fn(*(abstract(a, None, tracer) for a in args))
                return typing.signature(numba_type(result), *args)
            except CuteError as e:
                self.refused = e
                raise as_typing_error(e) from e

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        tracer = Tracer(context, builder)
        with seam.running(tracer):
            result = fn(*(abstract(t, a, tracer) for t, a in zip(sig.args, args)))
        return concrete(result, sig.return_type, tracer)

    if op is operator.setitem:
        contexts.lower(op, Value, types.Any, types.Any)(lower)
    elif op in (len, operator.neg, operator.invert):
        contexts.lower(op, Value)(lower)
    else:
        for sig in ((Value, Value), (Value, types.Any), (types.Any, Value)):
            contexts.lower(op, *sig)(lower)


for _op, _fn in _OPERATORS.items():
    _register_operator(_op, _fn)
