# SPDX-License-Identifier: Apache-2.0
"""While a kernel is compiled: is each handle given back to the pipeline that it came from?

Two pipelines that are made alike have one type. Here variables are followed instead, through a kernel and what it
calls: from `create` over participants to handles. A handle from elsewhere, or from several places, is let through; the simulator compares
the barriers themselves.
"""

from __future__ import annotations

from collections import Counter

from ..seam.hooks.audits import AUDITS_OF_KERNELS, Code, Step, at_spot
from .notes.uses import CREATE
from .participants import foreign

_KEEP = (
    "make_producer", "make_consumer", "make_participants", "clone", "acquire", "acquire_and_advance", "wait",
    "wait_and_advance",
)  # fmt: skip
"""Methods that give what is of the same pipeline."""
_GIVE_BACK = ("commit", "release", "producer_commit", "consumer_release")


def check_handles(code: Code) -> None:
    """Refuse a handle that is committed or released through another pipeline than the one it came from."""
    steps, value = code.steps, code.value
    assigned = Counter(s.target for s in steps)
    once = [s for s in steps if s.target and assigned[s.target] == 1]
    made: dict[str, str] = {}  # of which pipeline a variable is: the variable that `create` was assigned to
    while any([_follow(step, made) for step in once]):
        pass
    for s in steps:
        if s.kind != "call" or s.name not in _GIVE_BACK:
            continue
        handle = made.get(s.args[0] if s.args else s.named.get("handle", s.named.get("state", "")))
        mine = made.get(s.of)
        if mine and handle and mine != handle:
            raise at_spot(foreign(s.name, value(mine), value(handle)), s.at)


def _follow(s: Step, made: dict[str, str]) -> bool:
    """Note of which pipeline a step's target is, as soon as that is known; whether it is news."""
    if s.target in made:
        return False
    found = None
    if s.kind == "call" and s.name in CREATE:
        found = s.target
    elif s.kind == "alias" or s.kind == "call" and s.name in _KEEP:
        found = made.get(s.of)
    elif s.kind in ("other", "item", "tuple", "phi") and s.uses:  # a tuple taken apart, or paths that meet
        of = {made.get(v) for v in s.uses}
        found = of.pop() if len(of) == 1 else None
    if found is None:
        return False
    made[s.target] = found
    return True


AUDITS_OF_KERNELS.append(check_handles)
