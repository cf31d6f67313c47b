# SPDX-License-Identifier: Apache-2.0
"""How long the text is that a mistake prints: the lines of a script's traceback, for twenty typical ones. Needs no GPU.

A script is run as `python FILE.py` would run it, in this process; what counts is what Python prints of its exception.
Writes benchmarks/results/tracebacks.json, one entry for each name that is given.

    python -m benchmarks.tracebacks             measure, and keep it as "now"
    python -m benchmarks.tracebacks before      and keep it as "before"
    python -m benchmarks.tracebacks --show typo_of_a_function
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import traceback
import warnings
from pathlib import Path

RESULT = Path(__file__).parent / "results" / "tracebacks.json"

HEAD = """\
import numpy as np
from numba import cuda
import numba_cute as cute
from numba_cute import arch, utils

x = np.zeros(64, np.float32)
"""
COMPILED = "cute.compile(kernel, x)\n"
SIMULATED = "cute.simulate(kernel)[1, 64](x)\n"
LAUNCHED = "kernel[1, 64](x)\n"


def of_kernel(body: str, run: str = COMPILED) -> str:
    """Write a script with a kernel of that body."""
    return f"{HEAD}\n@cuda.jit\ndef kernel(a):\n" + "".join(f"    {line}\n" for line in body.split("\n")) + f"\n{run}"


MISTAKES: dict[str, str] = {
    "typo_of_a_function": of_kernel("t = cute.make_tensr(a)\nt[0] = 1"),
    "typo_of_a_variable": of_kernel("t = cute.make_tensor(a)\nt[0] = vlaue"),
    "typo_of_an_attribute": of_kernel("t = cute.make_tensor(a)\nt[0] = t.shap[0]"),
    "typo_of_an_argument": of_kernel("s = cute.make_layout(4, strid=1)\na[0] = cute.size(s)"),
    "typo_in_a_simulated_kernel": of_kernel("t = cute.make_tensr(a)\nt[0] = 1", SIMULATED),
    "typo_in_a_launched_kernel": of_kernel("t = cute.make_tensr(a)\nt[0] = 1", LAUNCHED),
    "array_in_place_of_a_tensor": of_kernel("t = cute.local_tile(a, (32,), (0,))\nt[0] = 1"),
    "too_many_coordinates": of_kernel("t = cute.make_tensor(a)\nt[0, 0, 0] = 1"),
    "copy_of_two_sizes": of_kernel(
        "t = cute.make_tensor(a)\nr = cute.make_rmem_tensor(8, cute.Float32)\ncute.autovec_copy(t, r)"
    ),  # fmt: skip
    "run_time_shape_of_registers": of_kernel(
        "r = cute.make_rmem_tensor(a.shape[0], cute.Float32)\nr[0] = a[0]\na[1] = r[0]"
    ),  # fmt: skip
    "two_types_of_a_variable": of_kernel(
        "t = cute.make_tensor(a)\nif a[0] > 0:\n    t = cute.make_layout(4)\na[1] = cute.size(t)"
    ),  # fmt: skip
    "python_that_no_kernel_has": of_kernel("t = cute.make_tensor(a)\nwith open('x') as f:\n    t[0] = 1"),
    "layout_on_the_host": f"{HEAD}\nlayout = cute.make_layout((4, 8), stride=(1,))\n",
    "swizzle_on_the_host": f"{HEAD}\nswizzle = cute.make_swizzle(3, -1, 3)\n",
    "address_out_of_bounds": of_kernel("t = cute.make_tensor(a)\nt[cuda.threadIdx.x + 32] = 1", SIMULATED),
    "race": of_kernel(
        "s = utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout(64), 16)\n"
        "i = cuda.threadIdx.x\ns[i] = a[i]\n"
        "a[i] = s[63 - i]",
        SIMULATED,
    ),  # fmt: skip
    "deadlock": of_kernel(
        "p = utils.SmemAllocator().allocate_array(cute.Int64, 1)\nif cuda.threadIdx.x == 0:\n"
        "    arch.mbarrier_init(p, 2)\n    arch.mbarrier_init_fence()\narch.sync_threads()\n"
        "arch.mbarrier_wait(p, 0)\na[0] = 1",
        SIMULATED,
    ),  # fmt: skip
    "too_much_shared_memory": of_kernel(
        "s = utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout(1 << 20), 16)\n"
        "s[0] = a[0]\na[1] = s[0]",
        SIMULATED,
    ),  # fmt: skip
    "launch_without_a_gpu": of_kernel("t = cute.make_tensor(a)\nt[cuda.threadIdx.x] = 1", LAUNCHED),
    "matmul_without_a_gpu": f"{HEAD}\nc = cute.kernels.matmul(np.zeros((64, 64), np.float16), x)\n",
}
"""Scripts, each with one mistake, by its name."""


def printed(name: str, folder: Path) -> str:
    """Run a mistake's script, and return what Python prints of the exception that it ends in."""
    file = folder / f"{name}.py"
    file.write_text(MISTAKES[name])
    code = compile(file.read_text(), str(file), "exec")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(code, {"__name__": "__main__", "__file__": str(file)})
    except Exception as e:
        assert e.__traceback__ is not None
        return "".join(traceback.format_exception(type(e), e, e.__traceback__.tb_next))
    raise AssertionError(f"{name} is no mistake")


def measure(names: list[str]) -> dict[str, int]:
    """Count the lines that each mistake prints."""
    with tempfile.TemporaryDirectory() as folder:
        return {name: printed(name, Path(folder)).count("\n") for name in names}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", default="now")
    parser.add_argument("--show", metavar="MISTAKE", help='print its text, and measure nothing; "all" prints each')
    given = parser.parse_args()
    if given.show:
        with tempfile.TemporaryDirectory() as folder:
            for name in MISTAKES if given.show == "all" else [given.show]:
                print(f"----- {name}\n{printed(name, Path(folder))}")
        return
    results = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    lines = measure(list(MISTAKES))
    results[given.name] = {"python": sys.version.split()[0], "longest": max(lines.values()), "lines": lines}
    RESULT.write_text(json.dumps(results, indent=1) + "\n")
    print(given.name, json.dumps(results[given.name], indent=1))


if __name__ == "__main__":
    main()
