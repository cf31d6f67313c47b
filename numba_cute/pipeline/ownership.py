# SPDX-License-Identifier: Apache-2.0
"""While a kernel is compiled: is each handle given back to the pipeline that it came from?

Two pipelines that are made alike have one type. Here they are followed instead, from `create` over participants to
handles, through a kernel and what it calls. A handle from elsewhere, or from several places, is let through; the
simulator compares the barriers themselves.
"""

from __future__ import annotations

from ..seam.hooks.audits import AUDITS_OF_KERNELS, Code, at_spot
from .notes.uses import Handle, Pipe, Place, uses_of
from .participants import foreign

_GIVE_BACK = ("commit", "release", "producer_commit", "consumer_release")


def check_handles(code: Code) -> None:
    """Refuse a handle that is committed or released through another pipeline than the one it came from."""
    uses = uses_of(code)
    for s in code.steps:
        if s.kind != "call" or s.name not in _GIVE_BACK:
            continue
        mine = uses.held(s.of)
        pipe = mine.pipe if isinstance(mine, Place) else mine
        handle = uses.held(s.args[0] if s.args else s.named.get("handle", s.named.get("state", "")))
        if not isinstance(pipe, Pipe) or not isinstance(handle, Handle):
            continue
        from_ = handle.place.pipe
        if from_ is not None and from_ is not pipe and from_.begun and pipe.begun:
            raise at_spot(foreign(s.name, pipe.obj, from_.obj), s.at)


AUDITS_OF_KERNELS.append(check_handles)
