# SPDX-License-Identifier: Apache-2.0
"""Streams as users have them: torch's, CuPy's, ints, anything with `__cuda_stream__`, beside Numba's own."""

from __future__ import annotations

from typing import Any

from cuda.core import Stream


def core_stream(stream: Any) -> Any:
    """Return a stream that Numba takes: itself, or one made of the handle that it has."""
    handle = stream if isinstance(stream, int) else None
    if hasattr(stream, "__cuda_stream__"):
        handle = stream.__cuda_stream__()[1]
    elif handle is None:
        handle = next((h for n in ("cuda_stream", "ptr") if isinstance(h := getattr(stream, n, None), int)), None)
    return stream if handle is None else Stream.from_handle(int(handle))
