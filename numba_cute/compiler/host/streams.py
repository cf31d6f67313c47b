# SPDX-License-Identifier: Apache-2.0
"""Streams as users have them: torch's, CuPy's, ints, anything with `__cuda_stream__`, beside Numba's own.

A kernel of this library takes them all. Whose a kernel is may be known only when it is called with its arguments, so a
plain kernel's complaint waits until then.
"""

from __future__ import annotations

from typing import Any

from cuda.core import Stream
from numba.cuda import dispatcher as cuda_dispatcher

from .launch import CuteKernel

_LaunchConfiguration = cuda_dispatcher._LaunchConfiguration


def core_stream(stream: Any) -> Any:
    """A stream that Numba takes: itself, or one made of the handle that it has."""
    handle = stream if isinstance(stream, int) else None
    if hasattr(stream, "__cuda_stream__"):
        handle = stream.__cuda_stream__()[1]
    elif handle is None:
        handle = next((h for n in ("cuda_stream", "ptr") if isinstance(h := getattr(stream, n, None), int)), None)
    return stream if handle is None else Stream.from_handle(int(handle))


def _init(
    self: Any, dispatcher: Any, griddim: Any, blockdim: Any, stream: Any, sharedmem: Any,
    _original: Any = _LaunchConfiguration.__init__,
) -> None:  # fmt: skip
    try:
        _original(self, dispatcher, griddim, blockdim, stream, sharedmem)
    except TypeError as refused:
        foreign = core_stream(stream)
        if foreign is stream:
            raise
        _original(self, dispatcher, griddim, blockdim, foreign, sharedmem)
        self.pre_launch_callbacks.append(_only_ours(refused))


def _only_ours(refused: TypeError) -> Any:
    def check(kernel: Any, launch_config: Any) -> None:
        if not isinstance(kernel, CuteKernel):
            raise refused

    return check


_LaunchConfiguration.__init__ = _init
