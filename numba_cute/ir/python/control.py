# SPDX-License-Identifier: Apache-2.0
"""Control flow (xDSL's `scf`, calls and returns of `func`, `cf.assert`) and threads (`gpu`) as Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects import arith, cf, func, gpu, scf
from xdsl.ir import Block, Operation, SSAValue

from ...arch import index
from ...compiler.host import kernels
from ...dtypes import Boolean, Int32, Int64
from .writer import Writer, writes


def _yielded(block: Block) -> Sequence[SSAValue]:
    """Return the values that the terminator of a block gives."""
    last = block.last_op
    return last.operands if isinstance(last, scf.YieldOp) else ()


def _give(w: Writer, block: Block, targets: list[str]) -> None:
    """Write a block, and assign what it yields."""
    w.block(block)
    values = _yielded(block)
    if block.last_op is not None and values:
        with w.at(block.last_op):
            w.give(targets, values)


@writes(scf.ForOp)
def loop(w: Writer, op: scf.ForOp) -> None:
    """A `for` over a range; what it carries are variables."""
    block = op.body.block
    counter, *carried = block.args
    variables = _carry(w, carried, op.iter_args)
    dtype = w.dtype(op.lb)
    if dtype is Boolean:
        w.refuse(op, "its counter is an i1; extend the bounds first")
    name = w.variable(counter)
    narrow = dtype.width < 32
    running = w.temporary(name) if narrow else name

    def bound(value: SSAValue) -> str:
        return w.use(value) if dtype is Int64 else w.cast(w.typed(value), Int32) if narrow else w.typed(value)

    bounds = [bound(op.ub)]
    if w.constant(op.lb) != 0 or w.constant(op.step) != 1:
        bounds.insert(0, bound(op.lb))
    if w.constant(op.step) != 1:
        bounds.append(bound(op.step))
    with w.indented(f"for {running} in range({', '.join(bounds)}):"):
        if narrow:
            w.set(counter, running)
        _give(w, block, variables)
    for result, variable in zip(op.res, variables):
        w.values[result] = variable


def _carry(w: Writer, arguments: Sequence[SSAValue], initial: Sequence[SSAValue]) -> list[str]:
    """Make variables of what a loop carries, and assign their first values."""
    variables = [w.variable(a) for a in arguments]
    w.give(variables, initial)
    return variables


@writes(scf.WhileOp)
def while_loop(w: Writer, op: scf.WhileOp) -> None:
    """A `while` of its test, or a `while True` that is left where its condition is false."""
    before, after = op.before_region.block, op.after_region.block
    variables = _carry(w, before.args, op.arguments)
    test = _test(w, before)
    if test is not None:
        for argument, result, variable in zip(after.args, op.res, variables):
            w.values[argument] = w.values[result] = variable
        with w.indented(f"while {test}:"):
            _give(w, after, variables)
        return
    passed = [w.variable(a) for a in after.args]
    with w.indented("while True:"):
        w.block(before)
        condition = before.last_op
        assert isinstance(condition, scf.ConditionOp)
        with w.at(condition):
            w.give(passed, condition.args)
            with w.indented(f"if not {w.typed(condition.condition)}:"):
                w.line("break")
        _give(w, after, variables)
    for result, variable in zip(op.res, passed):
        w.values[result] = variable


def _test(w: Writer, before: Block) -> str | None:
    """Return the test of a `while` as one expression, as Python has it; None if it is none.

    It is one if all values are used once, and in the order in which Python comes to them, and if what is carried goes
    on as it came. Python then tests in front of the loop and at its end.
    """
    condition = before.last_op
    assert isinstance(condition, scf.ConditionOp)
    if tuple(condition.args) != tuple(before.args):
        return None
    wanted = [op for op in before.ops if op is not condition and not isinstance(op, arith.ConstantOp)]
    if _operations(condition.condition, before) != wanted:
        return None
    return w.expression_of([op for op in before.ops if op is not condition], condition.condition)


def _operations(value: SSAValue, block: Block) -> list[Operation]:
    """List the operations of a block that make a value, but for constants, in the order in which Python comes to
    them."""
    op = value.owner
    if not isinstance(op, Operation) or op.parent is not block or isinstance(op, arith.ConstantOp):
        return []
    return [*(o for operand in op.operands for o in _operations(operand, block)), op]


@writes(scf.IfOp)
def branch(w: Writer, op: scf.IfOp) -> None:
    """An `if`, whose results both branches assign."""
    results = [w.variable(r) for r in op.output]
    with w.indented(f"if {w.typed(op.cond)}:"):
        _give(w, op.true_region.block, results)
    if op.false_region.blocks and (results or _writes_any(op.false_region.block)):
        with w.indented("else:"):
            _give(w, op.false_region.block, results)


def _writes_any(block: Block) -> bool:
    return block.first_op is not None and block.first_op is not block.last_op


@writes(scf.IndexSwitchOp)
def switch(w: Writer, op: scf.IndexSwitchOp) -> None:
    """An `if` for each case."""
    results = [w.variable(r) for r in op.output]
    cases = op.cases.get_values()
    if not cases:
        return _give(w, op.default_region.block, results)
    for i, (case, region) in enumerate(zip(cases, op.case_regions)):
        with w.indented(f"{'elif' if i else 'if'} {w.typed(op.arg)} == {case}:"):
            _give(w, region.block, results)
    with w.indented("else:"):
        _give(w, op.default_region.block, results)
    return None


@writes(scf.ExecuteRegionOp)
def region(w: Writer, op: scf.ExecuteRegionOp) -> None:
    """The lines of a block."""
    if len(op.region.blocks) != 1:
        w.refuse(op, f"its region has {len(op.region.blocks)} blocks: say their control flow by scf")
    _give(w, op.region.block, [w.variable(r) for r in op.outs])


@writes(func.CallOp)
def call(w: Writer, op: func.CallOp) -> None:
    """A call of a function of the module."""
    name = str(op.callee.root_reference.data)
    if name not in w.functions:
        w.refuse(op, f"the module has no function @{name}")
    targets = ", ".join(w.variable(r) for r in op.res)
    w.line(f"{targets}{' = ' if targets else ''}{w.functions[name]}({', '.join(w.all(op.arguments))})")


@writes(func.ReturnOp, gpu.ReturnOp)
def returned(w: Writer, op: Any) -> None:
    """The end of a function."""
    if op.operands:
        w.line(f"return {', '.join(w.all(op.operands))}")


@writes(cf.AssertOp)
def asserted(w: Writer, op: cf.AssertOp) -> None:
    """An `assert`."""
    w.line(f"assert {w.typed(op.arg)}, {op.msg.data!r}")


# Threads


def _cuda(w: Writer) -> str:
    return w.names.of(kernels.NUMBA_CUDA, "cuda")


_INDICES: dict[type[Operation], str] = {
    gpu.ThreadIdOp: "threadIdx", gpu.BlockIdOp: "blockIdx", gpu.BlockDimOp: "blockDim", gpu.GridDimOp: "gridDim",
}  # fmt: skip


@writes(*_INDICES)
def indices(w: Writer, op: Any) -> None:
    """An index or a size, which CUDA has in 32 bits."""
    w.set(op.result, f"{_cuda(w)}.{_INDICES[type(op)]}.{op.dimension.data}")


@writes(gpu.GlobalIdOp)
def global_index(w: Writer, op: gpu.GlobalIdOp) -> None:
    """A thread's index in the grid."""
    cuda, d = _cuda(w), op.dimension.data
    w.set(op.result, f"{cuda}.blockIdx.{d} * {cuda}.blockDim.{d} + {cuda}.threadIdx.{d}", Int64)


@writes(gpu.LaneIdOp)
def lane(w: Writer, op: gpu.LaneIdOp) -> None:
    """A thread's index in its warp."""
    w.set(op.result, f"{w.names.of(index.lane_idx, 'lane_idx')}()")


@writes(gpu.SubgroupIdOp)
def warp(w: Writer, op: gpu.SubgroupIdOp) -> None:
    """The index of a thread's warp in its block."""
    w.set(op.result, f"{w.names.of(index.warp_idx, 'warp_idx')}()")


@writes(gpu.SubgroupSizeOp)
def warp_size(w: Writer, op: gpu.SubgroupSizeOp) -> None:
    """The threads of a warp."""
    w.set(op.result, str(index.WARP_SIZE))


@writes(gpu.NumSubgroupsOp)
def warps(w: Writer, op: gpu.NumSubgroupsOp) -> None:
    """The warps of a block."""
    dim = f"{_cuda(w)}.blockDim"
    size = index.WARP_SIZE
    w.set(op.result, f"({dim}.x * {dim}.y * {dim}.z + {size - 1}) // {size}", Int64)


@writes(gpu.BarrierOp)
def barrier(w: Writer, op: gpu.BarrierOp) -> None:
    """The barrier of a block."""
    w.line(f"{_cuda(w)}.syncthreads()")
