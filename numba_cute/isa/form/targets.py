# SPDX-License-Identifier: Apache-2.0
"""The targets that kernels are compiled for, and which of them have what."""

from __future__ import annotations

import re

from ...seam import CuteError

ARCHES = ("sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_103a", "sm_120", "sm_120a")


def supports(arch: str, target: str) -> bool:
    """Whether code for `arch` ("sm_90a") may use an instruction whose least target is `target`.

    A plain target runs there and on all later ones; an "a" target on itself alone; an "f" target on its family;
    "sm_90a|sm_100f" where either does.
    """
    if "|" in target:
        return any(supports(arch, t) for t in target.split("|"))
    have, need = re.fullmatch(r"sm_(\d+)([af]?)", arch), re.fullmatch(r"sm_(\d+)([af]?)", target)
    if have is None or need is None:
        raise CuteError(f"arch {arch!r}: a target looks like sm_80, sm_90a or sm_100a")
    (cc, suffix), (least, kind) = (int(have[1]), have[2]), (int(need[1]), need[2])
    if kind == "a":
        return cc == least and suffix == "a"
    if kind == "f":
        return cc // 10 == least // 10 and cc >= least and suffix in ("a", "f")
    return cc >= least


def lacks(what: str, target: str, arch: str) -> str:
    """Write the message for `what` of an instruction, whose least target is `target`, in code for `arch`."""
    having = [a for a in ARCHES if supports(a, target)]
    if not having:
        remedy = "no target that kernels are compiled for has it"
    else:
        remedy = f'use arch="{having[0]}"' if len(having) == 1 else f"use {_of(having)} as arch="
    needed = " or ".join(target.split("|"))
    return f"{what} needs {needed}, and the target is {arch}: {remedy}, or an operation that {arch} has"


def _of(arches: list[str]) -> str:
    return f"{', '.join(arches[:-1])} or {arches[-1]}"


def unknown_target(arch: object) -> str:
    """Write the message for an `arch` that kernels are not compiled for."""
    said = f"arch {arch!r}: not a known target; use one of {', '.join(ARCHES)}"
    match = re.fullmatch(r"(?:sm_|compute_)?(\d+)([af]?)", str(arch))
    near = [a for a in ARCHES if match is not None and re.fullmatch(rf"sm_{match[1]}a?", a)]
    return f"{said}; did you mean {near[-1]!r}?" if near else said
