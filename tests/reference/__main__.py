# SPDX-License-Identifier: Apache-2.0
"""Run NVIDIA's files, and packages', unchanged, with `import cutlass` answered by this library:
`python -m tests.reference PATH [FILE…]`.

PATH is a checkout's folder, as examples/python/CuTeDSL of NVIDIA/cutlass; FILE is a part of paths below it. Of a
checkout of Quack or FlashAttention, drivers of ours call the package's functions (`files.DRIVERS`). Of each file it
says how far it comes: `compiler`: its kernels are compiled for its target, `simulator`: it runs to its end, its own
comparison with its reference included, with all checks of the simulator; `gpu` runs it as it is. Needs torch.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from .child import MARK
from .files import File, files


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.reference", description=__doc__)
    parser.add_argument("path", type=Path, help="the folder of a checkout")
    parser.add_argument("file", nargs="*", help="parts of paths of files; all by default")
    parser.add_argument(
        "--engine", nargs="+", default=["compiler", "simulator"], choices=("compiler", "simulator", "gpu")
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at once")
    parser.add_argument("--seconds", type=float, default=300, help="the longest that one takes")
    parser.add_argument("--output", type=Path, help="a file for the records, as JSON")
    given = parser.parse_args()
    root = given.path.resolve()
    work = [(f, e) for f in files(root, given.file) for e in given.engine]
    records: dict[str, dict[str, Any]] = {}
    with ThreadPoolExecutor(given.jobs) as pool:
        for (file, engine), record in zip(work, pool.map(lambda w: run(root, *w, given.seconds), work)):
            records.setdefault(file.name, {"target": file.target})[engine] = record
            print(f"{engine:<10}{file.name}: {_summary(record)}", flush=True)
            if given.output is not None:
                given.output.write_text(json.dumps(records, indent=1) + "\n")
    for engine in given.engine:
        print(f"{engine}: {sum('error' not in r[engine] for r in records.values())} of {len(records)}")


def run(root: Path, file: File, engine: str, seconds: float) -> dict[str, Any]:
    """Run one file in a process of its own; gives its record."""
    of_file = [str(file.path), file.target, engine, ",".join(file.without)]
    command = [sys.executable, "-m", "tests.reference.child", str(root), *of_file, *file.arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False, cwd=as_installed())
    except subprocess.TimeoutExpired:
        return {"error": f"it takes longer than {seconds:.0f} s"}
    line = next((ln for ln in reversed(done.stdout.splitlines()) if ln.startswith(MARK)), None)
    if line is None:
        return {"error": f"the process ended with {done.returncode}: {done.stderr[-600:]}"}
    record: dict[str, Any] = json.loads(line.removeprefix(MARK))
    return _of_compiler(record) if engine == "compiler" else record


@functools.cache
def as_installed() -> str:
    """Return a folder in which this library lies as installed packages do: Quack asks that of functions' files."""
    here = Path(__file__).resolve().parents[2]
    made = Path(tempfile.mkdtemp(), "site-packages")
    made.mkdir()
    for name in ("numba_cute", "tests"):
        (made / name).symlink_to(here / name)
    return str(made)


def _of_compiler(record: dict[str, Any]) -> dict[str, Any]:
    """A record in which an error is one of compiling: what was launched has computed nothing, which the file's own
    comparison notices."""
    if record["refused"]:
        return record | record["refused"][0]
    if record["kernels"] and "error" in record:
        record["after"] = record.pop("error")
    return record


def _summary(record: dict[str, Any]) -> str:
    if "error" in record:
        return f"{record['error'][:160]!r} at {record.get('at')}"
    kernels = ", ".join(f"{k['registers']} registers, {k['spills']} spilled" for k in record.get("kernels", ()))
    return f"{record.get('seconds')} s {kernels}"


if __name__ == "__main__":
    main()
