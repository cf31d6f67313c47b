# SPDX-License-Identifier: Apache-2.0
"""What a user does first, in an environment that has the wheel and nothing of this tree: `python uses.py README KIND`.

KIND: one of `python -m tests.installs`. Prints what it found as JSON. It is run as a
file, so that it sees the installed package alone.
"""

from __future__ import annotations

import json
import re
import runpy
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

TOLD = ("numba-cute", "numba", "numba-cuda", "numpy", "llvmlite", "cuda-core", "cuda-bindings", "cuda-toolkit",
        "greenlet", "ml_dtypes", "xdsl")  # fmt: skip


def refusal(asked: Any) -> str:
    """The CuteError that a call ends with."""
    import numba_cute as cute

    try:
        asked()
    except cute.CuteError as e:
        return str(e)
    raise AssertionError("nothing was refused")


def held(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def use(readme: Path, kind: str) -> dict[str, Any]:
    """Use the package as the README does. readme: its path."""
    import numba_cute as cute

    assert "site-packages" in cute.__file__, cute.__file__
    assert cute.size(cute.make_layout((4, 8), stride=(8, 1))) == 32
    file = Path("readme_kernel.py")  # a file, so that errors and Numba find the source
    file.write_text(re.findall(r"```python\n(.*?)```", readme.read_text(), re.DOTALL)[0])
    scope = runpy.run_path(str(file))  # it asserts what the simulator gives
    args = scope["total"], (scope["tma"], scope["source"], scope["out"])
    found: dict[str, Any] = {"versions": {name: held(name) for name in TOLD}, "simulated": True}
    if kind in ("none", "bare"):
        said = refusal(lambda: cute.compile(*args, arch="sm_90a"))
        assert ("numba-cute[cu13]" if kind == "none" else "cute.simulate") in said, said
        found["refused"] = said
    else:
        compiled = cute.compile(*args, arch="sm_90a")
        assert compiled.resources.local == 0 and len(compiled.cubin) > 1000
        found["registers"] = compiled.resources.registers
    if kind == "mlir" and sys.version_info >= (3, 11):
        theirs = Path("readme_mlir.py")
        theirs.write_text(file.read_text().replace("from numba import cuda", "from numba_cuda_mlir import cuda"))
        of_bridge = runpy.run_path(str(theirs))["total"]
        assert type(of_bridge).__name__ == "MlirKernel", of_bridge
        assert cute.compile(of_bridge, *args[1:], arch="sm_90a").resources == compiled.resources
        found["mlir"] = held("numba-cuda-mlir")
    if kind == "ir" and sys.version_info >= (3, 11):
        found["ir"] = "cute" in str(cute.inspect(*args))
    elif kind != "bare":
        assert "numba-cute[ir]" in refusal(lambda: cute.inspect(*args))
    return found


if __name__ == "__main__":
    print(json.dumps(use(Path(sys.argv[1]), sys.argv[2])))
