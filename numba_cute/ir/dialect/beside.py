# SPDX-License-Identifier: Apache-2.0
"""What modules of the dialect use beside it, and xDSL lacks."""

from __future__ import annotations

from xdsl.context import Context


def load(ctx: Context) -> None:
    """Add it to a context."""
