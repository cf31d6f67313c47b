# SPDX-License-Identifier: Apache-2.0
"""The pass `publish`."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ..publish.publishing import publish


class Publish(ModulePass):
    """Write operations as the published dialect has them, wherever that says the same; the other passes give calls."""

    name = "publish"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        publish(op)
