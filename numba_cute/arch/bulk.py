# SPDX-License-Identifier: Apache-2.0
"""Groups of bulk stores, and overlapping one grid with the next."""

from __future__ import annotations

from .. import isa
from ..seam import CuteError, traced


@traced
def cp_async_bulk_commit_group() -> None:
    """Close the group of all bulk stores that this thread issued since the last one. The thread that issued them.
    PTX cp.async.bulk.commit_group, sm_90."""
    isa.cp_async_bulk_commit_group()


@traced
def cp_async_bulk_wait_group(group: int, read: bool = False) -> None:
    """Wait until at most the `group` (0 to 31) latest groups of this thread are incomplete; with `read`, until only
    those have still to read their sources. The thread that committed them. PTX cp.async.bulk.wait_group, sm_90."""
    if type(group) is not int or not 0 <= group <= 31:
        raise CuteError(f"cp_async_bulk_wait_group: group {group!r} must be a static number in [0, 31]")
    if read:
        isa.cp_async_bulk_wait_group_read(n=group)
    else:
        isa.cp_async_bulk_wait_group(n=group)


@traced
def griddepcontrol_wait() -> None:
    """Wait until the grids that this one depends on have ended and their memory is visible. Any thread.
    PTX griddepcontrol.wait, sm_90."""
    isa.griddepcontrol_wait()


@traced
def griddepcontrol_launch_dependents() -> None:
    """Say that dependent grids may start. Any thread; each block once. PTX griddepcontrol.launch_dependents, sm_90."""
    isa.griddepcontrol_launch_dependents()
