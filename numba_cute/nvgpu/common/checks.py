# SPDX-License-Identifier: Apache-2.0
"""What the makers of atoms check of their arguments."""

from ...seam import CuteError


def need(what: str, ok: bool, message: str) -> None:
    """Raise CuteError with the `message` of the function `what` unless `ok`."""
    if not ok:
        raise CuteError(f"{what}: {message}")
