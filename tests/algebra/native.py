# SPDX-License-Identifier: Apache-2.0
"""A compiled kernel on this machine's processor: the very LLVM IR that becomes PTX, run for some threads.

Numbers that come out of compiled code can so be checked with no GPU. Only kernels without instructions of PTX can
run this way: integer arithmetic, loads, stores and thread indices.
"""

from __future__ import annotations

import ctypes
import re
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numba.cuda import dispatcher, types

from numba_cute.compiler.target import compiling_for

TID = "llvm.nvvm.read.ptx.sreg.tid.x"
THREAD_INDEX = """
@thread_index = global i32 0
define i32 @"thread_index.x"() {
  %t = load i32, i32* @thread_index
  ret i32 %t
}
"""


def compile_here(function: Any, ints: int) -> Any:
    """`function(out, *ints)`, with int32 arguments after an int32 array, as ``call(out, threads, *ints)``."""
    with compiling_for("sm_90a") as cc:
        signature = (types.int32[::1], *(types.int32,) * ints)
        compiled = dispatcher.compile_cuda(function, types.void, signature, cc=cc, nvvm_options={})
    (text,) = compiled.library.llvm_strs
    engine = _engine(text)
    array = [ctypes.c_void_p] * 2 + [ctypes.c_int64] * 2 + [ctypes.c_void_p] + [ctypes.c_int64] * 2
    kernel = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, *array, *[ctypes.c_int32] * ints)(
        engine.get_function_address(compiled.fndesc.llvm_func_name)
    )
    tid = ctypes.c_int32.from_address(engine.get_global_value_address("thread_index"))

    def call(out: np.ndarray, threads: int, *values: int) -> None:
        returned = ctypes.c_void_p()
        for tid.value in range(threads):
            flat = (None, None, out.size, out.itemsize, out.ctypes.data, out.size, out.itemsize)
            assert kernel(ctypes.addressof(returned), *flat, *values) == 0

    call.engine = engine  # type: ignore[attr-defined]  # the code lives as long as this
    return call


def _engine(text: str) -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    text = re.sub(r"target datalayout = .*", "", text)
    text = re.sub(r"target triple = .*", f'target triple = "{llvm.get_process_triple()}"', text)
    text = re.sub(rf'declare i32 @"?{re.escape(TID)}"?\(\).*', "", text).replace(TID, "thread_index.x")
    module = llvm.parse_assembly(text + THREAD_INDEX)
    module.verify()
    engine = llvm.create_mcjit_compiler(module, llvm.Target.from_default_triple().create_target_machine())
    engine.finalize_object()
    return engine
