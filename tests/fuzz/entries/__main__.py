# SPDX-License-Identifier: Apache-2.0
"""Random cases of each entry of `numba_cute.kernels`, on tensors of the CPU in the simulator, against float64.

    python -m tests.fuzz.entries --count 2000 --seed 0 --jobs 2
    python -m tests.fuzz.entries --only topk --case 17 --seed 0     one case again, with its errors

What an entry refuses in words is counted apart. --folder gets a line of JSON for each case, and in a file of their own
those that are neither right nor refused, with what was drawn; --record adds all to benchmarks/results/entries.json.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

from .. import pool
from . import record

COMMAND = ("tests.fuzz.entries.worker",)
WEIGHTS = {
    "flash_attention": 4,
    "attention_gradients": 2,
    "matmul": 6,
    "matmul_rows": 3,
    "grouped_gemm": 3,
    "grouped_rows": 3,
    "blockscaled_gemm": 3,
}
WEIGHTS |= dict.fromkeys(("rmsnorm", "layernorm", "groupnorm", "softmax", "cross_entropy", "linear_cross_entropy"), 3)
WEIGHTS |= dict.fromkeys(("topk", "rotary", "permute"), 3)
"""Cases for one of another entry: more of those with many options."""


def programs(names: list[str], seed: str, count: int) -> Any:
    """Yield labels and sources of so many cases, over all entries in turn."""
    turns = [n for n in names for _ in range(WEIGHTS.get(n, 1))]
    mixed, done = random.Random(seed), Counter[str]()
    for i in range(count):
        if i % len(turns) == 0:
            mixed.shuffle(turns)
        name = turns[i % len(turns)]
        label = f"{name} {seed}-{done[name]}"
        done[name] += 1
        yield label, label


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="names of entries, with commas between")
    parser.add_argument("--case", default="", help="of --only: the number of a case, which is run here")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no case after these")
    parser.add_argument("--folder", type=Path, default=Path("/tmp/entries_failures"))
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    from .worker import CASES, run

    names = given.only.split(",") if given.only else list(CASES)
    if given.case:
        print(json.dumps(run(names[0], f"{given.seed}-{given.case}"), indent=1))
        return
    pool.LIMIT, pool.WALL, pool.MANY = 240.0, 1800.0, 400
    at, totals = record.commit(), record.read() if given.record else record.empty()
    if any(run[:2] == [at, given.seed] for run in totals["runs"]):
        raise SystemExit(f"the cases of seed {given.seed} are counted for {at}: give another --seed")
    if given.record:
        totals["runs"].append([at, given.seed, 0])
    began, here = time.time(), record.empty()
    seconds: Counter[str] = Counter()
    given.folder.mkdir(parents=True, exist_ok=True)
    files = given.folder / f"seed_{given.seed}.jsonl", given.folder / f"all_{given.seed}.jsonl"
    with files[0].open("a") as file, files[1].open("a") as every:
        for found in pool.run_all(programs(names, given.seed, given.count), given.jobs, COMMAND, given.seconds):
            seconds[found["label"].split()[0]] += found.get("seconds", 0.0)
            why = str(found.get("why", ""))[:400]
            every.write(json.dumps([found["label"], found["kind"], round(found.get("seconds", 0), 1), why]) + "\n")
            every.flush()
            record.add(here, found, at)
            if given.record:
                record.add(totals, found, at)
                totals["runs"][-1][2] += 1
                record.write(totals)
            if found["kind"] not in ("right", "refused"):
                print(found["label"], found["kind"], str(found.get("why"))[:600], found.get("notes"), flush=True)
                file.write(json.dumps(found) + "\n")
                file.flush()
    told(here, seconds)
    print(f"{here['all']} in {time.time() - began:.0f} s")


def told(totals: dict[str, Any], seconds: Counter[str]) -> None:
    """Print counts by entry, with a processor's seconds, and the words of refusals."""
    for name, counts in totals["entries"].items():
        print(f"{name:20} " + ", ".join(f"{k} {v}" for k, v in counts.items()) + f", {seconds[name]:.0f} s")
    for name, said in totals["refusals"].items():
        for words, n in said.items():
            print(f"  {name} {n:4} {words[:400]}")


if __name__ == "__main__":
    main()
