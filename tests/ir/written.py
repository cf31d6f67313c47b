# SPDX-License-Identifier: Apache-2.0
"""Kernels written in the IR, for tests: made of text, and run in both engines."""

from __future__ import annotations

import numpy as np

import numba_cute as cute
from numba_cute import ir
from numba_cute.ir.kernels import to_kernel, to_python

from .. import native

TARGET = "sm_80"
NUMPY = {
    "i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "index": np.int64,
    "f32": np.float32, "f64": np.float64, "f16": np.float16, "ui32": np.uint32,
}  # fmt: skip


def kernel_of(source, name=None):
    return to_kernel(ir.parse(source, "test.mlir"), name)


def python_of(source):
    return to_python(ir.parse(source, "test.mlir"))


THREAD = '%t = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index'


def both(kernel, threads, outputs, *inputs):
    """Run in the simulator and compiled on this processor; gives the outputs of each."""
    out = []
    for run in ("simulator", "compiled"):
        held = [o.copy() for o in outputs]
        if run == "simulator":
            cute.simulate(kernel)[1, threads](*inputs, *held)
        else:
            native.Native(kernel, (*inputs, *held)).run(threads, *inputs, *held)
        out.append((run, held))
    return out


def operations(inputs, results, lines):
    """A kernel of one operation a line: %a, %b, … are the inputs of types `inputs`, and %r0, %r1, … go to one array of
    `results`' types each."""
    names = [*"abc"][: len(inputs)]
    params = [f"%{n}s: memref<?x{t}>" for n, t in zip(names, inputs)]
    params += [f"%o{i}: memref<?x{t}>" for i, t in enumerate(results)]
    body = [THREAD]
    body += [f"%{n} = memref.load %{n}s[%t] : memref<?x{t}>" for n, t in zip(names, inputs)]
    body += lines
    body += [f"memref.store %r{i}, %o{i}[%t] : memref<?x{t}>" for i, t in enumerate(results)]
    text = "\n  ".join(body)
    return (
        f"func.func @operations({', '.join(params)}) attributes {{numba_cute.kernel}} {{\n  {text}\n  func.return\n}}\n"
    )
