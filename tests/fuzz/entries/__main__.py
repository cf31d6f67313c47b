# SPDX-License-Identifier: Apache-2.0
"""Random cases of each entry of `numba_cute.kernels`, on tensors of the CPU in the simulator, against float64.

    python -m tests.fuzz.entries --count 2000 --seed 0 --jobs 2
    python -m tests.fuzz.entries --only topk --case 17 --seed 0     one case again, with its errors

What an entry refuses in words is counted apart. --folder gets a line of JSON for each case, and in a file of their own
those that are neither right nor refused, with what was drawn; --record writes benchmarks/results/fuzz_entries.json.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from .. import pool

COMMAND = ("tests.fuzz.entries.worker",)
RESULT = pool.ROOT / "benchmarks" / "results" / "fuzz_entries.json"
WEIGHTS = {"flash_attention": 2, "matmul": 5, "grouped_gemm": 3, "blockscaled_gemm": 2, "topk": 2}
WEIGHTS |= dict.fromkeys(("rmsnorm", "layernorm", "softmax", "cross_entropy", "rotary", "permute"), 4)
"""Cases for one of another entry: more of those with many options, and of those that take little time."""


def programs(names: list[str], seed: str, count: int) -> Any:
    """Yield labels and sources of so many cases, over all entries in turn."""
    turns = [n for n in names for _ in range(WEIGHTS.get(n, 1))]
    mixed = random.Random(seed)
    for i in range(count):
        if i % len(turns) == 0:
            mixed.shuffle(turns)
        name = turns[i % len(turns)]
        yield f"{name} {seed}-{i}", f"{name} {seed}-{i}"


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
        found = run(names[0], f"{given.seed}-{given.case}")
        print(json.dumps(found, indent=1))
        return
    pool.LIMIT, pool.WALL, pool.MANY = 240.0, 1800.0, 200
    began, kinds = time.time(), defaultdict(Counter)
    seconds: Counter[str] = Counter()
    given.folder.mkdir(parents=True, exist_ok=True)
    refused: Counter[str] = Counter()
    files = given.folder / f"seed_{given.seed}.jsonl", given.folder / f"all_{given.seed}.jsonl"
    with files[0].open("a") as file, files[1].open("a") as every:
        for found in pool.run_all(programs(names, given.seed, given.count), given.jobs, COMMAND, given.seconds):
            name = found["label"].split()[0]
            every.write(json.dumps([found["label"], found["kind"], str(found.get("why", ""))[:200]]) + "\n")
            every.flush()
            kinds[name][found["kind"]] += 1
            seconds[name] += found.get("seconds", 0.0)
            if found["kind"] == "refused":
                refused[found["why"].split("\n")[0][:160]] += 1
            elif found["kind"] != "right":
                print(found["label"], found["kind"], str(found.get("why"))[:600], found.get("notes"), flush=True)
                file.write(json.dumps(found) + "\n")
                file.flush()
    report = {n: {**kinds[n], "seconds": round(seconds[n])} for n in names if n in kinds}
    for name, counts in report.items():
        print(f"{name:20} " + ", ".join(f"{k} {v}" for k, v in counts.items()))
    total = sum((kinds[n] for n in kinds), Counter())
    print(f"{sum(total.values())} cases in {time.time() - began:.0f} s: {dict(total)}")
    for text, n in refused.most_common(40):
        print(f"  {n:4} {text}")
    if given.record:
        RESULT.write_text(json.dumps({"seed": given.seed, "entries": report, "all": total}, indent=1) + "\n")


if __name__ == "__main__":
    main()
