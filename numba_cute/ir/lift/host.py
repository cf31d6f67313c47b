# SPDX-License-Identifier: Apache-2.0
"""The host's functions: what they are given, TMA atoms, and launches."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from xdsl.ir import SSAValue

from ...layout.basis import ScaledBasis
from ..dialect.notation import RawLayout
from ..dialect.printed_types import PrintedType
from ..dialect.ratios import Ratio
from ..python.numbers import number_of
from .spelling import is_dynamic, sequence, tuple_text
from .tuples import attributes
from .values import Expr, Tree
from .writer import Lifter, lifts


def checked(w: Lifter, t: PrintedType, name: str) -> None:
    """Say what a tensor has to be, as far as its type tells."""
    if t.name == "cute.memref":
        w.line(f"assert {name}.element_type is {w.element(t.data[0])}")
    layout = t.data[-1]
    layout = getattr(layout, "outer", layout)
    for path, value in _static_parts(layout.shape):
        w.line(f"assert {name}.shape{path} == {tuple_text(value)}")
    for path, extent, stride in _leaves(layout.shape, _of_elements(layout.stride)):
        if is_dynamic(stride) or extent == 1:
            continue
        free = f"{name}.shape{path} == 1 or " if is_dynamic(extent) else ""
        w.line(f"assert {free}{name}.stride{path} == {tuple_text(stride)}")


def _of_elements(stride: Any) -> Any:
    """Return strides of coordinates that count elements, as this library's do: where TMA takes elements for wider ones
    the module's count those, and one element is a fraction."""
    parts: dict[tuple[int, ...], int] = {}
    for d in Tree(stride).flat():
        if isinstance(d, ScaledBasis) and isinstance(d.value, Ratio):
            parts[d.mode] = math.lcm(parts.get(d.mode, 1), d.value.value.denominator)

    def scaled(d: Any) -> Any:
        if isinstance(d, tuple):
            return tuple(map(scaled, d))
        return d * parts[d.mode] if isinstance(d, ScaledBasis) and d.mode in parts else d

    return scaled(stride)


def _leaves(shape: Any, stride: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """List the leaves of a layout, with how they are reached: of an extent of one the stride is nobody's."""
    if isinstance(shape, tuple):
        for i, (s, d) in enumerate(zip(shape, stride, strict=True)):
            yield from _leaves(s, d, f"{path}[{i}]")
    else:
        yield path, shape, stride


def _static_parts(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """List the largest parts of a tuple that are static, with how they are reached."""
    if not _any_dynamic(value):
        yield path, value
    elif isinstance(value, tuple):
        for i, x in enumerate(value):
            yield from _static_parts(x, f"{path}[{i}]")


def _any_dynamic(value: Any) -> bool:
    return any(map(_any_dynamic, value)) if isinstance(value, tuple) else is_dynamic(value)


def taken(w: Lifter, argument: SSAValue, name: str) -> Expr:
    """Say what a parameter of the host's is: extents and strides that its type does not say are run-time numbers."""
    t = argument.type
    if isinstance(t, PrintedType) and t.name == "cute.memref" and argument in w.flow.values:
        checked(w, t, name)
        layout = t.data[-1]
        if isinstance(layout, RawLayout) and any(
            map(is_dynamic, (*Tree(layout.shape).flat(), *Tree(layout.stride).flat()))
        ):
            parts = [_stated(x, f"{name}.{part}") for part, x in (("shape", layout.shape), ("stride", layout.stride))]
            w.line(f"{name} = cute.make_tensor({name}.iterator, cute.make_layout({parts[0]}, stride={parts[1]}))")
    dtype = number_of(t)
    if dtype is not None and argument in w.flow.values:
        w.line(f"{name} = {w.cast(name, dtype)}")
    return Expr(name)


def _stated(value: Any, path: str) -> str:
    """Write a shape, or strides, as a type says them: a `?` is a run-time number, and what divides it is asked."""
    if isinstance(value, tuple):
        return sequence(_stated(x, f"{path}[{i}]") for i, x in enumerate(value))
    if not is_dynamic(value):
        return tuple_text(value)
    number = f"cute.Int{value.width}({path})"
    return number if value.divisor == 1 else f"cute.assume({number}, divby={value.divisor})"


@lifts("cute_nvgpu.atom.make_non_exec_tiled_tma_load", "cute_nvgpu.atom.make_non_exec_tiled_tma_store",
       "cute_nvgpu.atom.make_non_exec_tiled_tma_reduce")  # fmt: skip
def tma_atom(w: Lifter, op: Any) -> None:
    """A TMA atom, and the tensor of its coordinates."""
    tensor, smem, tile = op.operands
    found = attributes(op)
    made = _tma_op(w, op, found)
    multicast = found.get("num_multicast", 1)
    names = [w.local(hint) for hint in ("tma_atom", "tma_tensor")]
    args = [made, str(w.expr(tensor)), str(w.expr(smem)), str(w.expr(tile))]
    if multicast != 1:
        args.append(f"num_multicast={multicast}")
    internal = _internal(w, op)
    w.line(f"{', '.join(names)} = cute.nvgpu.cpasync.make_tiled_tma_atom({', '.join(args)}{internal})")
    for result, name in zip(op.results, names, strict=True):
        w.values[result] = Expr(name)


def _internal(w: Lifter, op: Any) -> str:
    """The type that TMA takes elements for, where it is another than theirs."""
    tensor, atom = op.operands[0].type, op.results[0].type
    fmt = atom.data[-1]
    elem = tensor.data[0]
    own = {"f16": "F16_RN", "bf16": "BF16_RN", "f32": "F32_RN", "tf32": "TF32_RN", "f4E2M1FN": "U4", "i8": "U8",
           "f8E4M3FN": "U8", "f8E5M2": "U8", "i32": "S32"}  # fmt: skip
    others = {"U16": "cute.Int16", "TF32_RN": "cute.TFloat32", "F32_RN": "cute.Float32", "U8": "cute.Uint8"}
    if own.get(elem) == fmt or fmt not in others:
        return ""
    return f", internal_type={others[fmt]}"


def _tma_op(w: Lifter, op: Any, found: dict[str, Any]) -> str:
    room = "cute.nvgpu.cpasync"
    if op.name.endswith("store"):
        return f"{room}.CopyBulkTensorTileS2GOp()"
    if op.name.endswith("reduce"):
        return f"{room}.CopyReduceBulkTensorTileS2GOp(cute.ReductionOp.{op.results[0].type.data[0].upper()})"
    kind = found["kind"]
    two = "2sm" in kind
    group = f"{room}.CtaGroup.TWO" if two else ""
    name = "CopyBulkTensorTileG2SMulticastOp" if "multicast" in kind else "CopyBulkTensorTileG2SOp"
    if not kind.startswith("sm_"):
        w.refuse(op, f"a TMA load of the kind {kind} is not lifted")
    return f"{room}.{name}({group})"


@lifts("cute.kernel_smem_size")
def smem_size(w: Lifter, op: Any) -> None:
    """The shared memory that a kernel allocates: what it needs is known of the kernel itself here."""
    w.values[w.root(op.results[0])] = Expr("0")


@lifts("cuda.launch_cfg.create")
def config(w: Lifter, op: Any) -> None:
    """Write the configuration of a launch."""
    block, smem, grid = op.operands[:3], op.operands[3], op.operands[4:7]
    w.values[op.results[0]] = {
        "grid": f"({', '.join(str(w.expr(v)) for v in grid)})",
        "block": f"({', '.join(str(w.expr(v)) for v in block)})",
        "smem": str(w.expr(smem)),
    }


@lifts("cuda.launch_cfg.cluster_dim")
def cluster(w: Lifter, op: Any) -> None:
    """The blocks of a cluster."""
    given = ", ".join(str(w.expr(v)) for v in op.operands[1:])
    if given != "1, 1, 1":
        w.values[w.root(op.operands[0])]["cluster"] = f"({given})"


@lifts("cuda.launch_cfg.cooperative", "cuda.launch_cfg.programmatic_stream_serialization_allowed")
def option(w: Lifter, op: Any) -> None:
    """Write the options of a launch: cooperative, or programmatic dependent launch."""
    if w.constant(op.operands[1]) != 0:
        name = "cooperative" if op.name.endswith("cooperative") else "pdl"
        w.values[w.root(op.operands[0])][name] = "True"


@lifts("cuda.launch_ex")
def launch(w: Lifter, op: Any) -> None:
    """A launch."""
    given = w.values[w.root(op.operands[0])]
    callee = {**op.attributes, **op.properties}["callee"]
    symbol = callee.nested_references.data[-1].data if callee.nested_references.data else callee.root_reference.data
    if symbol not in w.functions:
        w.refuse(op, f"the module has no kernel @{symbol}")
    options = ", ".join(f"{k}={v}" for k, v in given.items() if not (k == "smem" and v == "0"))
    args = ", ".join(str(w.expr(v)) for v in op.operands[1:])
    w.line(f"launch({w.functions[symbol]}, {options})({args})")


@lifts("cuda.cast")
def cast(w: Lifter, op: Any) -> None:
    """A stream, or the result of a launch, as a number: errors are exceptions here."""
    w.values[w.root(op.results[0])] = Expr("0") if number_of(op.results[0].type) is not None else Expr("None")


@lifts("cuda.return_if_error", "func.return")
def returned(w: Lifter, op: Any) -> None:
    """The end of the host's function: errors are exceptions here."""


__all__ = ["checked", "taken"]
