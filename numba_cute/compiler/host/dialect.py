# SPDX-License-Identifier: Apache-2.0
"""Write a kernel's LLVM IR in MLIR's llvm dialect, as text, and keep beside it what that dialect cannot hold.

Control flow, arithmetic, memory and aggregates become the dialect's. Every other instruction, which inline assembly is
first of, is kept aside as it was written: a function of its own for each, of the instruction alone, which MLIR knows by
name and types only. So it neither merges two of them nor drops `convergent`; the functions are put back when MLIR is
done, and LLVM inlines them before it optimises.
"""

from __future__ import annotations

import copy
import struct
from collections.abc import Callable
from typing import Any

from ...seam import CuteError
from ..ground import llvmlite as ir

_FLOATS: dict[Any, tuple[str, str, str]] = {
    ir.HalfType: ("f16", "<e", "<H"),
    ir.FloatType: ("f32", "<f", "<I"),
    ir.DoubleType: ("f64", "<d", "<Q"),
}
_INTEGERS = {"add", "sub", "mul", "udiv", "sdiv", "urem", "srem", "shl", "lshr", "ashr", "and", "or", "xor"}
_TWO = _INTEGERS | {"fadd", "fsub", "fmul", "fdiv", "frem"}
_OF_FLOATS = {"fptrunc", "fpext", "fptosi", "fptoui", "sitofp", "uitofp"}
_CASTS = _OF_FLOATS | {"trunc", "zext", "sext", "ptrtoint", "inttoptr", "bitcast", "addrspacecast"}
_WRAPS = {"nsw", "nuw"}
_SMALL = 1 << 29
"""Constants of an address's computation below it are written into it."""


def of_type(ty: Any) -> str:
    """Write a type as MLIR does."""
    if isinstance(ty, ir.IntType):
        return f"i{ty.width}"
    if type(ty) in _FLOATS:
        return _FLOATS[type(ty)][0]
    if isinstance(ty, ir.PointerType):
        return f"!llvm.ptr<{ty.addrspace}>" if ty.addrspace else "!llvm.ptr"
    if isinstance(ty, ir.ArrayType):
        return f"!llvm.array<{ty.count} x {of_type(ty.element)}>"
    if isinstance(ty, ir.LiteralStructType):
        packed = "packed " if ty.packed else ""
        return f"!llvm.struct<{packed}({', '.join(map(of_type, ty.elements))})>"
    if isinstance(ty, ir.VectorType):
        return f"vector<{ty.count}x{of_type(ty.element)}>"
    if isinstance(ty, ir.VoidType):
        return "()"
    raise CuteError(f"the backend mlir has no type {ty}")


def erased(ty: Any) -> Any:
    """Give a type as MLIR's way back to LLVM 7 has it: what a pointer points to is forgotten."""
    if isinstance(ty, ir.PointerType):
        return ir.PointerType(ir.IntType(8), ty.addrspace)
    if isinstance(ty, ir.ArrayType):
        return ir.ArrayType(erased(ty.element), ty.count)
    if isinstance(ty, ir.LiteralStructType):
        return ir.LiteralStructType(map(erased, ty.elements), ty.packed)
    return ty


def cast_line(name: str, value: str, here: Any, there: Any) -> str:
    """Write the instruction that makes a value of one type one of another, which differs in what pointers point to."""
    if here == there:
        return f"  {name} = select i1 true, {here} {value}, {here} {value}\n"
    if not (isinstance(here, ir.PointerType) and isinstance(there, ir.PointerType)):
        raise CuteError(f"the backend mlir hands no {there} that holds pointers to what it keeps aside")
    return f"  {name} = bitcast {here} {value} to {there}\n"


class Written:
    """Functions in MLIR's llvm dialect, and what is kept aside. functions: each one's text, declarations among them.
    aside: functions of LLVM IR, by name. convergent: those whose instruction must neither be moved nor copied."""

    def __init__(self) -> None:
        self.functions: list[str] = []
        self.aside: dict[str, str] = {}
        self.convergent: set[str] = set()
        self.marks: list[str] = []

    def keep(self, of: Any, operands: list[Any], text: Callable[[list[str]], str], convergent: bool) -> str:
        """Keep an instruction aside; gives the name of the function. of: its type. text: writes it, given names of its
        operands."""
        name = f"aside.{len(self.aside)}"
        types = [erased(v.type) for v in operands]
        body = "".join(cast_line(f"%o{i}", f"%a{i}", types[i], v.type) for i, v in enumerate(operands))
        said = text([f"%o{i}" for i in range(len(operands))])
        if isinstance(of, ir.VoidType):
            body += f"  {said}\n  ret void\n"
        else:
            body += f"  %made = {said}\n{cast_line('%given', '%made', of, erased(of))}  ret {erased(of)} %given\n"
        params = ", ".join(f"{ty} %a{i}" for i, ty in enumerate(types))
        also = " convergent" if convergent else ""
        self.aside[name] = f"define internal {erased(of)} @{name}({params}) alwaysinline nounwind{also} {{\n{body}}}\n"
        if convergent:
            self.convergent.add(name)
        given = ", ".join(of_type(v.type) for v in operands)
        back = "" if isinstance(of, ir.VoidType) else f" -> {of_type(of)}"
        self.functions.append(f"llvm.func @{name}({given}){back}\n")
        return name

    def mark(self, metadata: dict[str, Any]) -> str:
        """Keep what is said of the end of a block; gives the name of a function, a call of which stands before it."""
        self.functions.append(f"llvm.func @mark.{len(self.marks)}()\n")
        self.marks.append("".join(f", !{name} {value.get_reference()}" for name, value in metadata.items()))
        return f"mark.{len(self.marks) - 1}"


class FunctionWriter:
    """Write one function, whose name in MLIR is given."""

    def __init__(self, function: Any, name: str, written: Written) -> None:
        self.function, self.name, self.written = function, name, written
        self.values: dict[int, str] = {}
        self.order = _dominators_first(function)
        self.blocks = {id(b): f"^b{i}" for i, b in enumerate(self.order)}
        self.lines: list[str] = []
        self.made = 0

    def write(self) -> str:
        """Write the function."""
        params = [f"{self._named(a)}: {of_type(a.type)}" for a in self.function.args]
        of = self.function.return_value.type
        back = "" if isinstance(of, ir.VoidType) else f" -> {of_type(of)}"
        for block in self.order:
            for instr in block.instructions:
                if not isinstance(instr.type, ir.VoidType):
                    self._named(instr)
        for at, block in enumerate(self.order):
            phis = [i for i in block.instructions if i.opname == "phi"]
            args = ", ".join(f"{self.values[id(p)]}: {of_type(p.type)}" for p in phis)
            if at:
                self.lines.append(f"{self.blocks[id(block)]}{f'({args})' if args else ''}:")
            for instr in block.instructions:
                self._instruction(instr)
        head = f"llvm.func @{self.name}({', '.join(params)}){back} {{\n"
        return head + "\n".join(self.lines) + "\n}\n"

    def _named(self, value: Any) -> str:
        return self.values.setdefault(id(value), f"%v{len(self.values)}")

    def _line(self, text: str, of: Any = None) -> str:
        """Write a line; gives the name of its value: a new one, or that of the instruction `of`."""
        name = f"%c{self.made}" if of is None else self.values[id(of)]
        self.made += of is None
        self.lines.append(f"  {name} = {text}")
        return name

    def _all(self, values: Any) -> list[str]:
        return [self._value(v) for v in values]

    def _value(self, value: Any) -> str:
        """Give the name of a value; a constant is written here."""
        if id(value) in self.values:
            return self.values[id(value)]
        if type(value) is ir.Constant:
            return self._constant(value.type, value.constant)
        return self._constant_aside(value)

    def _constant(self, ty: Any, held: Any) -> str:
        to = of_type(ty)
        if held is ir.Undefined:
            return self._line(f"llvm.mlir.undef : {to}")
        if held is None:
            return self._line(f"llvm.mlir.zero : {to}")
        if isinstance(ty, ir.IntType):
            return self._line(f"llvm.mlir.constant({_integer(int(held), ty.width)}) : {to}")
        if type(ty) in _FLOATS:
            return self._line(f"llvm.mlir.constant({_float(held, ty)} : {to}) : {to}")
        if isinstance(ty, ir.ArrayType | ir.LiteralStructType) and isinstance(held, list | tuple):
            whole = self._line(f"llvm.mlir.undef : {to}")
            for at, part in enumerate(held):
                whole = self._line(f"llvm.insertvalue {self._value(part)}, {whole}[{at}] : {to}")
            return whole
        return self._constant_aside(ir.Constant(ty, held))

    def _constant_aside(self, value: Any) -> str:
        of, said = value.type, f"{value.type} {value.get_reference()}"
        return self._calls(self.written.keep(of, [], lambda _: f"select i1 true, {said}, {said}", False), [], of)

    def _calls(self, name: str, given: list[Any], of: Any, as_value: Any = None) -> str:
        types = ", ".join(of_type(v.type) for v in given)
        text = f"llvm.call @{name}({', '.join(self._all(given))}) : ({types}) -> {of_type(of)}"
        if not isinstance(of, ir.VoidType):
            return self._line(text, as_value)
        self.lines.append(f"  {text}")
        return ""

    def _instruction(self, instr: Any) -> None:
        """Write one instruction, if the dialect has it as it is; keep it aside if not."""
        writer = getattr(self, f"_{instr.opname.replace(' ', '_')}", None)
        if instr.opname in _TWO and set(instr.flags) <= _WRAPS and not instr.metadata:
            flags = f" overflow<{', '.join(instr.flags)}>" if instr.flags else ""
            a, b = self._all(instr.operands)
            self._line(f"llvm.{instr.opname} {a}, {b}{flags} : {of_type(instr.type)}", instr)
        elif instr.opname in _CASTS:
            self._cast(instr)
        elif writer is None or instr.flags or (instr.opname in ("load", "store") and (instr.metadata or instr.align)):
            self._keep(instr)  # alignment too is lost on the way back to LLVM 7
        else:
            writer(instr)

    def _keep(self, instr: Any) -> None:
        if instr.opname in _ENDS:
            raise CuteError(f"the backend mlir has no {instr.opname}")
        operands = [v for v in dict.fromkeys(instr.operands) if id(v) in self.values]
        convergent = instr.opname == "call" and _is_convergent(instr)
        name = self.written.keep(instr.type, operands, lambda names: _text(instr, operands, names), convergent)
        self._calls(name, operands, instr.type, instr)

    def _cast(self, instr: Any) -> None:
        (value,), to = instr.operands, of_type(instr.type)
        if isinstance(value.type, ir.PointerType) and of_type(value.type) == to:
            self.lines.append(f"  {self.values[id(instr)]} = llvm.bitcast {self._value(value)} : {to} to {to}")
            return
        self._line(f"llvm.{instr.opname} {self._value(value)} : {of_type(value.type)} to {to}", instr)

    # ---------------------------------------------------------------- one method for each instruction, by its name
    def _icmp(self, instr: Any) -> None:
        a, b = self._all(instr.operands)
        self._line(f'llvm.icmp "{instr.op}" {a}, {b} : {of_type(instr.operands[0].type)}', instr)

    def _fcmp(self, instr: Any) -> None:
        a, b = self._all(instr.operands)
        of = {"false": "_false", "true": "_true"}.get(instr.op, instr.op)
        self._line(f'llvm.fcmp "{of}" {a}, {b} : {of_type(instr.operands[0].type)}', instr)

    def _select(self, instr: Any) -> None:
        c, a, b = self._all(instr.operands)
        self._line(f"llvm.select {c}, {a}, {b} : {of_type(instr.operands[0].type)}, {of_type(instr.type)}", instr)

    def _alloca(self, instr: Any) -> None:
        count = self._value(instr.operands[0]) if instr.operands else self._line("llvm.mlir.constant(1 : i64) : i64")
        of = of_type(instr.operands[0].type) if instr.operands else "i64"
        align = f" {{alignment = {instr.align} : i64}}" if instr.align else ""
        to = of_type(instr.type)
        self._line(f"llvm.alloca {count} x {of_type(instr.allocated_type)}{align} : ({of}) -> {to}", instr)

    def _load(self, instr: Any) -> None:
        (p,) = instr.operands
        align = f" {{alignment = {instr.align} : i64}}" if instr.align else ""
        self._line(f"llvm.load {self._value(p)}{align} : {of_type(p.type)} -> {of_type(instr.type)}", instr)

    def _store(self, instr: Any) -> None:
        v, p = instr.operands
        align = f" {{alignment = {instr.align} : i64}}" if instr.align else ""
        given = f"{self._value(v)}, {self._value(p)}"
        self.lines.append(f"  llvm.store {given}{align} : {of_type(v.type)}, {of_type(p.type)}")

    def _getelementptr(self, instr: Any) -> None:
        p, at, types = instr.pointer, [], [of_type(instr.pointer.type)]
        for i in instr.indices:
            if type(i) is ir.Constant and isinstance(i.constant, int) and abs(i.constant) < _SMALL:
                at.append(str(int(i.constant)))
            else:
                at.append(self._value(i))
                types.append(of_type(i.type))
        within = "inbounds " if instr.inbounds else ""
        to = f"({', '.join(types)}) -> {of_type(instr.type)}, {of_type(instr.source_etype)}"
        self._line(f"llvm.getelementptr {within}{self._value(p)}[{', '.join(at)}] : {to}", instr)

    def _extractvalue(self, instr: Any) -> None:
        whole = self._value(instr.aggregate)
        self._line(f"llvm.extractvalue {whole}{list(instr.indices)} : {of_type(instr.aggregate.type)}", instr)

    def _insertvalue(self, instr: Any) -> None:
        part, whole = self._value(instr.value), self._value(instr.aggregate)
        self._line(f"llvm.insertvalue {part}, {whole}{list(instr.indices)} : {of_type(instr.type)}", instr)

    def _extractelement(self, instr: Any) -> None:
        whole, at = instr.operands
        of = f"[{self._value(at)} : {of_type(at.type)}] : {of_type(whole.type)}"
        self._line(f"llvm.extractelement {self._value(whole)}{of}", instr)

    def _insertelement(self, instr: Any) -> None:
        whole, part, at = instr.operands
        of = f"[{self._value(at)} : {of_type(at.type)}] : {of_type(whole.type)}"
        self._line(f"llvm.insertelement {self._value(part)}, {self._value(whole)}{of}", instr)

    def _phi(self, instr: Any) -> None:
        """Nothing: what comes before the block hands it over."""

    def _to(self, block: Any, source: Any) -> str:
        given = []
        for phi in (i for i in block.instructions if i.opname == "phi"):
            value = next(v for v, b in phi.incomings if b is source)
            given.append((self._value(value), of_type(phi.type)))
        if not given:
            return self.blocks[id(block)]
        names, types = zip(*given)
        return f"{self.blocks[id(block)]}({', '.join(names)} : {', '.join(types)})"

    def _br(self, instr: Any) -> None:
        if instr.metadata:
            self.lines.append(f"  llvm.call @{self.written.mark(instr.metadata)}() : () -> ()")
        targets = [self._to(b, instr.parent) for b in instr.operands if id(b) in self.blocks]
        if len(targets) == 1:
            self.lines.append(f"  llvm.br {targets[0]}")
        else:
            self.lines.append(f"  llvm.cond_br {self._value(instr.operands[0])}, {', '.join(targets)}")

    def _switch(self, instr: Any) -> None:
        default, source = self._to(instr.default, instr.parent), instr.parent
        cases = ", ".join(f"{int(v.constant)}: {self._to(b, source)}" for v, b in instr.cases)
        value = self._value(instr.value)
        self.lines.append(f"  llvm.switch {value} : {of_type(instr.value.type)}, {default} [{cases}]")

    def _ret(self, instr: Any) -> None:
        if not instr.operands:
            self.lines.append("  llvm.return")
            return
        (value,) = instr.operands
        self.lines.append(f"  llvm.return {self._value(value)} : {of_type(value.type)}")

    _ret_void = _ret

    def _unreachable(self, _: Any) -> None:
        self.lines.append("  llvm.unreachable")


_ENDS = {"br", "ret", "switch", "unreachable", "indirectbr", "resume", "invoke"}


def _dominators_first(function: Any) -> list[Any]:
    """List a function's blocks, each behind those that every way to it leads through: in the order of a walk that
    leaves each block behind all that it leads to, backwards. MLIR's way back to LLVM 7 reads values in this order."""
    entry, left, seen = function.entry_basic_block, [], set()
    walk = [(entry, iter(_after(entry)))]
    seen.add(id(entry))
    while walk:
        block, rest = walk[-1]
        following = next((b for b in rest if id(b) not in seen), None)
        if following is None:
            left.append(block)
            walk.pop()
        else:
            seen.add(id(following))
            walk.append((following, iter(_after(following))))
    return left[::-1]


def _after(block: Any) -> list[Any]:
    end = block.terminator
    if end.opname == "switch":
        return [end.default, *(b for _, b in end.cases)]
    return [b for b in end.operands if hasattr(b, "instructions")]


def _is_convergent(call: Any) -> bool:
    """Say whether a call must stay where it is: it says so, or it is of a function, which may hold one that does."""
    return "convergent" in call.attributes or not isinstance(call.callee, ir.InlineAsm)


def _text(instr: Any, operands: list[Any], names: list[str]) -> str:
    """Write an instruction as LLVM does, with other names of its operands."""
    held, given = copy.copy(instr), dict(zip(map(id, operands), names))
    held.operands = [_Named(v.type, given[id(v)]) if id(v) in given else v for v in instr.operands]
    lines: list[str] = []
    held.descr(lines)
    said = "".join(lines).strip()
    if '%"' in said:
        raise CuteError(f"the backend mlir does not know how {instr.opname} is written: {said[:80]}")
    return said


class _Named:
    """A value in the text of an instruction."""

    def __init__(self, ty: Any, name: str) -> None:
        self.type, self._name = ty, name

    def get_reference(self) -> str:
        return self._name


def _integer(held: int, width: int) -> str:
    if width == 1:
        return "true" if held & 1 else "false"
    held &= (1 << width) - 1
    return f"{held - (held >> (width - 1) << width)} : i{width}"


def _float(held: float, ty: Any) -> str:
    """Write the bits of a number. A Python float is first rounded as llvmlite does."""
    _, as_float, as_bits = _FLOATS[type(ty)]
    (bits,) = struct.unpack(as_bits, struct.pack(as_float, held))
    return f"0x{bits:0{struct.calcsize(as_bits) * 2}X}"


def shell(function: Any, body: str) -> str:
    """Write the function that stands in the place of one, with all that is said of it, and calls its body."""
    lines: list[str] = []
    function.descr_prototype(lines)
    text, given = "".join(lines) + "{\n", []
    for at, arg in enumerate(function.args):
        text += cast_line(f"%given{at}", arg.get_reference(), arg.type, erased(arg.type))
        given.append(f"{erased(arg.type)} %given{at}")
    of = function.return_value.type
    call = f"call {erased(of)} @{body}({', '.join(given)})"
    if isinstance(of, ir.VoidType):
        return f"{text}  {call}\n  ret void\n}}\n"
    return f"{text}  %made = {call}\n{cast_line('%back', '%made', erased(of), of)}  ret {of} %back\n}}\n"
