# SPDX-License-Identifier: Apache-2.0
"""Options of `simulate`, checked."""

from __future__ import annotations

from typing import Any

from ..isa.form.limits import check_any_cluster, check_fallback
from ..seam import CuteError
from ..seam.marks.constexpr import is_host
from .given import dim3, integer
from .hardware.watch import Check
from .outputs import parameters
from .python.jitted.rebuild import written_function


def sms_of(given: Any) -> int | None:
    """Return the number of SMs that the GPU is to have; None: as many as the largest known GPU."""
    if given is not None and (integer(given) or 0) < 1:
        raise CuteError(f"simulate: sms {given!r}: give the number of SMs, from 1 on, or None")
    return integer(given)


def outputs_of(outputs: Any, kernel: Any, checks: tuple[type[Check], ...]) -> tuple[str, ...]:
    """The names of the parameters that a kernel is to write."""
    if not outputs:
        return ()
    if not any(c.name == "races" for c in checks):
        raise CuteError("simulate: outputs needs the check `races`, which follows what is written")
    if is_host(kernel):
        raise CuteError("simulate: outputs are a kernel's: a host function may launch several")
    code = written_function(kernel).__code__
    return parameters(outputs, code.co_varnames[: code.co_argcount])


def fallback_of(cluster: Any, given: Any) -> tuple[int, int, int] | None:
    """The shape of the clusters that may be made in the place of those of `cluster`."""
    if given is None:
        return None
    fallback = dim3("fallback_cluster", given)
    if cluster is None:
        raise CuteError(f"simulate: fallback_cluster {fallback} without cluster=: give the shape that is preferred too")
    preferred = dim3("cluster", cluster)
    check_any_cluster(preferred)
    check_fallback(preferred, fallback)
    return fallback
