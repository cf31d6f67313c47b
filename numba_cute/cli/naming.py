# SPDX-License-Identifier: Apache-2.0
"""Names and arguments of a kernel, as every command takes them.

`FILE.py:KERNEL` is a kernel, or a function that launches some, of a file; `PACKAGE.MODULE:KERNEL` of a module that can
be imported. KERNEL is a Python expression of the file's names, so that `FILE.py:make_kernel(stages=4)` is one too.
Arguments are Python expressions likewise: `float32[64, 128]` is an array, `int32(5)` and `5` are numbers, and names are
those of the file, of `np` and of `cute`. Without arguments the file's own calls are taken (`launched.py`).
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np

from .. import dtypes
from ..seam import CuteError
from ..seam.marks.launches import launching

SPEC = "FILE.py:KERNEL"
ABOUT = (
    "FILE.py:KERNEL, or MODULE:KERNEL. KERNEL is Python of that file, as make_kernel(stages=4); without it, all that "
    "the file launches"
)
ABOUT_ARGUMENTS = (
    "what the kernel is called with, each as Python: 'float32[64, 128]' is an array, 5 and 'int32(5)' are numbers, "
    "names are the file's, np and cute; without any, the file is run and its own calls are taken"
)
_SHORT = {
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "i64": "int64", "i32": "int32",
    "i16": "int16", "i8": "int8", "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8",
    "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2",
}  # fmt: skip


class Element:
    """An element type in an argument: `float32[64, 128]` is an array of random numbers, `float32(2)` a number."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = np.dtype(dtype)

    def __getitem__(self, shape: Any) -> Any:
        shape = shape if isinstance(shape, tuple) else (shape,)
        if not all(isinstance(n, (int, np.integer)) and n >= 0 for n in shape):
            raise CuteError(f"{self.dtype.name}{list(shape)}: an array's extents are numbers from 0 on")
        rng = np.random.default_rng(0)
        if self.dtype.kind in "iub":
            return rng.integers(0, 2 if self.dtype.kind == "b" else 100, shape).astype(self.dtype)
        return rng.uniform(-1, 1, shape).astype(self.dtype)

    def __call__(self, value: Any) -> Any:
        return self.dtype.type(value)


def _elements() -> dict[str, Element]:
    known = {np.dtype(d.numpy).name: Element(d.numpy) for d in dtypes.WHOLE}
    return {**known, **{short: known[name] for short, name in _SHORT.items() if name in known}}


def split(spec: str) -> tuple[str, str]:
    """Take FILE.py:KERNEL apart; the kernel is "" where none is named."""
    for end in (".py:", ".ipynb:"):
        at = spec.find(end)
        if at >= 0:
            return spec[: at + len(end) - 1], spec[at + len(end) :]
    if spec.endswith(".py"):
        return spec, ""
    file, _, name = spec.partition(":")
    return file, name


def module_of(file: str) -> Any:
    """Import a file, or a module by its name. CuteError: there is none, or it cannot be imported."""
    path = Path(file)
    if file.endswith(".py"):
        if not path.is_file():
            raise CuteError(f"there is no file {file!r}: name a kernel as {SPEC}")
        folder = str(path.resolve().parent)
        if folder not in sys.path:
            sys.path.insert(0, folder)
        file = path.stem
    try:
        with launching(lambda *_: None):  # a file may launch kernels when it is imported
            found = importlib.import_module(file)
    except CuteError:
        raise
    except ImportError as e:
        raise CuteError(f"{path}: {e}") from e
    except Exception as e:  # the user's module may do anything
        raise CuteError(f"{path}: {type(e).__name__}: {e}") from e
    loaded = getattr(found, "__file__", None)
    if path.suffix == ".py" and loaded is not None and Path(loaded).resolve() != path.resolve():
        raise CuteError(f"{path}: a module of that name is loaded already, from {loaded}: give the file another name")
    return found


def evaluated(text: str, module: Any, what: str) -> Any:
    """Evaluate Python of the command line with a module's names. CuteError: it raises. what: it is, in the message."""
    import numba_cute

    space = {"np": np, "cute": numba_cute, **_elements(), **vars(module)}
    try:
        return eval(text, space)
    except CuteError:
        raise
    except Exception as e:  # the user's Python may do anything
        raise CuteError(f"{what} {text!r}: {type(e).__name__}: {e}") from e


def kernel_of(spec: str) -> tuple[Any, Any]:
    """Give what FILE.py:KERNEL names, and its module. CuteError: there is no such file or kernel."""
    file, name = split(spec)
    module = module_of(file)
    if not name:
        raise CuteError(f"{spec}: name a kernel of it, as {file}:{next(iter(kernels_in(vars(module))), 'kernel')}")
    if name.isidentifier() and not hasattr(module, name):
        known = kernels_in(vars(module))
        raise CuteError(f"{file} has no kernel {name!r}; " + (f"it has {', '.join(known)}" if known else "it has none"))
    found = evaluated(name, module, spec)
    if not callable(found):
        raise CuteError(f"{spec} is {type(found).__name__}, and no kernel")
    return found, module


def kernels_in(space: dict[str, Any]) -> list[str]:
    """List the kernels among a module's globals, and its functions that launch some."""
    return [n for n, v in space.items() if hasattr(v, "py_func") or hasattr(v, "__cute_host_function__")]


def arguments_of(texts: list[str], module: Any) -> tuple[Any, ...]:
    """Evaluate a kernel's arguments."""
    return tuple(evaluated(text, module, "argument") for text in texts)


def add_kernel(parser: argparse.ArgumentParser, arguments: bool = True) -> None:
    """Add what names a kernel to a command's options."""
    parser.add_argument("kernel", metavar=SPEC, help=ABOUT)
    if arguments:
        parser.add_argument("arguments", nargs="*", metavar="ARGUMENT", help=ABOUT_ARGUMENTS)


def shown(value: Any) -> str:
    """Write an argument in a few words."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype.name}{list(value.shape)}"
    text = f"{value.dtype.name}({value})" if isinstance(value, np.generic) else repr(value)
    return text if len(text) <= 40 else f"{type(value).__name__}"
