# SPDX-License-Identifier: Apache-2.0
"""Checks that the bodies of several families share."""

from __future__ import annotations

from ...seam import CuteError


def need_aligned(what: str, value: int, unit: int) -> None:
    """Raise CuteError if `value` (an address or some bytes; `what` names it) is not a multiple of `unit` bytes."""
    if value % unit:
        raise CuteError(f"{what} is {value:#x}: it must be a multiple of {unit} bytes")


def receivers(what: str, mask: int | None, cta: int) -> list[int]:
    """Give the ranks of the CTAs that an instruction (`what`) writes to: those of `mask`, or `cta` without one."""
    if mask is None:
        return [cta]
    if mask == 0:
        raise CuteError(f"{what}: cta_mask is 0: it must name at least one CTA of the cluster")
    return [c for c in range(16) if mask >> c & 1]
