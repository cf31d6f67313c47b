# SPDX-License-Identifier: Apache-2.0
"""Import each module of a package: `imports.py PACKAGE`."""

from __future__ import annotations

import importlib
import sys
import traceback
from pathlib import Path

from published import as_published

LEFT_OUT = ("distributed", "nvshmem", "bench", "jax", "quack.trace")
"""Parts of modules' names that are out of scope: several GPUs, times, JAX; `quack.trace` raises as it stands."""


def main(package: str) -> None:
    """Import all, and say which cannot be."""
    root = next(p for p in map(Path, sys.path) if (p / package).is_dir())
    folder = root / package
    if package == "flash_attn":
        as_published()
        folder /= "cute"
    names = [".".join(p.relative_to(root).with_suffix("").parts) for p in sorted(folder.rglob("*.py"))]
    names = [n.removesuffix(".__init__") for n in names if not any(part in n for part in LEFT_OUT)]
    refused = {n: why for n in names if (why := _why_not(n))}
    print(f"{len(names) - len(refused)} of {len(names)} modules are imported")
    if refused:
        sys.exit("\n".join(f"{n}: {why}" for n, why in refused.items()))


def _why_not(name: str) -> str | None:
    try:
        importlib.import_module(name)
    except Exception as e:  # whatever the module raises is what is told
        at = traceback.extract_tb(e.__traceback__)[-1]
        return f"{type(e).__name__}: {e} ({at.filename}:{at.lineno})"
    return None


if __name__ == "__main__":
    main(sys.argv[1])
