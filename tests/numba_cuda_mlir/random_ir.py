# SPDX-License-Identifier: Apache-2.0
"""Random functions of LLVM IR, and running what llvmlite wrote and what came back from MLIR on this processor."""

from __future__ import annotations

import ctypes
import random
import re

from llvmlite import binding, ir
from numba.cuda.cudadrv import nvvm

INTS = [ir.IntType(w) for w in (8, 16, 32, 64)]
FLOATS = [ir.FloatType(), ir.DoubleType()]
I1, I32, I64 = ir.IntType(1), ir.IntType(32), ir.IntType(64)
PAIR = ir.LiteralStructType([I32, ir.ArrayType(ir.DoubleType(), 3), I64])


def module() -> ir.Module:
    """An empty module, as numba-cuda makes one."""
    made = ir.Module(name="random")
    made.triple, made.data_layout = "nvptx64-nvidia-cuda", nvvm.NVVM().data_layout
    nvvm.add_ir_version(made)
    return made


class Random:
    """A random function `f` of two i64, which gives an i64 of all that it computed."""

    def __init__(self, seed: int) -> None:
        self.r, self.module = random.Random(seed), module()
        self.f = ir.Function(self.module, ir.FunctionType(I64, [I64, I64]), "f")
        self.b = b = ir.IRBuilder(self.f.append_basic_block("entry"))
        self.room, self.total = b.alloca(PAIR), b.alloca(I64)
        b.store(ir.Constant(PAIR, None), self.room)
        b.store(I64(7), self.total)
        self.values = list(self.f.args)
        for _ in range(6):
            self.r.choice([self.straight, self.branch, self.loop, self.choose, self.memory])()
        b.ret(b.load(self.total))

    def pick(self) -> ir.Value:
        return self.r.choice([*self.values, I64(self.r.choice([0, 1, -1, 255, 1 << 40, -(1 << 63)]))])

    def tell(self, value: ir.Value) -> None:
        """Have a value count, and be picked."""
        mixed = self.b.add(self.b.mul(self.b.load(self.total), I64(6364136223846793005)), value)
        self.b.store(self.b.xor(mixed, self.b.lshr(mixed, I64(29))), self.total)

    def straight(self) -> None:
        self.values += [self.number(), self.real(), self.vector()]
        for value in self.values[-3:]:
            self.tell(value)

    def number(self) -> ir.Value:
        b, r, ty = self.b, self.r, self.r.choice(INTS)
        x, y = (b.trunc(self.pick(), ty) if ty is not I64 else self.pick() for _ in range(2))
        small = b.or_(b.and_(y, ty(0x3E)), ty(1))
        named = r.choice(["add", "sub", "mul", "and_", "or_", "xor"])
        divided = getattr(b, r.choice(["sdiv", "udiv", "srem", "urem"]))(x, small)
        shifted = getattr(b, r.choice(["shl", "lshr", "ashr"]))(x, b.and_(y, ty(ty.width - 1)))
        less = b.icmp_signed(r.choice(["<", "<=", "==", "!="]), x, shifted)
        below = b.icmp_unsigned(r.choice(["<", ">", ">="]), divided, y)
        bits = b.lshr(ty(-1), ty(3))
        safe = b.add(b.and_(x, b.lshr(bits, ty(1))), b.and_(y, b.lshr(bits, ty(1))), flags=("nuw", "nsw"))
        done = b.select(b.and_(less, below), b.add(safe, shifted), b.sub(getattr(b, named)(x, y), divided))
        if ty is I64:
            return done
        return r.choice([b.sext, b.zext])(done, I64)

    def real(self) -> ir.Value:
        b, r, ty = self.b, self.r, self.r.choice(FLOATS)
        x, y = (b.sitofp(b.ashr(self.pick(), I64(50)), ty) for _ in range(2))
        z = getattr(b, r.choice(["fadd", "fsub", "fmul"]))(x, b.fdiv(y, ty(r.choice([3.0, -0.1, 1e30]))))
        z = b.fadd(z, ty(0.1), flags=r.choice([(), ("nnan",)]))
        compare = getattr(b, r.choice(["fcmp_ordered", "fcmp_unordered"]))(r.choice(["<", "==", "!=", ">="]), z, y)
        z = b.select(compare, z, b.fsub(ty(-0.0), x))
        z = b.fptrunc(b.fadd(z, ty(1)), FLOATS[0]) if ty is FLOATS[1] else b.fpext(z, FLOATS[1])
        return b.zext(b.bitcast(z, I32), I64) if z.type is FLOATS[0] else b.bitcast(z, I64)

    def vector(self) -> ir.Value:
        b, of = self.b, ir.VectorType(I32, 4)
        v = b.insert_element(ir.Constant(of, [1, -2, 3, 4]), b.trunc(self.pick(), I32), I32(self.r.randrange(4)))
        v = b.add(b.mul(v, v), ir.Constant(of, [9, 8, 7, 6]))
        v = b.shuffle_vector(v, ir.Constant(of, ir.Undefined), ir.Constant(of, [3, 1, 0, 2]))
        pair = b.insert_value(ir.Constant(PAIR, None), b.extract_element(v, I32(self.r.randrange(4))), 0)
        pair = b.insert_value(pair, self.pick(), 2)
        return b.add(b.sext(b.extract_value(pair, 0), I64), b.extract_value(pair, 2))

    def memory(self) -> None:
        b, at = self.b, self.b.and_(self.pick(), I64(1))
        place = b.gep(self.room, [I64(0), I32(1), at], inbounds=True)
        b.store(b.sitofp(b.ashr(self.pick(), I64(40)), FLOATS[1]), place)
        other = b.load(b.gep(self.room, [I32(0), I32(1), I32(self.r.randrange(3))]))
        words = b.bitcast(self.room, ir.PointerType(I32))
        b.store(b.trunc(self.pick(), I32), words)
        odd = b.load(b.bitcast(b.gep(b.bitcast(words, ir.PointerType(INTS[0])), [I64(9)]), ir.PointerType(I32)))
        odd.align = 1
        self.tell(b.xor(b.add(b.bitcast(other, I64), b.zext(odd, I64)), b.sext(b.load(words), I64)))

    def branch(self) -> None:
        with self.b.if_else(self.b.icmp_signed("<", self.pick(), self.pick())) as (yes, no):
            for side in (yes, no):
                with side:
                    self.inside(self.straight)

    def inside(self, do) -> None:
        """Do something whose values nobody picks later."""
        held = list(self.values)
        do()
        self.values = held

    def loop(self) -> None:
        b, before = self.b, self.b.block
        again, out = self.f.append_basic_block("again"), self.f.append_basic_block("out")
        most = b.and_(self.pick(), I64(7))
        b.branch(again)
        b.position_at_end(again)
        i = b.phi(I64)
        self.values.append(i)
        self.inside(self.branch)
        self.values.remove(i)
        following = b.add(i, I64(1))
        i.add_incoming(I64(0), before)
        i.add_incoming(following, b.block)
        b.cbranch(b.icmp_unsigned("<", following, most), again, out)
        b.position_at_end(out)

    def choose(self) -> None:
        b = self.b
        blocks, out = [self.f.append_basic_block(n) for n in "xyz"], self.f.append_basic_block("out")
        switch = b.switch(b.and_(self.pick(), I64(3)), blocks[0])
        switch.add_case(I64(1), blocks[1])
        switch.add_case(I64(2), blocks[2])
        switch.add_case(I64(3), blocks[1])
        found = ir.IRBuilder(out).phi(I64)
        for block in blocks:
            b.position_at_end(block)
            self.inside(self.straight)
            found.add_incoming(self.pick(), b.block)
            b.branch(out)
        b.position_at_end(out)
        self.tell(found)


_POINTER = re.compile(r"(?:\{[^{}]*\}|\[[^\[\]]*\]|<\d[^<>]*>|\b(?:i\d+|half|float|double|ptr)\b) ?\*+")


def run(text: str, pairs) -> list[int]:
    """Run `f` of LLVM IR with typed pointers, which today's LLVM does not read, on this processor."""
    text = re.sub(r"^(target|;|!).*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"^@.*$", "", text, flags=re.MULTILINE)
    while _POINTER.search(text):
        text = _POINTER.sub("ptr", text)
    parsed = binding.parse_assembly(text)
    parsed.verify()
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    engine = binding.create_mcjit_compiler(parsed, binding.Target.from_default_triple().create_target_machine(opt=0))
    engine.finalize_object()
    f = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_int64, ctypes.c_int64)(engine.get_function_address("f"))
    return [f(*pair) for pair in pairs]
