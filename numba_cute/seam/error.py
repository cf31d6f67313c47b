# SPDX-License-Identifier: Apache-2.0
"""The exception."""

from __future__ import annotations


class CuteError(Exception):
    """The one exception of this library: what was asked, the value, the rule, and the remedy."""


CuteError.__module__ = "numba_cute"  # tracebacks name it as users import it
