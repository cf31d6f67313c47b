# SPDX-License-Identifier: Apache-2.0
"""Bytecode as Numba's IR, with the walrus, with variables that closures set, and with conversions and formats in
f-strings: `f"{x!r:>{n}}"` is `"{!r:{}}".format(x, f">{n}")`.

Numba takes `$1 = f(); k = $1` for `k = f()`, since a value on Python's stack is read once. The walrus reads it twice:
`(k := f()) > 5` would compare a value that is never set.

It takes `$1 = k; $2 = f(); $1 + $2` for `k + f()`, since nothing sets `k` in between. A closure may, by `nonlocal`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...seam.ground.counterparts import if_known
from ..bridge.given_floats import put_in
from ..ground.lifted import all_set_free
from ..ground.numba_cuda import (
    CUDABytecodeInterpreter,
    CUDATranslateBytecode,
    Interpreter,
    UnsupportedBytecodeError,
    bytecode,
    interpreter,
    ir,
    postproc,
    register_pass,
)
from ..ground.within import Within
from .comprehensions import OwnVariables
from .inlining import IN_CLOSURES
from .uses import read_in

_READING = Within()
"""While a function of this library is read."""
_OF = {
    interpreter.peep_hole_delete_with_exit: ("WITH", "LOAD_SPECIAL"),
    interpreter.peep_hole_fuse_dict_add_updates: ("MAP", "DICT"),
    interpreter.peep_hole_call_function_ex_to_call_function_kw: ("CALL_FUNCTION_EX",),
    interpreter.peep_hole_list_to_tuple: ("LIST_TO_TUPLE", "INTRINSIC"),
}
"""Parts of the names of the instructions that Numba's rewritings of what it read are of."""
LEANS_ON = (*sorted(_OF, key=lambda fn: fn.__name__), Interpreter.interpret, Interpreter.post_process)


@register_pass(mutates_CFG=True, analysis_only=False)
class ReadCode(CUDATranslateBytecode):
    _name = "numba_cute_read_code"

    def run_pass(self, state: Any) -> bool:
        with _READING:
            state.func_ir = _Reader(state.func_id).interpret(state.bc)
        put_in(state.func_ir, state.args)
        return True


class _Reading:
    """Numba's interpreter of bytecode, which keeps a value that is read again after a variable was given it, and the
    value that a variable had when it was read."""

    func_id: Any
    bytecode: Any
    current_block: Any
    assigner: Any
    _own: OwnVariables
    _at = -1
    _restored: list[str]

    def interpret(self, code: Any) -> Any:
        self._own, self._restored = OwnVariables(list(code), self.func_id.code), []
        _leave_out_caches(code)
        return super().interpret(code)  # type: ignore[misc]

    def post_process(self, peepholes: Any, func_ir: Any) -> Any:
        """Rewrite what stands for several instructions, where there is one of those that Numba's rewriting is of."""
        found = {inst.opname for inst in self.bytecode}
        needed = [p for p in peepholes if p not in _OF or any(part in name for name in found for part in _OF[p])]
        return super().post_process(needed, func_ir)  # type: ignore[misc]

    def _dispatch(self, inst: Any, kws: Any) -> None:
        self._at, self._restored = inst.offset, self._own.restored_at(inst.offset)
        super()._dispatch(inst, kws)  # type: ignore[misc]

    def get_global_value(self, name: str) -> Any:
        return if_known(super().get_global_value(name))  # type: ignore[misc]

    def get_closure_value(self, index: int) -> Any:
        return if_known(super().get_closure_value(index))  # type: ignore[misc]

    @property
    def code_locals(self) -> Any:
        return self._own.names_at(self._at)

    def store(self, value: Any, name: str, *more: Any, **named: Any) -> Any:
        if name in self._restored:
            self._restored.remove(name)
            return None
        return super().store(value, name, *more, **named)  # type: ignore[misc]

    def op_LOAD_FAST_AND_CLEAR(self, inst: Any, res: str) -> None:
        if inst.offset in self._own.set_aside:
            self.store(ir.Const(None, self.loc), res)  # type: ignore[attr-defined]
        else:
            super().op_LOAD_FAST_AND_CLEAR(inst, res)  # type: ignore[misc]

    def op_LOAD_CONST(self, inst: Any, res: Any, *more: Any) -> None:
        super().op_LOAD_CONST(inst, res, *more)  # type: ignore[misc]
        made = self.current_block.body[-1].value
        if isinstance(made, ir.Expr) and made.op == "build_set":  # of `x in {1, 2}` alone (see language.py)
            made.op = "build_tuple"

    def op_LOAD_DEREF(self, inst: Any, res: Any) -> None:
        super().op_LOAD_DEREF(inst, res)  # type: ignore[misc]
        if inst.opname != "LOAD_DEREF":  # from Python 3.13 on a function that is made gets its cells so
            return
        loaded = self.current_block.body[-1]
        code = self.func_id.func.__code__
        if isinstance(loaded.value, ir.Var) and loaded.value.name in code.co_cellvars:
            if loaded.value.name in all_set_free(code):
                _forget(self.assigner, loaded.target.name)

    def op_CALL_FUNCTION_EX(self, inst: Any, func: str, vararg: str, varkwarg: str | None, res: str) -> None:
        me: Any = self
        body = me.current_block.body
        names = None if varkwarg is None else _named(body, varkwarg, me.definitions)
        if names is None or not _spreads(body, vararg):
            super().op_CALL_FUNCTION_EX(inst, func, vararg, varkwarg, res)  # type: ignore[misc]
            return
        body[:] = [s for s in body if not (isinstance(s, ir.Assign) and s.target.name == varkwarg)]
        del me.definitions[varkwarg]
        call = ir.Expr.call(me.get(func), [], names, loc=me.loc, vararg=me.get(vararg))
        me.store(call, res)

    def op_FORMAT_VALUE(self, inst: Any, value: str, res: str, strvar: str, **more: str) -> None:
        if not more:
            super().op_FORMAT_VALUE(inst, value, res, strvar)  # type: ignore[misc]
            return
        me: Any = self
        spec = [me.get(more["spec"])] if "spec" in more else []
        me.store(ir.Const(more["form"], me.loc), more["text"])
        me.store(ir.Expr.getattr(me.get(more["text"]), "format", me.loc), strvar)
        me.store(ir.Expr.call(me.get(strvar), [me.get(value), *spec], (), loc=me.loc), res)

    op_CONVERT_VALUE = op_FORMAT_WITH_SPEC = op_FORMAT_VALUE

    def _remove_unused_temporaries(self) -> None:
        made = {id(s): s.target for s in self.current_block.body if isinstance(s, ir.Assign) and s.target.is_temp}
        super()._remove_unused_temporaries()  # type: ignore[misc]
        read = set().union(*map(read_in, self.current_block.body))
        body = []
        for inst in self.current_block.body:
            body.append(inst)
            first = made.get(id(inst))
            if first is not None and first is not inst.target and first.name in read:
                body.append(ir.Assign(first, inst.target, inst.loc))
                inst.target = first
        self.current_block.body = body


def _leave_out_caches(code: Any) -> None:
    """Let each instruction be followed by the next that does something: Numba follows those that hold room for the
    interpreter too, which are two of three of Python 3.11's, and no part of its own list of another's."""
    after: Any = None
    for inst in reversed(code.table.values()):
        if after is not None and after.opname == "CACHE" and not inst.is_jump:
            inst.next = after.next
        after = inst


def _named(body: list[Any], given: str, definitions: Any) -> tuple[tuple[str, ir.Var], ...] | None:
    """Give the names and values of a call's `given` dictionary, if it is made right before of constant names."""
    made = _made(body, given)
    if not isinstance(made, ir.Expr) or made.op != "build_map" or not made.items:
        return None
    keys = [definitions[k.name][-1] for k, _ in made.items]
    if not all(isinstance(k, ir.Const) and isinstance(k.value, str) for k in keys):
        return None
    return tuple((k.value, v) for k, (_, v) in zip(keys, made.items))


def _spreads(body: list[Any], given: str) -> bool:
    """Say whether a call's positional arguments are a tuple's elements, `*x`: Python makes a tuple of many, too."""
    made = _made(body, given)
    if not isinstance(made, ir.Expr):
        return True
    if made.op != "list_to_tuple":
        return bool(made.op != "build_tuple")
    of_list = made.info[0]
    return any(
        isinstance(v, ir.Expr) and v.op == "getattr" and v.attr == "extend" and v.value.name == of_list
        for v in (getattr(s, "value", None) for s in body)
    )


def _made(body: list[Any], name: str) -> Any:
    return next((s.value for s in reversed(body) if isinstance(s, ir.Assign) and s.target.name == name), None)


class _Reader(_Reading, CUDABytecodeInterpreter):
    """For a function that Numba compiles."""


class _ClosureReader(_Reading, Interpreter):
    """For a closure that is inlined."""


def reading_closures(run_frontend: Callable[..., Any]) -> Callable[..., Any]:
    """Make of Numba's reader of a closure's code one that reads those of this library's functions as these are read."""

    def read(func: Any, inline_closures: bool = False, emit_dels: bool = False) -> Any:
        if not IN_CLOSURES or inline_closures:
            return run_frontend(func, inline_closures, emit_dels)
        func_id = bytecode.FunctionIdentity.from_function(func)
        with _READING:
            func_ir = _ClosureReader(func_id).interpret(bytecode.ByteCode(func_id=func_id))
        postproc.PostProcessor(func_ir).run(emit_dels)
        return func_ir

    return read


def _forget(assigner: Any, name: str) -> None:
    """Let a variable be no other name of the one that it was set to."""
    source = assigner.dest_to_src.pop(name)
    assigner.src_invalidate[source.name].remove(name)
    assigner.unused_dests.discard(name)


def flowing_formats(flow: Callable[..., None]) -> Callable[..., None]:
    """Make of the method by which Numba follows a part of an f-string through the stack one that knows conversions and
    formats, in functions of this library."""

    def followed(self: Any, state: Any, inst: Any) -> None:
        if inst.arg == 0 or not _READING:
            flow(self, state, inst)
        else:
            _follow(state, inst, inst.arg & 3, bool(inst.arg & 4))

    return followed


def flow_conversion(self: Any, state: Any, inst: Any) -> None:
    """Follow Python 3.13's `CONVERT_VALUE`, which Numba lacks. A method of Numba's `TraceRunner`."""
    _refuse_elsewhere(self, inst)
    _follow(state, inst, inst.arg, False)


def flow_format(self: Any, state: Any, inst: Any) -> None:
    """Follow Python 3.13's `FORMAT_WITH_SPEC`, which Numba lacks. A method of Numba's `TraceRunner`."""
    _refuse_elsewhere(self, inst)
    _follow(state, inst, 0, True)


def _refuse_elsewhere(runner: Any, inst: Any) -> None:
    """Say of a function that has nothing of this library what Numba says."""
    if not _READING:
        message = f"Use of unsupported opcode ({inst.opname}) found"
        raise UnsupportedBytecodeError(message, loc=runner.get_debug_loc(inst.lineno))


def _follow(state: Any, inst: Any, conversion: int, has_spec: bool) -> None:
    spec = {"spec": state.pop()} if has_spec else {}
    form = "{" + ("", "!s", "!r", "!a")[conversion] + (":{}" if has_spec else "") + "}"
    value, res, strvar, text = state.pop(), state.make_temp(), state.make_temp(), state.make_temp()
    state.append(inst, value=value, res=res, strvar=strvar, text=text, form=form, **spec)
    state.push(res)
