# SPDX-License-Identifier: Apache-2.0
"""The options of a launch as its caller gives them, checked."""

from __future__ import annotations

from typing import Any

from ...isa.form.limits import check_fallback
from ...seam import CuteError
from ...seam.ground.naming import described
from .cluster import checked_cluster
from .native.options import PLAIN, Event, Options


def options_of(cluster: Any, given: dict[str, Any]) -> Options:
    """Check the options of a launch. cluster: its shape, or None. given: the arguments of `cute.launch` by name; those
    that are as if they were not given may be left out. Raises CuteError for anything else."""
    given = {**DEFAULTS, **given}
    if all(given[name] is value for name, value in DEFAULTS.items()):
        return PLAIN
    for name in ("pdl", "cooperative"):
        _need(type(given[name]) is bool, name, given[name], "give True or False")
    carveout = given["preferred_smem_carveout"]
    fits = carveout is None or (type(carveout) is int and 0 <= carveout <= 100)
    _need(fits, "preferred_smem_carveout", carveout, "give percent, an int from 0 to 100, or None")
    at_start = given["programmatic_event_trigger_at_block_start"]
    _need(at_start in (0, 1), "programmatic_event_trigger_at_block_start", at_start, "give 0 or 1")
    return Options(
        given["pdl"], given["cooperative"], _fallback(cluster, given["fallback_cluster"]), carveout,
        _event(given, "launch_completion_event"), _event(given, "programmatic_event", int(at_start)),
    )  # fmt: skip


DEFAULTS: dict[str, Any] = {
    "pdl": False, "cooperative": False, "fallback_cluster": None, "preferred_smem_carveout": None,
    "launch_completion_event": None, "launch_completion_event_flags": 0, "programmatic_event": None,
    "programmatic_event_flags": 0, "programmatic_event_trigger_at_block_start": 0,
}  # fmt: skip
"""The options of a launch that asks for none."""


def _need(ok: bool, name: str, value: Any, rule: str) -> None:
    if not ok:
        raise CuteError(f"launch: {name} {described(value)}: {rule}")


def _fallback(cluster: Any, given: Any) -> tuple[int, int, int] | None:
    """The shape of the clusters that are made where those of `cluster` do not fit."""
    if given is None:
        return None
    fallback = checked_cluster(given)
    if cluster is None:
        raise CuteError(f"launch: fallback_cluster {fallback} without cluster=: give the shape that is preferred too")
    check_fallback(checked_cluster(cluster), fallback)
    return fallback


def _event(given: dict[str, Any], name: str, at_start: int = 0) -> Event | None:
    """An event: the driver's or the runtime's, Numba's, torch's, CuPy's, or its handle."""
    event, flags = given[name], given[f"{name}_flags"]
    if event is None:
        return None
    _need(type(flags) is int and 0 <= flags < 1 << 31, f"{name}_flags", flags, "give an int of CU_EVENT_RECORD_*")
    found = event
    for attribute in ("cuda_event", "handle", "ptr", "value"):  # torch's, Numba's, CuPy's, ctypes'
        found = getattr(found, attribute, found)
    try:
        handle = int(found)
    except (TypeError, ValueError):
        handle = -1
    _need(
        type(event) is not bool and handle >= 0, name, event,
        "give an event: CUevent, cudaEvent_t, torch.cuda.Event, or the number that its handle is",
    )  # fmt: skip
    _need(handle != 0, name, event, "it has no handle: torch makes one when the event is first recorded")
    return Event(event, handle, flags, at_start)
