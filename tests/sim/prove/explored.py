# SPDX-License-Identifier: Apache-2.0
"""`explore`'s reduction of orders beside the search of all states, on random programs:
`python -m tests.sim.prove.explored [FIRST LAST]` judges those of some seeds."""

import random
import sys

from numba_cute.sim.exploring import reduction as r

from .programs import (
    ANNOUNCE,
    ARRIVE,
    COMMIT,
    DRAW,
    EXPECT,
    LOOK,
    Bad,
    Op,
    Program,
    State,
    differs,
    one_run,
    pipelined,
    scattered,
)  # fmt: skip


class Differs(Exception):
    """A step met another phase, or another number, than in the first run."""


def found(program, seen, most=300):
    """What the reduced search finds: what is wrong with an order, "" if all do as `seen` says, None if there are more
    than `most` runs; and how many runs there were."""
    runs = 0

    def run(schedule, _):
        nonlocal runs
        runs += 1
        return events_of(program, schedule, seen)

    try:
        all_run = r.search(run, most, lambda first, second: True).all
    except (Bad, Differs) as e:
        return str(e), runs
    return ("" if all_run else None), runs


def events_of(program, schedule, seen):
    """Run a program in the order that begins with some processes (threads, and places of what they issued)."""
    events, effects = [], []

    def tell(what, where, phase):
        if what == "completes":
            effects.append(r.Effect(r.COMPLETES, where, state.bars[where][0]))
            return
        t, pc = where
        op = program.threads[t][pc]
        if seen.get((what, where), phase) != phase:
            raise Differs(f"{what} of {where} falls into phase {phase}, not {seen[what, where]}")
        on, named = op.bar, ("named", op.bar)
        if what == "issues":
            effects.append(r.Effect(r.ISSUES, where))
        elif what == "lands":
            effects.append(r.Effect(r.ARRIVES if op.kind == COMMIT else r.DELIVERS, on, phase))
        elif what == "waits":
            effects.append(r.Effect(r.WAITS, on, phase + 1))
        elif what == "meets":
            effects.append(r.Effect(r.ARRIVES, named, phase))
            if state.named[op.bar][1] + 1 == op.count:
                effects.append(r.Effect(r.COMPLETES, named, phase))
        elif what == "leaves":
            effects.append(r.Effect(r.LEAVES, named, phase))
        elif what in (DRAW, LOOK):
            effects.append(r.Effect(r.WRITES if what == DRAW else r.READS, ("drawn", on)))
        else:
            effects.extend(r.Effect(r.ANNOUNCES, on, phase) for _ in range(what in (EXPECT, ANNOUNCE)))
            effects.extend(r.Effect(r.ARRIVES, on, phase) for _ in range(what in (EXPECT, ARRIVE)))

    state, at = State.first(program), 0
    while not state.ended:
        threads, flying = state.moves()
        if not threads and not flying:
            raise Bad("it hangs")
        ready = [*threads, *flying]
        if at < len(schedule):
            move = schedule[at]
            assert move in ready, "an order that cannot be"
        else:
            move = ready[0]
        at += 1
        after = state.step(move, tell)
        events.append(r.Event(move, tuple(effects)))
        effects.clear()
        state = after
    if any(tx for _, _, tx in state.bars):
        raise Bad("bytes are missing at the end")
    return events


def drawing(rng):
    """A program that draws from counters and looks at them, too."""
    program = (pipelined if rng.random() < 0.5 else scattered)(rng)
    threads = [list(t) for t in program.threads]
    for _ in range(rng.choice((1, 2, 3))):
        ops = rng.choice(threads)
        ops.insert(rng.randrange(len(ops) + 1), Op(rng.choice((DRAW, DRAW, LOOK)), rng.randrange(2)))
    return Program(tuple(map(tuple, threads)), program.counts)


def judged(seeds):
    """Judge the programs of some seeds whose first run is right: how many are right by both searches and wrong by both,
    too large for one, and missed or wrongly accused; and the seeds of these two."""
    counts, wrong = dict.fromkeys(("right", "wrong", "too large", "missed", "accused", "runs"), 0), []
    for seed in seeds:
        rng = random.Random(seed)
        program = (pipelined, scattered, drawing)[seed % 3](rng)
        try:
            seen, _ = one_run(program, rng)
        except Bad:
            continue
        want = differs(program, seen)
        got, runs = found(program, seen)
        if want is None or got is None:
            counts["too large"] += 1
            continue
        counts["runs"] += runs
        kind = ("right", "missed")[bool(want)] if not got else ("accused", "wrong")[bool(want)]
        counts[kind] += 1
        if kind in ("missed", "accused"):
            wrong.append((seed, want, got))
    return counts, wrong


if __name__ == "__main__":
    first, last = map(int, (*sys.argv[1:3], 3000)[:2]) if len(sys.argv) > 2 else (0, 3000)
    counts, wrong = judged(range(first, last))
    print(counts, *wrong[:20], sep="\n")
