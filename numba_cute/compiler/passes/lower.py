# SPDX-License-Identifier: Apache-2.0
"""Numba's lowering of functions of this library."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ...dtypes import Scalar
from ..bridge import returns
from ..bridge.object_types import Value
from ..bridge.values import abstract
from ..emit import waiting
from ..emit.frames import make_aggregate, make_slot
from ..emit.tracer import Tracer
from ..ground.asserting import mark_raised
from ..ground.building import building_kernel, kernel
from ..ground.llvmlite import Constant, alloca_once
from ..ground.memory import memory
from ..ground.numba import config
from ..ground.numba_cuda import (
    CUDALower,
    CUDANativeLowering,
    DummyDIBuilder,
    NumbaError,
    ir,
    loc_info,
    must_use_alloca,
    new_error_context,
    register_pass,
    types,
)
from .copied import Copied
from .definitions import instructions
from .rolled import Rolled
from .uses import uses_and_definitions

LEANS_ON = (
    CUDALower._find_singly_assigned_variable, CUDALower.alloca_lltype, CUDALower.lower_block, CUDALower.storevar,
    CUDALower.lower_inst, CUDALower._disable_sroa_like_opt.fget, must_use_alloca,
)  # fmt: skip
"""The code of Numba's that this stands for, or that it calls."""


class _InOrder(dict[Any, None]):
    """Libraries to link, in the order in which they were added. Numba holds them in a set, by address: so the order of
    registers in PTX changed from process to process."""

    def add(self, library: Any) -> None:
        self[library] = None


def _let_wrap(function: Any) -> None:
    """Let integers wrap around, as NumPy's do: Numba tells LLVM that signed ones never overflow, which then takes
    `n + 1 > n` for true."""
    for block in function.blocks:
        for inst in block.instructions:
            if "nsw" in getattr(inst, "flags", ()):
                inst.flags.remove("nsw")


def _of_no_variable(*_: Any, **__: Any) -> None:
    """Say nothing of a variable."""


class Lower(CUDALower):
    """Lowers as Numba does, but lets integers wrap around. All else gives the same in less time."""

    _disable_sroa_like_opt = False  # Numba's property asks the options each time that a variable is read

    def init(self) -> None:
        """Prepare to lower. Code with lines alone says nothing of variables: PTX has no place for it, and of what
        optimisations leave of it libNVVM may make a symbol that it then refuses."""
        self._loaded: dict[str, Any] = {}
        self._disable_sroa_like_opt = self.flags.debuginfo and not self.flags.dbg_directives_only
        super().init()
        if self.flags.dbg_directives_only:
            self.debuginfo.mark_variable = self.debuginfo.update_variable = _of_no_variable

    def lower_expr(self, resty: Any, expr: Any) -> Any:
        """Lower an expression; what is taken from a tuple becomes what the variable is that takes it, where that is
        something else on other ways."""
        if expr.op == "static_getitem" and type(expr.index) is int:
            held = self.typeof(expr.value.name)
            own = held[expr.index] if isinstance(held, types.BaseTuple) else resty
            if isinstance(own, Value) and own != resty:
                return self.context.cast(self.builder, super().lower_expr(own, expr), own, resty)
        if expr.op == "build_tuple":
            items = [(self.loadvar(v.name), self.typeof(v.name), ty) for v, ty in zip(expr.items, resty)]
            values = [self.context.cast(self.builder, *item) for item in items]
            return make_aggregate(self.builder, self.context.get_value_type(resty), values)
        return super().lower_expr(resty, expr)

    def _lower_call_RecursiveCall(self, fnty: Any, expr: Any, signature: Any) -> Any:  # noqa: N802 - Numba's name
        """Lower a call of a function within itself: compiled for other types it is another function."""
        function = fnty.dispatcher_type
        if signature.args in function.dispatcher.overloads:
            return self._lower_call_normal(function, expr, signature)
        return super()._lower_call_RecursiveCall(fnty, expr, signature)

    def _find_singly_assigned_variable(self) -> None:
        """Find the variables that need no slot: each assigned by one statement, and used in that one's block alone."""
        self._blk_local_varmap: dict[str, object] = {}
        self._singly_assigned_vars: set[str] = set()
        self._assigned_once: set[str] = set()
        if self.func_ir.func_id.is_generator:
            return
        blocks = self.func_ir.blocks
        known = uses_and_definitions(blocks)
        assigned = Counter(i.target.name for i in instructions(blocks) if isinstance(i, ir.Assign))
        once = {name for name, count in assigned.items() if count == 1} - must_use_alloca(blocks)
        self._singly_assigned_vars |= once.difference(*known.usemap.values())
        if not self._disable_sroa_like_opt:
            self._assigned_once |= once

    def lower_function_body(self) -> Any:
        """Lower all; then it is known which objects are of this function's frame."""
        self.library._linking_libraries = _InOrder.fromkeys(self.library._linking_libraries)
        self._rolled = Rolled(self)
        memory().lowers.append(self)
        try:
            entry = super().lower_function_body()
            self._rolled.mark()
        finally:
            memory().lowers.pop()
        waiting.settle(self.function)
        returns.settle(self.function)
        _let_wrap(self.function)
        return entry

    def lower_block(self, block: Any) -> None:
        """Lower a block, and note what it became. What an error is told of its statement is made when there is one."""
        before = len(self.function.blocks)
        self.pre_block(block)
        for inst in block.body:
            self.loc = loc_info["loc"] = inst.loc
            try:
                self.lower_inst(inst)
            except NumbaError:
                with new_error_context('lowering "{inst}" at {loc}', inst=inst, loc=inst.loc):
                    raise
        self.post_block(block)
        self._rolled.lowered(block, before)

    def lower_inst(self, inst: Any) -> None:
        """Lower a statement. Of most Numba makes a text first, in case that it prints what it does."""
        kind = type(inst)
        if config.DEBUG_JIT or not (kind is ir.Del or (kind is ir.Assign and not isinstance(inst.value, ir.arg_types))):
            super().lower_inst(inst)
            return
        self.debuginfo.mark_location(self.builder, self._adjust_line_if_prologue(self.loc.line))
        self.notify_loc(self.loc)
        if kind is ir.Del:
            self.delvar(inst.value)
        else:
            self.storevar(self.lower_assign(self.typeof(inst.target.name), inst), inst.target.name)

    def lower_assign(self, ty: Any, inst: Any) -> Any:
        """Lower an assignment. A constant that is an int of another class, as a member of an `IntFlag`, or a number of
        this library's is written by its number: LLVM's text is made by `str`, which for Python 3.10 is the member's
        name."""
        value = inst.value
        if isinstance(inst, Copied):
            return self._copied(self.loadvar(value.name), ty)
        if isinstance(value, (ir.Const, ir.Global, ir.FreeVar)):
            if isinstance(ty, types.Integer):
                inst = ir.Assign(ir.Const(int(value.value), inst.loc), inst.target, inst.loc)
            elif isinstance(value.value, Scalar) and isinstance(ty, (types.Float, types.Boolean)):
                return Tracer(self.context, self.builder).ir(value.value, ty)
        made = super().lower_assign(ty, inst)
        if isinstance(value, ir.Arg):
            self._find_room(ty, made)
        return made

    def _find_room(self, ty: Any, value: Any) -> None:
        """Note the memory for tensor maps that an argument of a kernel brings."""
        of = kernel() if building_kernel() else None
        takes = getattr(of.function, "__cute_arguments__", None) if of is not None else None
        if of is not None and takes is not None and of.lowered is of.function and isinstance(ty, Value):
            of.room = takes.room(abstract(ty, value, Tracer(self.context, self.builder))) or of.room

    def _copied(self, pointer: Any, ty: Any) -> Any:
        """Return the address of a copy of an object, in a place of its own of the frame."""
        model = self.context.data_model_manager[ty]
        slot = make_slot(self.builder, model.contents(), ty.cls.__name__, model)
        self.builder.store(self.builder.load(pointer), slot)
        return slot

    def lower_dynamic_raise(self, inst: Any) -> None:
        """Lower a `raise` whose message only a run knows: it ends the thread with what of the message is static, for
        exceptions of CUDA's are numbers, whose texts are known while the kernel is compiled."""
        said = tuple(map(self._said, inst.exc_args or ()))
        known = tuple(x for x in said if x is not None) or None
        mark_raised(self.builder, inst.exc_class, known, self.loc.filename)
        self.return_exception(inst.exc_class, known, loc=self.loc)

    def lower_static_raise(self, inst: Any) -> None:
        """Lower a `raise` whose message is known."""
        if inst.exc_class is not None:
            mark_raised(self.builder, inst.exc_class, inst.exc_args, self.loc.filename)
        super().lower_static_raise(inst)

    def _said(self, given: Any) -> Any:
        """Return an argument of an exception; None of one that is known at run time alone."""
        if not isinstance(given, ir.Var):
            return given
        ty = self.typeof(given.name)
        return ty.literal_value if isinstance(ty, types.Literal) else None

    def loadvar(self, name: str) -> Any:
        """Load a variable; of what is assigned once, once in a block of LLVM's."""
        known = self._loaded.get(name)
        if known is None or known.parent is not self.builder.block:
            known = super().loadvar(name)
            if name in self._assigned_once and name not in self._blk_local_varmap:
                self._loaded[name] = known
        return known

    def storevar(self, value: Any, name: str, argidx: int | None = None) -> None:
        """Store a variable. A constant, as all that types tell, needs no slot in other blocks either. Into the slot of
        what is assigned once Numba would store after it looked what was there, and how large an argument is."""
        self._loaded.pop(name, None)
        once = name in self._assigned_once and name not in self._singly_assigned_vars
        if once and type(value) is Constant and name not in self.varmap:
            self._singly_assigned_vars.add(name)
        elif once and not self.context.enable_nrt:
            line = self.builder.debug_metadata
            self.builder.debug_metadata = line if argidx is None else None  # as Numba does
            self.builder.store(value, self.getvar(name))
            self.builder.debug_metadata = line
            return
        super().storevar(value, name, argidx)

    def alloca_lltype(self, name: str, lltype: Any, datamodel: Any = None) -> Any:
        """Make a variable's slot. How large it is only debug information asks, and LLVM takes long to say."""
        if isinstance(self.debuginfo, DummyDIBuilder) or self.flags.dbg_directives_only:
            return alloca_once(self.builder, lltype, name=name, zfill=False)
        return super().alloca_lltype(name, lltype, datamodel=datamodel)


@register_pass(mutates_CFG=True, analysis_only=False)
class Lowering(CUDANativeLowering):
    _name = "numba_cute_lowering"

    @property
    def lowering_class(self) -> type:
        return Lower
