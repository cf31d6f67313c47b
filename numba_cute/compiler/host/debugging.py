# SPDX-License-Identifier: Apache-2.0
"""Debugging: Numba's debug information of values that take no room, for all that layouts and the like are stands in
their types, and the exceptions of kernels of `debug=True`."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..ground import llvmlite as ir
from ..ground.numba_cuda import UniTupleModel, driver


def telling_of_nothing(var_type: Callable[..., Any]) -> Callable[..., Any]:
    """Make of Numba's `DIBuilder._var_type` one that knows of tuples whose items have no size, by which it divides."""

    def told(self: Any, lltype: Any, size: int, datamodel: Any = None) -> Any:
        if isinstance(datamodel, UniTupleModel) and not self.cgctx.get_abi_sizeof(lltype.element):
            lltype, datamodel = ir.LiteralStructType([lltype.element] * lltype.count), None
        return var_type(self, lltype, size, datamodel=datamodel)

    return told


@contextmanager
def raising_of_kernel(kernel: Any, stream: Any) -> Iterator[None]:
    """Around a launch: raise what a thread of the kernel raised, if it was compiled with `debug=True`."""
    if not kernel.debug:
        yield
        return
    cufunc = kernel._codelibrary.get_cufunc()
    memory, _ = cufunc.module.get_global_symbol(f"{cufunc.name}__errcode__")
    memory.memset(0, stream=stream)
    yield
    code = _word(cufunc, "errcode")
    if code:
        raise _exception(kernel, cufunc, code)


def _word(cufunc: Any, name: str) -> int:
    memory, size = cufunc.module.get_global_symbol(f"{cufunc.name}__{name}__")
    value = ctypes.c_int()
    driver.device_to_host(ctypes.addressof(value), memory, size)
    return value.value


def _exception(kernel: Any, cufunc: Any, code: int) -> BaseException:
    thread, block = ([_word(cufunc, f"{what}{axis}") for axis in "zyx"] for what in ("tid", "ctaid"))
    kind, args, where = kernel.call_helper.get_exception(code)
    at = ""
    if where is not None:
        symbol, path, line = where
        at = f"In function {symbol!r}, file {os.path.abspath(path)}, line {line}, "
    said = f"{at}tid={thread} ctaid={block}"
    found: BaseException = kind(f"{said}: {args[0]}", *args[1:]) if args else kind(said)
    return found
