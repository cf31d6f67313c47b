# SPDX-License-Identifier: Apache-2.0
"""One file in a process of its own: how far it comes, as a line of JSON."""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

from numba_cute.compat.running import run_file
from numba_cute.compat.runs import Run

from .absent import stand_in

MARK = "reference file: "
SMS = 8
"""Of the GPU that is simulated: persistent kernels fill all that there are."""


def main(root: str, file: str, target: str, engine: str, without: str, arguments: list[str]) -> None:
    """Run a file, and print its record.

    root: the checkout, which is on `sys.path`. engine: "simulator", "compiler" or "gpu". without: checks of the
    simulator that are left out, with commas.
    """
    simulates = engine == "simulator"
    checks = tuple(f"-{c}" for c in without.split(",") if c) or True
    run = None if engine == "gpu" else Run(target, simulates, not simulates, checks, keeps_going=True, sms=SMS)
    stand_in()
    sys.path[:0] = [root, str(Path(root, "cute"))]
    began, said, record = time.perf_counter(), io.StringIO(), dict[str, Any]()
    try:
        with contextlib.redirect_stdout(said):
            run_file(_script(Path(file)), arguments, run)
    except SystemExit as e:
        if e.code not in (None, 0):
            record["error"] = f"SystemExit: {e.code}"
    except BaseException as e:  # whatever the file raises is what is told
        record |= _told(e, root)
    record |= {"seconds": round(time.perf_counter() - began, 1), "said": said.getvalue()[-3000:]}
    if without:
        record["without"] = without.split(",")
    if run is not None:
        record |= {
            "launched": run.launched,
            "compiling": round(run.compiling, 1),
            "kernels": [
                {"name": k.name, "registers": k.resources.registers, "spills": k.resources.spill_stores}
                for k in run.kernels
            ],
            "refused": [_told(e, root) for e in run.refused],
        }
    print(MARK + json.dumps(record), flush=True)


def _script(path: Path) -> Path:
    """The file itself, or the code of a notebook as one."""
    if path.suffix != ".ipynb":
        return path
    cells = json.loads(path.read_text())["cells"]
    code = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    lines = [ln if not ln.lstrip().startswith(("%", "!")) else "pass" for c in code for ln in (*c.splitlines(), "")]
    made = Path(tempfile.mkdtemp(), path.stem + ".py")
    made.write_text("\n".join(lines))
    return made


def _told(e: BaseException, root: str) -> dict[str, Any]:
    frames = traceback.extract_tb(e.__traceback__)
    own = [f for f in frames if f.filename.startswith((root, "/tmp/tmp"))]
    at = (own or frames or [None])[-1]
    where = None if at is None else f"{at.filename.removeprefix(root + '/')}:{at.lineno}: {at.line}"
    library = next((f"{f.filename[-50:]}:{f.lineno}" for f in reversed(frames) if "numba_cute" in f.filename), None)
    return {"error": f"{type(e).__name__}: {str(e)[:1200]}", "at": where, "raised": library}


if __name__ == "__main__":
    main(*sys.argv[1:6], sys.argv[6:])
