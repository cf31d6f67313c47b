# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.mutation [--seeds N] [--jobs N] [--rest] [--out PATH] [kernel ...]`: judge all mutants and run the
right kernels in N orders (100), all of them, or those named, beside each other in one pool.

A kernel whose right source fails is not judged: all its mutants would be "found". What was found is in
benchmarks/results/mutation.json, or PATH, within seconds: kernels that run again have new entries, and the others stay.
`--rest` runs what an entry says is left, and all of a kernel whose source has changed since. A mutant that takes longer
than `--limit` CPU seconds is left too."""

import argparse
import hashlib
import json
import multiprocessing
import time
from pathlib import Path

from .kernels import KERNELS
from .mutants import mutants
from .run import at_work, judged, reason, silent

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "mutation.json"
EVERY = 5
"""Seconds between two writings."""


class Entry:
    """What is known of a kernel. source: its digest, that of which all else is known. mutants: all, by their text.
    wrong: those that are bugs. verdicts: by its text the class of what was raised for a mutant, "" for nothing. loud:
    by its seed what a run of the right kernel said, "" for nothing."""

    def __init__(self, kernel, known, seeds):
        self.name, self.seeds = kernel.name, range(seeds)
        self.source = hashlib.sha256(kernel.source.encode()).hexdigest()[:16]
        if known.get("source") != self.source:
            known = {}
        self.mutants = [str(m) for m in mutants(kernel.source, set(kernel.functions))]
        self.equivalent = {text: why for text in self.mutants if (why := reason(kernel, text))}
        self.wrong = [text for text in self.mutants if text not in self.equivalent]
        ran = set(range(known.get("seeds", 0))) - set(known.get("seeds left", ()))
        self.loud = dict.fromkeys(sorted(ran & {*self.seeds}), "") | {
            int(s): t for s, t in known.get("loud", {}).items()
        }
        self.verdicts = {t: said for t, said in known.get("said", {}).items() if t in self.wrong}
        self.seconds = known.get("CPU seconds", 0.0)

    def work(self, limit):
        """What is left, the mutants first."""
        at = {text: n for n, text in enumerate(self.mutants)}
        yield from ((judged, self.name, at[text], limit) for text in self.wrong if text not in self.verdicts)
        yield from ((silent, self.name, seed) for seed in self.seeds if seed not in self.loud)

    def add(self, task, at, found, seconds):
        """Note what came of one piece of work."""
        self.seconds += seconds
        if task is silent:
            self.loud[at] = found
        elif found is not None:
            self.verdicts[self.mutants[at]] = found

    def shown(self):
        """The entry of the results."""
        return {
            "source": self.source,
            "seeds": len(self.seeds), "silent_seeds": sum(not text for text in self.loud.values()),
            "mutants": len(self.mutants), "wrong": len(self.wrong), "found": sum(map(bool, self.verdicts.values())),
            "survivors": [t for t, said in self.verdicts.items() if not said], "said": self.verdicts,
            "left": [t for t in self.wrong if t not in self.verdicts],
            "seeds left": [s for s in self.seeds if s not in self.loud],
            "loud": {s: text for s, text in self.loud.items() if text},
            "equivalent": self.equivalent, "CPU seconds": round(self.seconds, 1),
        }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--limit", type=int, default=900, help="CPU seconds of a mutant")
    parser.add_argument("--rest", action="store_true", help="only what is left")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("kernels", nargs="*", help="names; all by default")
    args = parser.parse_args()
    known = json.loads(args.out.read_text()) if args.out.exists() else {}
    entries = {
        k.name: Entry(k, known.get(k.name, {}) if args.rest else {}, args.seeds)
        for k in KERNELS if not args.kernels or k.name in args.kernels
    }  # fmt: skip
    written = 0.0
    with multiprocessing.get_context("spawn").Pool(args.jobs) as pool:
        work = [piece for entry in entries.values() for piece in entry.work(args.limit)]
        right = [(silent, name, None) for name in dict.fromkeys(name for _, name, *_ in work)]
        fails = {name: said for _, name, _, said, _ in pool.imap_unordered(at_work, right) if said}
        work = [piece for piece in work if piece[1] not in fails]
        for task, name, *found in pool.imap_unordered(at_work, sorted(work, key=by_seed)):
            entries[name].add(task, *found)
            if time.monotonic() - written > EVERY:
                write(args.out, known, entries)
                written = time.monotonic()
    write(args.out, known, entries)
    for name, said in fails.items():
        print(f"{name}: not judged, it fails: {said}", flush=True)
    for entry in entries.values():
        shown = entry.shown()
        print(f"{entry.name}: silent over {shown['silent_seeds']} seeds; {shown['found']} of {shown['wrong']} wrong "
              f"mutants found; survivors {shown['survivors']}; said {shown['loud']}", flush=True)  # fmt: skip


def by_seed(piece):
    """Order the work: mutants first, then all kernels by the first seed, by the second, and so on."""
    task, _, at, *_ = piece
    return (1, at) if task is silent else (0, 0)


def write(path, known, entries):
    """Put the entries into the results."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps({**known, **{name: e.shown() for name, e in entries.items()}}, indent=1) + "\n")
    part.replace(path)


if __name__ == "__main__":
    main()
