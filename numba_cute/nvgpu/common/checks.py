# SPDX-License-Identifier: Apache-2.0
"""Checks of the makers of atoms."""

from ...seam import CuteError


def need(what: str, ok: bool, message: str) -> None:
    """Raise CuteError with the `message` of the function `what` unless `ok`."""
    if not ok:
        raise CuteError(f"{what}: {message}")
