# SPDX-License-Identifier: Apache-2.0
"""What `import numba_cute` costs over `from numba import cuda`: CPU seconds of new processes, in turn. Needs no GPU.

The first round, which may write bytecode, is not counted. Names are of what is measured: an installed package, or a
tree of the repository. Writes benchmarks/results/import_time.json.

    python benchmarks/import_time.py --rounds 15 now=.venv/bin/python without_xdsl=/tmp/other/bin/python
    python benchmarks/import_time.py before=.venv/bin/python:/tmp/older_tree
"""

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tqdm import tqdm

ROOT = Path(__file__).resolve().parents[1]
STATEMENTS = {
    "numba_cuda": "from numba import cuda",
    "numba_cute": "import numba_cute",
    "numba_cute_and_simulator": "import numba_cute; numba_cute.simulate",
}
TOLD = """
import importlib.util, json, sys, time
spent = time.process_time()
print(json.dumps([spent, sum(name.partition('.')[0] == 'numba_cute' for name in sys.modules), sys.version.split()[0],
                  importlib.util.find_spec('xdsl') is not None,
                  getattr(sys.modules.get('numba_cute'), '__file__', None)]))
"""


def one(statement: str, python: str, tree: str) -> list:
    """CPU seconds of a process that runs the statement, from its start; how many modules of this package it loaded; the
    version of Python; and whether xDSL is there."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")}
    if tree:
        environment["PYTHONPATH"] = tree
    with tempfile.TemporaryDirectory() as elsewhere:  # Python looks for modules where it is started
        done = subprocess.run([os.path.abspath(python), "-c", statement + TOLD], cwd=elsewhere, env=environment,
                              capture_output=True, text=True, check=True)  # fmt: skip
    spent, modules, version, xdsl, file = json.loads(done.stdout)
    if tree and file is not None and not file.startswith(tree):
        raise SystemExit(f"{python} imported {file}, and not what is in {tree}")
    return [spent, modules, version, xdsl]


def measure(python: str, tree: str, rounds: int) -> dict:
    """Medians of all statements, one after another in each round."""
    runs = {name: [] for name in STATEMENTS}
    for at in tqdm(range(rounds + 1), desc=python):
        for name, statement in STATEMENTS.items():
            run = one(statement, python, tree)
            if at:
                runs[name].append(run)
    seconds = {name: round(statistics.median(run[0] for run in made), 3) for name, made in runs.items()}
    over = [cute[0] - cuda[0] for cute, cuda in zip(runs["numba_cute"], runs["numba_cuda"])]
    _, modules, version, xdsl = runs["numba_cute"][0]
    return {
        "python": version,
        "xdsl_installed": xdsl,
        "modules_of_numba_cute": modules,
        "cpu_seconds": seconds,
        "numba_cute_over_numba_cuda": round(statistics.median(over), 3),
        "least_over": round(min(over), 3),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("interpreters", nargs="*", default=[f"now={sys.executable}:{ROOT}"])
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    path = ROOT / "benchmarks" / "results" / "import_time.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    for given in args.interpreters:
        name, _, place = given.partition("=")
        python, _, tree = place.partition(":")
        made = measure(python, tree, args.rounds)
        results[name] = {"date": str(datetime.date.today()), "processor": platform.processor() or platform.machine(),
                         "rounds": args.rounds, "load": round(os.getloadavg()[0], 1), **made}  # fmt: skip
        print(name, json.dumps(results[name]))
    path.write_text(json.dumps(results, indent=1) + "\n")
