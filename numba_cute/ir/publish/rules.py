# SPDX-License-Identifier: Apache-2.0
"""The functions of the API that do the same as operations of the published dialect, or those that the CuTe DSL prints.

A rule has the operation's name, its function, and the function's parameters that are operands, in their order, each
with the kind of type that it is written as: "value" as it is, "domain" too, or a tuple as an int_tuple; "tiler" as a
tile; else the kind of a tuple. A parameter with `?` may be left out, with its operand. Behind them stand the parameters
that are attributes.
"""

from __future__ import annotations

import functools
import inspect
from dataclasses import dataclass
from typing import Any

import numba_cute as cute

from ...seam.guards import facade
from ..dialect import operations
from ..dialect.spelled import OPERATIONS as PRINTED

_SAME = """
cute.ceil_div             ; input:int_tuple, tiler:int_tuple
cute.coalesce             ; input:value, target_profile?:coord
cute.complement           ; input:value, cotarget?:shape
cute.composition          ; lhs:value, rhs:tiler
cute.cosize               ; a:value ; mode
cute.crd2idx              ; coord:coord, layout:domain
cute.elem_less            ; lhs:coord, rhs:coord
cute.filter               ; input:value
cute.filter_zeros         ; input:value
cute.flat_divide          ; target:value, tiler:tiler
cute.flat_product         ; block:value, tiler:value
cute.flatten              ; a:domain
cute.get_shape            ; input:value
cute.get_stride           ; input:value
cute.group_modes          ; input:value ; begin, end
cute.idx2crd              ; idx:int_tuple, shape:shape
cute.left_inverse         ; input:value
cute.local_tile           ; input:value, tiler:tiler, coord:coord ; proj
cute.logical_divide       ; target:value, tiler:tiler
cute.logical_product      ; block:value, tiler:value
cute.make_composed_layout ; inner:value, offset:int_tuple, outer:value
cute.make_identity_layout ; shape:shape
cute.make_identity_tensor ; shape:shape
cute.make_layout          ; shape:shape, stride?:stride
cute.make_layout_like     ; input:value
cute.make_ordered_layout  ; shape:shape, order:int_tuple
cute.raked_product        ; block:value, tiler:value
cute.blocked_product      ; block:value, tiler:value
cute.recast_layout        ; src_layout:value ; new_type_bits, old_type_bits
cute.right_inverse        ; input:value
cute.select               ; input:value ; mode
cute.shape_div            ; lhs:shape, rhs:shape
cute.size                 ; a:domain ; mode
cute.tile_to_shape        ; atom:value, trg_shape:shape, order:int_tuple
cute.tiled_divide         ; target:value, tiler:tiler
cute.tiled_product        ; block:value, tiler:value
cute.zipped_divide        ; target:value, tiler:tiler
cute.zipped_product       ; block:value, tiler:value
cute.slice=slice_         ; src:value, coord:coord
cute.make_view=make_tensor ; iterator:value, layout:value
cute.copy                 ; atom:value, src:value, dst:value, pred?:value
"""


@dataclass(frozen=True)
class Parameter:
    """A parameter that is an operand. kind: of what it is written as. optional: whether it may be left out."""

    name: str
    kind: str
    optional: bool = False


@dataclass(frozen=True)
class Rule:
    """A published operation and the function that it means. attributes: the parameters that are attributes, which have
    their names."""

    name: str
    function: Any
    parameters: tuple[Parameter, ...]
    attributes: tuple[str, ...] = ()

    @functools.cached_property
    def signature(self) -> inspect.Signature:
        """The function's."""
        return inspect.signature(facade.plain(self.function))


def _rule(line: str) -> Rule:
    head, operands, *attributes = (part.strip() for part in line.split(";"))
    name, _, function = head.partition("=")
    parameters = []
    for part in operands.split(","):
        parameter, _, kind = part.strip().partition(":")
        parameters.append(Parameter(parameter.rstrip("?"), kind, parameter.endswith("?")))
    said = tuple(a.strip() for a in attributes[0].split(",")) if attributes else ()
    return Rule(name.strip(), getattr(cute, function or name.strip().partition(".")[2]), tuple(parameters), said)


RULES: dict[str, Rule] = {r.name: r for r in map(_rule, _SAME.strip().splitlines())}
"""By the names of the operations."""

_OF_FUNCTION = {facade.plain(r.function): r for r in RULES.values()}


INDICES = {
    "tid": cute.arch.thread_idx, "ntid": cute.arch.block_dim, "ctaid": cute.arch.block_idx,
    "nctaid": cute.arch.grid_dim, "clusterid": cute.arch.cluster_idx, "nclusterid": cute.arch.cluster_dim,
    "cluster.ctaid": cute.arch.block_in_cluster_idx,
}  # fmt: skip
"""The functions that give a place in (x, y, z), by the special register that has it: the dialect reads one number."""

REGISTERS = {"laneid": cute.arch.lane_idx, "cluster.ctarank": cute.arch.block_idx_in_cluster}
"""Those that give one number."""

READ = "nvvm.read.ptx.sreg."

STEPS: dict[str, tuple[Any, str | None]] = {
    "nvvm.barrier": (cute.arch.sync_threads, None),
    "nvvm.cp.async.commit.group": (cute.arch.cp_async_commit_group, None),
    "nvvm.cp.async.wait.group": (cute.arch.cp_async_wait_group, "n"),
    "nvvm.cp.async.bulk.commit.group": (cute.arch.cp_async_bulk_commit_group, None),
    "nvvm.fence.mbarrier.init": (cute.arch.mbarrier_init_fence, None),
    "nvvm.wgmma.fence.aligned": (cute.nvgpu.warpgroup.fence, None),
    "nvvm.wgmma.commit.group.sync.aligned": (cute.nvgpu.warpgroup.commit_group, None),
    "nvvm.wgmma.wait.group.sync.aligned": (cute.nvgpu.warpgroup.wait_group, "group"),
}
"""The functions that take at most one static number, and give nothing: with the number's attribute."""


def rule_of(function: Any) -> Rule | None:
    """Return the rule of a function of the API; None if no published operation says the same."""
    return _OF_FUNCTION.get(facade.plain(function))


def operation(name: str) -> Any:
    """Return the class of a published operation, or of one that is printed, by its name with the dialect's."""
    return operations.OPERATIONS.get(name.removeprefix("cute.")) or PRINTED[name]


__all__ = ["INDICES", "READ", "REGISTERS", "RULES", "STEPS", "Parameter", "Rule", "operation", "rule_of"]
