# SPDX-License-Identifier: Apache-2.0
"""A process of `pool`: reads programs from stdin, a line of JSON each, and writes what came of each."""

from __future__ import annotations

import json
import os
import sys
import warnings

from .engines import run


def main() -> None:
    warnings.simplefilter("ignore")
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what programs print is not a result
    for line in sys.stdin:
        label, source = json.loads(line)
        found = run(source)
        told = {n: r.error or "ok" for n in ("python", "simulator", "compiled") for r in [getattr(found, n)]}
        out.write(json.dumps({"label": label, "kind": found.kind, "source": source, **told}) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
