# SPDX-License-Identifier: Apache-2.0
"""Programs of the kernel's language run three ways, and the outcomes counted.

    python -m tests.fuzz.language --directed --jobs 2         the directed ones, each in four places
    python -m tests.fuzz.language --seed 0 --count 20000      random ones
    python -m tests.fuzz.language --gpu --no-simulator --count 20000 --jobs 16 --seconds 540

Programs that fail are shrunk and written to --folder; --record writes benchmarks/results/fuzz_language.json. With --gpu
what is compiled runs on this machine's GPU: its bytes are compared with Python's, not the lines it prints. $OUT, where
it is set, gets language.json: the summary, with the programs that fail.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

from ..pool import LANGUAGE, ROOT, run_all
from . import programs
from .engines import GOOD
from .shrink import shrunk

RESULT = ROOT / "benchmarks" / "results" / "fuzz_language.json"


def reason(found: dict[str, Any]) -> str:
    """Return why a program is refused, without names and numbers of its own."""
    text = found["compiled"] if found["compiled"] != "ok" else found["simulator"]
    text = re.sub(r"\s+in (kernel|function).*", "", text, flags=re.S).split("\n")[0]
    return re.sub(r"'[^']*'|\b\d+\b", "_", text)[:110]


def random_programs(seed: int, count: int) -> Any:
    from ..choices import Seeded
    from .writer import Writer

    return ((f"seed {s}", Writer(Seeded(s)).source()) for s in range(seed, seed + count))


def write(folder: Path, found: dict[str, Any]) -> None:
    """Write a program that fails, with what each way said."""
    folder.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"\W+", "_", f"{found['kind']} {found['label']}")
    said = "".join(f"# {k}: {found[k][:600]}\n".replace("\n", "\n# ") for k in ("python", "simulator", "compiled"))
    (folder / f"{name}.py").write_text(f"{said}\n{found['source']}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directed", action="store_true")
    parser.add_argument("--only", default="", help="directed programs whose label holds this")
    parser.add_argument("--places", default=",".join(programs.PLACES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path("/tmp/language_failures"))
    parser.add_argument("--shrink", action="store_true")
    parser.add_argument("--show", action="store_true", help="print each failure")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--gpu", action="store_true", help="run what is compiled on this machine's GPU")
    parser.add_argument("--no-simulator", action="store_true")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no program after these")
    given = parser.parse_args()
    places = tuple(given.places.split(","))
    flags = ("--gpu",) * given.gpu + ("--no-simulator",) * given.no_simulator
    failures: list[dict[str, Any]] = []
    began = time.time()
    chosen = programs.every(places, given.only) if given.directed else random_programs(given.seed, given.count)
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for found in run_all(chosen, given.jobs, LANGUAGE + flags, given.seconds):
        counts[found["kind"]] += 1
        if found["kind"] == "refused":
            reasons[reason(found)] += 1
        if found["kind"] not in GOOD:
            if given.shrink and found["kind"] not in ("hung", "crash", "fault"):
                found = shrunk(found, LANGUAGE + flags)
            failures.append(found)
            write(given.folder, found)
            if given.show:
                brief = " | ".join(found[k].split("\n")[0][:150] for k in ("python", "simulator", "compiled"))
                print(f"{found['kind']}: {found['label']}: {brief}", flush=True)
    total = sum(counts.values())
    summary = {
        "programs": total, "first seed": given.seed, "directed": given.directed, "gpu": given.gpu,
        "simulator": not given.no_simulator,
        "seconds": round(time.time() - began, 1), "outcomes": dict(counts.most_common()),
        "share refused": round(counts["refused"] / max(total, 1), 4), "refused because": dict(reasons.most_common(40)),
    }  # fmt: skip
    print(json.dumps(summary, indent=1))
    if os.environ.get("OUT"):
        text = json.dumps(summary | {"failures": failures[:500]}, indent=1)
        (Path(os.environ["OUT"]) / "language.json").write_text(text + "\n")
    if given.record:
        RESULT.write_text(json.dumps(summary, indent=1) + "\n")


if __name__ == "__main__":
    main()
