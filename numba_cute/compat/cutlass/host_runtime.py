# SPDX-License-Identifier: Apache-2.0
"""What the host asks of a compiled function beside calling it: `compiled.get_aux_func(QueryDeviceWorkspaceFunc, …)`."""

from __future__ import annotations

from ..workspaces import QueryDeviceWorkspaceFunc as QueryDeviceWorkspaceFunc

__all__ = ["QueryDeviceWorkspaceFunc"]
