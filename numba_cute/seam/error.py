# SPDX-License-Identifier: Apache-2.0
"""The exception."""

from __future__ import annotations


class CuteError(Exception):
    """The one exception of this library: what was asked, the value, the rule, and the remedy."""


class RunTimeCondition(CuteError):
    """What is known only at run time was asked for its value while a kernel is compiled."""


class NoAttribute(CuteError, AttributeError):
    """An object is asked for what it does not have, so that `hasattr` says so."""


RunTimeCondition.__module__ = CuteError.__module__ = "numba_cute"  # tracebacks name it as users import it
