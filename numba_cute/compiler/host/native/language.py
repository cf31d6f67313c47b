# SPDX-License-Identifier: Apache-2.0
"""Functions of machine words, written in Python, as machine code.

Everything in them is a signed word of 64 bits: names, parameters, results. They have arithmetic, comparisons, `and`,
`or`, `not`, `if`, `while`, calls of each other, of `WORDS` below, and of C functions whose addresses and types are
given. So a launch is compiled by LLVM with no C compiler, in a text that can be read.
"""

from __future__ import annotations

import ast
import ctypes
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...ground import llvmlite as ir
from ...ground.llvmlite import binding

WORD, BYTE, HALF, SINGLE = ir.IntType(64), ir.IntType(8), ir.IntType(16), ir.IntType(32)
_BIT, _DOUBLE, _FLOAT = ir.IntType(1), ir.DoubleType(), ir.FloatType()
_POINTER = BYTE.as_pointer()
_C_TYPES = {"i64": WORD, "i32": SINGLE, "f64": _DOUBLE, "void": ir.VoidType()}


class Foreign:
    """A C function. address: its own. result: "i64" (pointers too), "i32", "f64" or "void". parameters: likewise."""

    def __init__(self, address: int, result: str, *parameters: str) -> None:
        self.address, self.result, self.parameters = address, result, parameters

    @property
    def type(self) -> Any:
        return ir.FunctionType(_C_TYPES[self.result], [_C_TYPES[p] for p in self.parameters])


def _load(bits: Any) -> Callable[..., Any]:
    def load(b: Any, address: Any) -> Any:
        value = b.load(b.inttoptr(address, bits.as_pointer()), typ=bits)
        value.align = 1
        return value if bits is WORD else b.zext(value, WORD)

    return load


def _load_signed(b: Any, address: Any) -> Any:
    return b.sext(b.load(b.inttoptr(address, SINGLE.as_pointer()), typ=SINGLE), WORD)


def _store(bits: Any) -> Callable[..., Any]:
    def store(b: Any, address: Any, value: Any) -> Any:
        b.store(value if bits is WORD else b.trunc(value, bits), b.inttoptr(address, bits.as_pointer()), align=1)
        return WORD(0)

    return store


def _copy(b: Any, to: Any, source: Any, size: Any) -> Any:
    kinds = [_POINTER, _POINTER, WORD]
    intrinsic = b.module.declare_intrinsic("llvm.memcpy", kinds)
    b.call(intrinsic, [b.inttoptr(to, _POINTER), b.inttoptr(source, _POINTER), size, _BIT(0)])
    return WORD(0)


def _scratch(b: Any, size: Any) -> Any:
    """Memory of the caller's frame, at a multiple of 64."""
    made = b.alloca(BYTE, size)
    made.align = 64
    return b.ptrtoint(made, WORD)


def _narrowed(b: Any, double: Any) -> Any:
    """The bits of a double as a float's."""
    single = b.fptrunc(b.bitcast(double, _DOUBLE), _FLOAT)
    return b.zext(b.bitcast(single, SINGLE), WORD)


def _floated(b: Any, integer: Any) -> Any:
    """The bits of an integer as a double."""
    return b.bitcast(b.sitofp(integer, _DOUBLE), WORD)


def _call32(b: Any, address: Any, *args: Any) -> Any:
    """Call a C function by its address: words to a 32-bit int."""
    kind = ir.FunctionType(SINGLE, [WORD] * len(args))
    return b.sext(b.call(b.inttoptr(address, kind.as_pointer()), args), WORD)


WORDS: dict[str, Callable[..., Any]] = {
    "load8": _load(BYTE), "load32": _load(SINGLE), "load64": _load(WORD), "load_signed": _load_signed,
    "store8": _store(BYTE), "store16": _store(HALF), "store32": _store(SINGLE), "store64": _store(WORD),
    "copy": _copy, "scratch": _scratch, "narrowed": _narrowed, "floated": _floated, "call32": _call32,
}  # fmt: skip
"""Functions that functions of words call besides each other: memory, conversions, and functions by their address."""

_ARITHMETIC = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitAnd: "and_", ast.BitOr: "or_", ast.LShift: "shl",
    ast.RShift: "ashr", ast.BitXor: "xor",
}  # fmt: skip
_COMPARED = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


class _Function:
    """One function being made. functions: those of the module by name. foreign: C functions. table: where the numbers
    of this process stand, by name. numbers: others, by name."""

    def __init__(
        self, made: Any, tree: ast.FunctionDef, functions: Any, foreign: Any, table: Mapping[str, Any], numbers: Any
    ) -> None:
        self.functions, self.foreign, self.table, self.numbers = functions, foreign, table, numbers
        self.function = made
        self.b = ir.IRBuilder(made.append_basic_block("entry"))
        names = {a.arg for a in tree.args.args} | {
            n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        self.slots = {n: self.b.alloca(WORD, name=n) for n in sorted(names)}
        self.loops: list[tuple[Any, Any]] = []
        for a, value in zip(tree.args.args, made.args):
            self.b.store(value, self.slots[a.arg])
        self.block(tree.body)
        if not self.b.block.is_terminated:
            self.b.ret(WORD(0))

    def block(self, statements: Sequence[ast.stmt]) -> None:
        for s in statements:
            if self.b.block.is_terminated:
                return
            getattr(self, f"do_{type(s).__name__}")(s)

    def do_Expr(self, s: ast.Expr) -> None:
        if not isinstance(s.value, ast.Constant):  # a docstring
            self.value(s.value)

    def do_Assign(self, s: ast.Assign) -> None:
        (target,) = s.targets
        assert isinstance(target, ast.Name)
        self.b.store(self.value(s.value), self.slots[target.id])

    def do_AugAssign(self, s: ast.AugAssign) -> None:
        assert isinstance(s.target, ast.Name)
        slot = self.slots[s.target.id]
        self.b.store(getattr(self.b, _ARITHMETIC[type(s.op)])(self.b.load(slot, typ=WORD), self.value(s.value)), slot)

    def do_Return(self, s: ast.Return) -> None:
        assert s.value is not None
        self.b.ret(self.value(s.value))

    def do_If(self, s: ast.If) -> None:
        yes, no, after = (self.b.append_basic_block(n) for n in ("then", "else", "after"))
        self.b.cbranch(self.truth(s.test), yes, no)
        for block, body in ((yes, s.body), (no, s.orelse)):
            self.b.position_at_end(block)
            self.block(body)
            if not self.b.block.is_terminated:
                self.b.branch(after)
        self.b.position_at_end(after)

    def do_While(self, s: ast.While) -> None:
        test, body, after = (self.b.append_basic_block(n) for n in ("test", "body", "after"))
        self.b.branch(test)
        self.b.position_at_end(test)
        self.b.cbranch(self.truth(s.test), body, after)
        self.b.position_at_end(body)
        self.loops.append((test, after))
        self.block(s.body)
        self.loops.pop()
        if not self.b.block.is_terminated:
            self.b.branch(test)
        self.b.position_at_end(after)

    def do_Break(self, s: ast.Break) -> None:
        self.b.branch(self.loops[-1][1])

    def do_Continue(self, s: ast.Continue) -> None:
        self.b.branch(self.loops[-1][0])

    def truth(self, e: ast.expr) -> Any:
        """An expression as a bit."""
        if isinstance(e, ast.Compare):
            (op,), (right,) = e.ops, e.comparators
            return self.b.icmp_signed(_COMPARED[type(op)], self.value(e.left), self.value(right))
        if isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.Not):
            return self.b.not_(self.truth(e.operand))
        if isinstance(e, ast.BoolOp):
            return self.of_several(e)
        return self.b.icmp_signed("!=", self.value(e), WORD(0))

    def of_several(self, e: ast.BoolOp) -> Any:
        """`and` and `or`, which leave off as soon as they know."""
        early = isinstance(e.op, ast.Or)
        after = self.b.append_basic_block("known")
        ways = []
        for part in e.values[:-1]:
            bit = self.truth(part)
            more = self.b.append_basic_block("more")
            ways.append(self.b.block)
            self.b.cbranch(bit, *((after, more) if early else (more, after)))
            self.b.position_at_end(more)
        last = self.truth(e.values[-1])
        end = self.b.block
        self.b.branch(after)
        self.b.position_at_end(after)
        found = self.b.phi(_BIT)
        for way in ways:
            found.add_incoming(_BIT(early), way)
        found.add_incoming(last, end)
        return found

    def value(self, e: ast.expr) -> Any:
        """An expression as a word."""
        if isinstance(e, ast.Constant):
            return WORD(int(e.value))  # type: ignore[arg-type]
        if isinstance(e, ast.Name):
            where = self.slots.get(e.id, self.table.get(e.id))
            return WORD(int(self.numbers[e.id])) if where is None else self.b.load(where, typ=WORD)
        if isinstance(e, ast.BinOp):
            return getattr(self.b, _ARITHMETIC[type(e.op)])(self.value(e.left), self.value(e.right))
        if isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.USub):
            return self.b.neg(self.value(e.operand))
        if isinstance(e, ast.Call):
            return self.call(e)
        return self.b.zext(self.truth(e), WORD)

    def call(self, e: ast.Call) -> Any:
        assert isinstance(e.func, ast.Name)
        name, args = e.func.id, [self.value(a) for a in e.args]
        if name in WORDS:
            return WORDS[name](self.b, *args)
        if name in self.functions:
            return self.b.call(self.functions[name], args)
        of = self.foreign[name]
        where = self.b.inttoptr(self.b.load(self.table[name], typ=WORD), of.type.as_pointer())
        given = [self.b.trunc(a, SINGLE) if p == "i32" else a for a, p in zip(args, of.parameters, strict=True)]
        found = self.b.call(where, given)
        if of.result == "void":
            return WORD(0)
        if of.result == "f64":
            return self.b.bitcast(found, WORD)
        return self.b.sext(found, WORD) if of.result == "i32" else found


_TABLE = "table of this process"
"""The function that gives the address of the numbers that `Code` fills in."""


def _machine() -> Any:
    """The machine for which code is made: any of this kind of processor, and code that may lie anywhere."""
    return binding.Target.from_triple(binding.get_process_triple()).create_target_machine(opt=2, reloc="pic")


def _object(functions: Sequence[Any], foreign: Mapping[str, Foreign], names: Sequence[str]) -> bytes:
    """Compile functions of words to an object file. names: of the numbers in the table, in their order."""
    module = ir.Module("launch")
    module.triple = binding.get_process_triple()
    kind = ir.ArrayType(WORD, len(names))
    held = ir.GlobalVariable(module, kind, "numbers")
    held.linkage, held.initializer = "internal", ir.Constant(kind, None)
    table = {name: held.gep([WORD(0), WORD(i)]) for i, name in enumerate(names)}
    give = ir.Function(module, ir.FunctionType(WORD, []), _TABLE)
    b = ir.IRBuilder(give.append_basic_block())
    b.ret(b.ptrtoint(held, WORD))
    trees = [ast.parse(textwrap.dedent(inspect.getsource(f))).body[0] for f in functions]
    made = {}
    for f, tree in zip(functions, trees):
        assert isinstance(tree, ast.FunctionDef)
        made[f.__name__] = ir.Function(module, ir.FunctionType(WORD, [WORD] * len(tree.args.args)), f.__name__)
    for f, tree in zip(functions, trees):
        assert isinstance(tree, ast.FunctionDef)
        _Function(made[f.__name__], tree, made, foreign, table, f.__globals__)
    machine, parsed = _machine(), binding.parse_assembly(str(module))
    options = binding.create_pipeline_tuning_options(speed_level=2)
    binding.create_pass_builder(machine, options).getModulePassManager().run(
        parsed, binding.create_pass_builder(machine, options)
    )
    return bytes(machine.emit_object(parsed))


class Code:
    """Machine code of some functions of words. It lives as long as this object, in which `address(name)` finds it.

    functions: Python functions, which may call each other. foreign: the C functions that they call, by name. fixed:
    the numbers of this process that they name. kept: `kept(make)` gives what `make()` does, the code as an object file,
    which another process may have made: addresses are not in it, but in a table that is filled here."""

    def __init__(
        self, functions: Sequence[Any], foreign: Mapping[str, Foreign], fixed: Mapping[str, int] | None = None,
        kept: Callable[[Callable[[], bytes]], bytes] | None = None,
    ) -> None:  # fmt: skip
        numbers = {**{name: of.address for name, of in foreign.items()}, **(fixed or {})}
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()

        def make() -> bytes:
            return _object(functions, foreign, list(numbers))

        held = make() if kept is None else kept(make)
        self._engine = binding.create_mcjit_compiler(binding.parse_assembly(""), _machine())
        self._engine.add_object_file(binding.ObjectFileRef.from_data(held))
        self._engine.finalize_object()
        table = ctypes.CFUNCTYPE(ctypes.c_int64)(self.address(_TABLE))()
        (ctypes.c_int64 * len(numbers)).from_address(table)[:] = list(numbers.values())

    def address(self, name: str) -> int:
        """Return where a function is."""
        return int(self._engine.get_function_address(name))


def python_api(name: str) -> int:
    """Return the address of a function of Python's C API; 0 if this Python has no such symbol."""
    found = getattr(ctypes.pythonapi, name, None)
    return 0 if found is None else int(ctypes.cast(found, ctypes.c_void_p).value or 0)
