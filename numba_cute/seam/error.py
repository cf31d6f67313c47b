# SPDX-License-Identifier: Apache-2.0
"""The exception, and the signals by which code that is traced stops being so."""

from __future__ import annotations


class CuteError(Exception):
    """The one exception of this library: what was asked, the value, the rule, and the remedy."""


class Fault(CuteError):
    """A fault of this library's own, with the user's line: nothing that the user did is wrong."""


class Signal(BaseException):
    """What code that is traced raises where it cannot go on. It is no error: whoever traces decides what follows. A
    user's `except Exception` does not catch it, and one that catches it all the same is noticed."""


class RunTimeCondition(Signal):
    """What is known only at run time was asked for its value while a kernel is compiled."""


Fault.__module__ = CuteError.__module__ = "numba_cute"  # tracebacks name it as users import it
