# SPDX-License-Identifier: Apache-2.0
"""The door to the CuTe IR, which alone needs xDSL: nothing of it is imported before somebody asks."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .compiler.host import absent
from .compiler.inspection.spelled import spelled_by

if TYPE_CHECKING:
    from .ir import Module

__all__ = ["inspect"]

spelled_by(lambda: importlib.import_module(".ir.text.spelling", __package__))


def load(name: str = "ir") -> ModuleType:
    """Import `numba_cute.ir`, which says what is missing where xDSL is not installed. name: of what asks for it, which
    refuses under Numba's own simulator, where there is no compiler to ask."""
    if absent.missing():
        absent.unavailable(name)()
    return importlib.import_module(".ir", __package__)


def inspect(kernel: Any, args: Any, arch: str = "sm_90a") -> Module:
    """Give a kernel as a module of the CuTe IR: control flow, operations with their types, source lines, and of each
    operation the PTX that it became.

    kernel: a ``@cuda.jit`` kernel, or a plain function. args: example arguments as a tuple, or a Numba signature.
    arch: the target, as "sm_90a". Raises CuteError for what `compile` refuses, but for the assembler's part,
    and where xDSL is not installed.

    Nothing is assembled or run. Printed, the module is text that `ir.parse` reads; `ir.to_kernel` makes a kernel of it.

        module = cute.inspect(kernel, (a, b))
        print(module)
        [op.attributes["ptx"] for op in module if op.name == "numba_cute.gemm"]

    >>> def kernel():
    ...     arch.sync_threads()
    >>> [op.name for op in cute.inspect(kernel, ())]
    ['builtin.module', 'func.func', 'nvvm.barrier', 'func.return']
    """
    module: Module = load("inspect").from_kernel(kernel, args, arch)
    return module
