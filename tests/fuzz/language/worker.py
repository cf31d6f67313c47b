# SPDX-License-Identifier: Apache-2.0
"""A process of `pool`: reads programs from stdin, a line of JSON each, and writes what came of each."""

from __future__ import annotations

import sys
from typing import Any

from ..device import Lost
from ..pool import GONE, serve
from .engines import run


def outcome(source: str) -> dict[str, Any]:
    asked = sys.argv
    try:
        found = run(source, "--gpu" in asked, "--no-simulator" not in asked)
    except Lost as e:
        kind = "hung" if "does not end" in str(e) else "fault"
        return {"kind": kind, "python": "", "simulator": "", "compiled": str(e), GONE: True}
    told = {n: r.error or "ok" for n in ("python", "simulator", "compiled") for r in [getattr(found, n)]}
    return {"kind": found.kind, **told}


if __name__ == "__main__":
    serve(outcome)
