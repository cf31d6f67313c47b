# SPDX-License-Identifier: Apache-2.0
"""`NUMBA_CUTE_BACKEND=mlir`, an experiment: have kernels go through MLIR, in numba-cuda-mlir's libraries, to libNVVM.

What is lowered is the same. `dialect.py` writes it in MLIR's llvm dialect, MLIR's passes run over it, and that
package's way from there to the LLVM IR of libNVVM gives the text that stands in the place of what llvmlite wrote.
Without the setting nothing here is imported but this file.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ... import config
from ...seam import CuteError
from ..ground.building import building_kernel
from ..ground.versions import NUMBA_CUDA_MLIR

PASSES = "canonicalize{region-simplify=normal},cse,sroa,mem2reg,canonicalize{region-simplify=normal},cse"
"""The passes that MLIR runs: that package's own over the llvm dialect, and the two that it lacks, which make values of
local arrays. None of them moves a call to another place, or into a branch."""
_CHIP = "sm_90"
"""The way to LLVM 7's IR, which libNVVM takes for all targets, is the one of targets below sm_100; it asks no more."""


def choosing(compile: Callable[..., Any]) -> Callable[..., Any]:
    """Make of how Numba has a library's PTX made one that gives libNVVM what the setting `backend` says, for a kernel
    of this library."""

    def made(self: Any, cc: Any = None) -> Any:
        if config.current().backend is not None and building_kernel():
            self._llvm_strs = [through_mlir(module, "g" in self._nvvm_options) for module in self.modules]
        return compile(self, cc)

    return made


def through_mlir(module: Any, debug: bool = False) -> str:
    """Give a module's LLVM IR as MLIR leaves it. debug: whether it is to have line numbers.

    CuteError: numba-cuda-mlir is not there, or another version, or there is something in the module which MLIR, or its
    way back, cannot hold."""
    from .dialect import FunctionWriter, Written, shell

    written, text = Written(), str(module)
    if debug or "!DILocation" in text or "!DISubprogram" in text:
        raise _refused(module, "debug=True and lineinfo=True: the way back to LLVM 7 keeps no lines")
    for at, function in enumerate(f for f in module.functions if f.blocks):
        was, name = str(function), f"body.{at}"
        if text.count(was) != 1:
            raise _refused(module, f"{function.name} is not to be found in it")
        try:
            written.functions.append(FunctionWriter(function, name, written).write())
            text = text.replace(was, shell(function, name))
        except CuteError as e:
            raise _refused(module, str(e)) from None
    bodies = _bodies(_optimised("".join(written.functions)))
    called = re.findall(r"@(aside\.\d+)\(", bodies)
    for name in written.convergent:
        if called.count(name) > 1:
            raise _refused(module, f"MLIR copied an instruction that is convergent: {written.aside[name]}")
    return f"{text}\n{''.join(written.aside.values())}{_marked(bodies, written.marks)}"


def _refused(module: Any, why: str) -> CuteError:
    return CuteError(f"NUMBA_CUTE_BACKEND=mlir: {module.name}: {why}. Without this setting it compiles as usual")


def _bodies(text: str) -> str:
    """Take the functions out of LLVM's text, of which nothing else is needed; they are this module's own, and part of
    those that call them."""
    found = re.findall(r"^define .*?^}\n", text, re.MULTILINE | re.DOTALL)
    inlined = r"define internal \1 alwaysinline convergent {"
    return "".join(re.sub(r"^define (.*\)) \{$", inlined, f, count=1, flags=re.MULTILINE) for f in found)


def _marked(text: str, marks: list[str]) -> str:
    """Say of branches again what was said of them, for which calls stand: on loops, and on how likely they are."""
    done, said = [], ""
    for line in text.splitlines():
        mark = re.fullmatch(r"  call void @mark\.(\d+)\(\)", line)
        if mark:
            said = marks[int(mark[1])]
            continue
        if line.startswith("  br "):
            if line.startswith("  br i1 ") or "!prof" not in said:
                line += said
            said = ""
        elif line.startswith(("; <label>", "  switch", "  ret", "}")):
            said = ""
        done.append(line)
    return "\n".join(done) + "\n"


def _optimised(functions: str) -> str:
    """Give the LLVM IR of functions in MLIR's llvm dialect, after its passes."""
    of = _package()
    text = f"module attributes {{gpu.container_module}} {{ gpu.module @kernels {{\n{functions}}} }}\n"
    with of.context.get_context():
        module = of.ir.Module.parse(text)
        of.PassManager.parse(f"builtin.module(gpu.module({PASSES}))").run(module.operation)
        return _to_llvm(of, module)


def _package() -> Any:
    """Import numba-cuda-mlir, of the version that this is written for."""
    try:
        found = NUMBA_CUDA_MLIR.installed()
        of = importlib.import_module("numba_cuda_mlir.mlir_optimization")
    except ImportError as e:
        need = f"{NUMBA_CUDA_MLIR.name}=={NUMBA_CUDA_MLIR.tried[-1]}"
        raise CuteError(f"NUMBA_CUTE_BACKEND=mlir needs numba-cuda-mlir: pip install {need} ({e})") from e
    if found not in NUMBA_CUDA_MLIR.tried:
        raise NUMBA_CUDA_MLIR.refused("it is another version", "asks its private functions (NUMBA_CUTE_BACKEND=mlir)")
    return of


def _to_llvm(of: Any, module: Any) -> str:
    """Give the LLVM IR of a module, as that package makes it for LLVM 7; no GPU is asked."""
    here, library = Path(of.__file__).parent, of._get_llvm70_capi()
    llvm = os.environ.get("LIBLLVM7") or str(here / "lib" / "libLLVM-7.so")
    made, size, error = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_char_p()
    operation = of._get_op_ptr(of._get_single_gpu_module(module).operation)
    only_ir = (0, 1, 0, 0, 2, 0, 3, 2)  # no LTO, LLVM IR, no optimisation, no lines, libNVVM's version of its IR
    failed = library.llvm70_translate_gpu_module_from_op(
        operation, _CHIP.encode(), None, llvm.encode(), b"", b"", *only_ir, ctypes.byref(made), ctypes.byref(size),
        None, None, ctypes.byref(error),
    )  # fmt: skip
    try:
        if failed:
            raise CuteError(f"NUMBA_CUTE_BACKEND=mlir: its way to LLVM 7: {(error.value or b'').decode()}")
        return ctypes.string_at(made.value or 0, size.value).decode()
    finally:
        for held in (made, error):
            if held.value:
                library.llvm70_free(held)
