# SPDX-License-Identifier: Apache-2.0
"""Name what `compiled.get_aux_func(…)` gives of a compiled function: QueryDeviceWorkspaceFunc."""

from __future__ import annotations

from ..workspaces import QueryDeviceWorkspaceFunc as QueryDeviceWorkspaceFunc

__all__ = ["QueryDeviceWorkspaceFunc"]
