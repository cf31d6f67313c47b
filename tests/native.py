# SPDX-License-Identifier: Apache-2.0
"""A compiled kernel on this machine's processor: the very LLVM IR that becomes PTX, run for some threads.

Numbers that come out of compiled code can so be checked with no GPU. Only kernels without instructions of PTX can
run this way: arithmetic, loads, stores and thread indices. Threads run one after the other.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
from numba.cuda import dispatcher, types

from numba_cute.compiler.bridge import tree
from numba_cute.compiler.bridge.object_types import Value
from numba_cute.compiler.bridge.typeofs import type_of_argument
from numba_cute.compiler.ground.building import building
from numba_cute.compiler.ground.target import compiling_for

SPECIAL = "llvm.nvvm.read.ptx.sreg.tid."
PRELUDE = """
@thread_index = global i32 0
define i32 @"thread_index.x"() {
  %t = load i32, i32* @thread_index
  ret i32 %t
}
define i32 @"thread_index.y"() { ret i32 0 }
define i32 @"thread_index.z"() { ret i32 0 }
declare double @llvm.floor.f64(double)
declare double @llvm.fabs.f64(double)
declare float @llvm.floor.f32(float)
declare float @llvm.fabs.f32(float)
define double @__nv_floor(double %a) {
  %r = call double @llvm.floor.f64(double %a)
  ret double %r
}
define double @__nv_fabs(double %a) {
  %r = call double @llvm.fabs.f64(double %a)
  ret double %r
}
define float @__nv_floorf(float %a) {
  %r = call float @llvm.floor.f32(float %a)
  ret float %r
}
define float @__nv_fabsf(float %a) {
  %r = call float @llvm.fabs.f32(float %a)
  ret float %r
}
declare double @llvm.maxnum.f64(double, double)
declare double @llvm.minnum.f64(double, double)
define double @__nv_fmax(double %a, double %b) {
  %r = call double @llvm.maxnum.f64(double %a, double %b)
  %x = bitcast double %a to i64
  %y = bitcast double %b to i64
  %z = and i64 %x, %y
  %zero = bitcast i64 %z to double
  %same = fcmp oeq double %a, %b
  %f = select i1 %same, double %zero, double %r
  ret double %f
}
define double @__nv_fmin(double %a, double %b) {
  %r = call double @llvm.minnum.f64(double %a, double %b)
  %x = bitcast double %a to i64
  %y = bitcast double %b to i64
  %z = or i64 %x, %y
  %zero = bitcast i64 %z to double
  %same = fcmp oeq double %a, %b
  %f = select i1 %same, double %zero, double %r
  ret double %f
}
define double @__nv_pow(double %a, double %b) {
  %r = call double @pow(double %a, double %b)
  ret double %r
}
define double @__nv_powi(double %a, i32 %b) {
  %c = sitofp i32 %b to double
  %r = call double @pow(double %a, double %c)
  ret double %r
}
define double @__nv_ceil(double %a) {
  %r = call double @llvm.ceil.f64(double %a)
  ret double %r
}
define float @__nv_fmodf(float %a, float %b) {
  %r = frem float %a, %b
  ret float %r
}
define double @__nv_fmod(double %a, double %b) {
  %r = frem double %a, %b
  ret double %r
}
define double @__nv_sqrt(double %a) {
  %r = call double @llvm.sqrt.f64(double %a)
  ret double %r
}
define i64 @__nv_llabs(i64 %a) {
  %n = sub i64 0, %a
  %c = icmp slt i64 %a, 0
  %r = select i1 %c, i64 %n, i64 %a
  ret i64 %r
}
define i64 @__nv_float2ll_rz(float %a) {
  %r = fptosi float %a to i64
  ret i64 %r
}
define i64 @__nv_llrint(double %a) {
  %v = call double @rint(double %a)
  %r = fptosi double %v to i64
  ret i64 %r
}
declare double @pow(double, double)
declare double @rint(double)
declare double @llvm.ceil.f64(double)
declare double @llvm.sqrt.f64(double)
@printed = global i32 0
define i32 @vprintf(i8* %format, i8* %values) {
  %n = load i32, i32* @printed
  %m = add i32 %n, 1
  store i32 %m, i32* @printed
  ret i32 0
}
"""
"""What stands for the GPU's thread indices, in a block of one dimension, and for its library."""


HERE = ("llvm.", "pow", "rint")
"""What of LLVM's and C's library the prelude calls."""


class NotNative(Exception):
    """The kernel has an instruction or function that only a GPU has."""


class Native:
    """A kernel for arguments like `args`, compiled for this processor; `run(threads, *args)` runs it."""

    def __init__(self, function: Any, args: tuple[Any, ...]) -> None:
        self._types = tuple(type_of_argument(a) for a in args)
        self._compile(getattr(function, "py_func", function))

    @classmethod
    def of_types(cls, function: Any, kinds: tuple[types.Type, ...]) -> Native:
        """The same, for arguments of these Numba types."""
        self = cls.__new__(cls)
        self._types = kinds
        self._compile(function)
        return self

    def _compile(self, function: Any) -> None:
        with compiling_for("sm_90a") as cc, building(function):
            self._take(dispatcher.compile_cuda(function, types.void, self._types, cc=cc, nvvm_options={}))

    @classmethod
    def of_compiled(cls, compiled: Any, args: tuple[Any, ...]) -> Native:
        """The same, for a kernel that Numba has compiled to LLVM IR."""
        self = cls.__new__(cls)
        self._types = tuple(type_of_argument(a) for a in args)
        self._take(compiled)
        return self

    def _take(self, compiled: Any) -> None:
        self._engine = _engine(compiled.library.llvm_strs)
        self._address = self._engine.get_function_address(compiled.fndesc.llvm_func_name)
        self._tid = ctypes.c_int32.from_address(self._engine.get_global_value_address("thread_index"))
        self._printed = ctypes.c_int32.from_address(self._engine.get_global_value_address("printed"))

    @property
    def printed(self) -> int:
        """How many times the threads that ran printed."""
        return self._printed.value

    def run(self, threads: int, *args: Any) -> None:
        packed = [x for ty, a in zip(self._types, args) for x in _packed(ty, a)]
        kernel = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, *map(type, packed))(self._address)
        returned = ctypes.c_void_p()
        for self._tid.value in range(threads):
            assert kernel(ctypes.addressof(returned), *packed) == 0


def compile_here(function: Any, ints: int) -> Callable[..., None]:
    """`function(out, *ints)`, with int32 arguments after an int32 array, as ``call(out, threads, *ints)``."""
    native = Native.of_types(function, (types.int32[::1], *(types.int32,) * ints))
    return lambda out, threads, *values: native.run(threads, out.reshape(-1), *values)


def _packed(ty: Any, value: Any) -> list[Any]:
    """An argument as the LLVM function takes it."""
    if isinstance(ty, types.Array):
        numbers = (value.size, value.itemsize, value.ctypes.data, *value.shape, *value.strides)
        return [ctypes.c_void_p(), ctypes.c_void_p(), *map(ctypes.c_int64, numbers)]
    if isinstance(ty, Value):  # as a launch packs it, which would refuse the host's memory
        leaves: list[Any] = []
        tree.align(value, ty.spec, leaves)
        return [x for t, leaf in zip(ty.leaves, leaves) for x in _packed(t, getattr(leaf, "value", leaf))]
    if isinstance(ty, types.BaseTuple):
        return [x for t, v in zip(ty, value) for x in _packed(t, v)]
    if isinstance(ty, types.Float):
        return [(ctypes.c_float if ty.bitwidth == 32 else ctypes.c_double)(value)]
    return [getattr(ctypes, f"c_{types.unliteral(ty)}")(value)]


def _engine(texts: list[str]) -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    modules = [llvm.parse_assembly(_for_this_machine(text)) for text in texts]
    module = modules[0]
    for other in modules[1:]:
        module.link_in(other)
    module.link_in(llvm.parse_assembly(PRELUDE))
    missing = sorted(f.name for f in module.functions if f.is_declaration and not f.name.startswith(HERE))
    missing += sorted(f.name for f in module.functions if f.name.startswith("llvm.nvvm"))
    if missing or " asm " in str(module):
        raise NotNative(", ".join(missing) or "PTX")
    module.verify()
    engine = llvm.create_mcjit_compiler(module, llvm.Target.from_default_triple().create_target_machine())
    engine.finalize_object()
    return engine


def _for_this_machine(text: str) -> str:
    text = re.sub(r"target datalayout = .*", "", text)
    text = re.sub(r"target triple = .*", f'target triple = "{llvm.get_process_triple()}"', text)
    return text.replace(SPECIAL, "thread_index.")
