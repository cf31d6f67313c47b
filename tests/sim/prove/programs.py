# SPDX-License-Identifier: Apache-2.0
"""Small random programs of barriers, copies and commits: run in one order, proved by it, and searched in all orders.

The machine here is written anew from the PTX ISA ("mbarrier", "barrier"), in plain numbers: it shares nothing with the
simulator. A program is right if each order ends, and each of its steps falls into the same phase in every order.
"""

import random
from dataclasses import dataclass
from typing import NamedTuple

from numba_cute.sim.prove.order import Order, Step
from numba_cute.sim.prove.rounds import Rounds

ARRIVE, EXPECT, ANNOUNCE, COPY, COMMIT, WAIT, SYNC = "arrive", "expect", "announce", "copy", "commit", "wait", "sync"
DRAW, LOOK = "draw", "look"


class Op(NamedTuple):
    """One step of a thread. bar: of which barrier, or which of two counters a step draws from or looks at. parity: of a
    wait. count: threads of a sync."""

    kind: str
    bar: int
    parity: int = 0
    count: int = 0


@dataclass(frozen=True)
class Program:
    """threads: the steps of each. counts: how many arrivals each barrier expects."""

    threads: tuple[tuple[Op, ...], ...]
    counts: tuple[int, ...]


class Bad(Exception):
    """An order hangs, or arrives too often, or a step falls into another phase."""


class State:
    """Where a run is: an immutable key, and what may happen next.

    pcs: the next step of each thread. bars: (phase, pending, bytes) of each barrier. flying: steps of copies and
    commits under way. named: (use, arrived) of each named barrier. stand: the use for which a thread stands, or -1.
    drawn: how often each counter was drawn from."""

    __slots__ = ("program", "pcs", "bars", "flying", "named", "stand", "drawn")

    def __init__(self, program, pcs, bars, flying, named, stand, drawn):
        self.program, self.pcs, self.bars = program, pcs, bars
        self.flying, self.named, self.stand, self.drawn = flying, named, stand, drawn

    @classmethod
    def first(cls, program):
        n = len(program.threads)
        bars = tuple((0, c, 0) for c in program.counts)
        return cls(program, (0,) * n, bars, frozenset(), ((0, 0),) * 2, (-1,) * n, (0, 0))

    @property
    def key(self):
        return self.pcs, self.bars, self.flying, self.named, self.stand, self.drawn

    def moves(self):
        """Threads that can step, and what is under way and can complete."""
        found = []
        for t, (pc, ops) in enumerate(zip(self.pcs, self.program.threads)):
            if pc == len(ops):
                continue
            op = ops[pc]
            if op.kind == WAIT and self.bars[op.bar][0] & 1 == op.parity:
                continue
            if op.kind == SYNC and self.stand[t] >= 0 and self.named[op.bar][0] == self.stand[t]:
                continue
            found.append(t)
        return found, sorted(self.flying)

    @property
    def ended(self):
        return not self.flying and all(pc == len(ops) for pc, ops in zip(self.pcs, self.program.threads))

    def step(self, move, tell):
        """The state after a move. tell(what, where, phase): of each effect on a barrier."""
        bars, named, stand, drawn = list(self.bars), list(self.named), list(self.stand), list(self.drawn)
        if isinstance(move, tuple):  # what was under way completes
            op = self.program.threads[move[0]][move[1]]
            tell("lands", move, bars[op.bar][0])
            bars[op.bar] = _signal(bars[op.bar], self.program.counts[op.bar], *((0, -1) if op.kind == COPY else (1, 0)),
                                   lambda: tell("completes", op.bar, None))  # fmt: skip
            return State(self.program, self.pcs, tuple(bars), self.flying - {move}, self.named, self.stand,
                         self.drawn)  # fmt: skip
        t, pc = move, self.pcs[move]
        op, where, flying = self.program.threads[t][pc], (move, self.pcs[move]), self.flying
        done = lambda: tell("completes", op.bar, None)  # noqa: E731
        if op.kind == WAIT:
            tell("waits", where, bars[op.bar][0] - 1)
        elif op.kind == SYNC:
            if stand[t] < 0:
                use, arrived = named[op.bar]
                tell("meets", where, use)
                stand[t] = use
                named[op.bar] = (use + 1, 0) if arrived + 1 == op.count else (use, arrived + 1)
                if named[op.bar][0] == use:
                    return State(self.program, self.pcs, self.bars, flying, tuple(named), tuple(stand), self.drawn)
            tell("leaves", where, stand[t])
            stand[t] = -1
        elif op.kind in (DRAW, LOOK):
            tell(op.kind, where, drawn[op.bar])
            drawn[op.bar] += op.kind == DRAW
        elif op.kind in (COPY, COMMIT):
            tell("issues", where, None)
            flying = flying | {where}
        else:
            tell(op.kind, where, bars[op.bar][0])
            arrivals, tx = {ARRIVE: (1, 0), EXPECT: (1, 1), ANNOUNCE: (0, 1)}[op.kind]
            bars[op.bar] = _signal(bars[op.bar], self.program.counts[op.bar], arrivals, tx, done)
        pcs = (*self.pcs[:t], pc + 1, *self.pcs[t + 1 :])
        return State(self.program, pcs, tuple(bars), flying, tuple(named), tuple(stand), tuple(drawn))


def _signal(bar, count, arrivals, tx, done):
    phase, pending, pending_tx = bar
    if arrivals > pending:
        raise Bad("more arrivals than are expected")
    pending, pending_tx = pending - arrivals, pending_tx + tx
    if pending or pending_tx or not (arrivals or tx):
        return phase, pending, pending_tx
    done()
    return phase + 1, count, 0


def one_run(program, rng, look=False):
    """Run in one order; gives what each step met, and the proof's `Order`; with `look` its `Rounds` too. Bad if the
    order is not right."""
    order = Order(range(len(program.threads)))
    rounds = Rounds(order)
    for b in range(len(program.counts)):
        order.begins(b, f"mbarrier {b}", Step(0, "start", "initialises it"))
    order.meet(range(len(program.threads)))
    seen, promised = {}, {}

    def tell(what, where, phase):
        if what == "completes":
            order.completes(where)
            return
        t, pc = where
        op = program.threads[t][pc]
        step = Step(t, pc, what)
        seen[what, where] = phase
        if what == "issues":
            promised[where] = order.promised(step)
        elif what == "lands":
            order.signals(op.bar, promised[where], op.kind == COMMIT)
        elif what == "waits":
            order.waits(op.bar, step)
        elif what == "meets":
            order.arrives_named(op.bar, phase, f"named barrier {op.bar}", step)
        elif what == "leaves":
            order.leaves_named(op.bar, phase, t)
        elif what not in (DRAW, LOOK):
            if what in (EXPECT, ANNOUNCE):
                order.announces(op.bar, step)
            if what in (EXPECT, ARRIVE):
                order.arrives(op.bar, step)

    state = State.first(program)
    while not state.ended:
        threads, flying = state.moves()
        moves = [*threads, *flying]
        if not moves:
            raise Bad("it hangs")
        before, state = state, state.step(rng.choice(moves), tell)
        if look:
            for t, (was, pc) in enumerate(zip(before.pcs, state.pcs)):
                if pc > was:
                    rounds.did(t, program.threads[t][was])
            rounds.look(counted(state), [promised[where][1] for where in sorted(state.flying)])
    if any(tx for _, _, tx in state.bars):
        raise Bad("bytes are missing at the end")
    return (seen, order, rounds) if look else (seen, order)


def counted(state):
    """What a state's barriers count, who has come to those with names, and what is under way: not where threads are."""
    bars = tuple((phase & 1, pending, tx) for phase, pending, tx in state.bars)
    stands = tuple(
        at if at < 0 else tuple(use - at for use, _ in state.named) for at in state.stand
    )  # fmt: skip
    flying = tuple((t, state.program.threads[t][pc]) for t, pc in sorted(state.flying))
    return bars, tuple(n for _, n in state.named), stands, flying


def differs(program, seen, most=20_000):
    """Search all orders; gives what is wrong with one of them, "" if all do as `seen` says, None if there are more than
    `most` states."""
    found = ""

    def tell(what, where, phase):
        nonlocal found
        if what != "completes" and seen.get((what, where), phase) != phase:
            found = f"{what} of {where} falls into phase {phase}, not {seen[what, where]}"

    first = State.first(program)
    known, todo = {first.key}, [first]
    while todo:
        state = todo.pop()
        threads, flying = state.moves()
        if not threads and not flying and not state.ended:
            return "it hangs"
        for move in (*threads, *flying):
            try:
                after = state.step(move, tell)
            except Bad as e:
                return str(e)
            if found:
                return found
            if after.key not in known:
                if len(known) >= most:
                    return None
                known.add(after.key)
                todo.append(after)
    return ""


def pipelined(rng):
    """A pipeline of one or two stages between producers and consumers, some steps of which are left out, doubled or
    exchanged."""
    stages, rounds = rng.choice((1, 1, 2)), rng.choice((1, 2, 3))
    producers, consumers = rng.choice(((1, 1), (1, 2), (2, 1)))
    copies = rng.random() < 0.6
    counts = [*[producers] * stages, *[consumers] * stages]  # full, empty
    threads = []
    for _ in range(producers):
        ops = []
        for i in range(rounds):
            stage, phase = i % stages, i // stages & 1
            ops.append(Op(WAIT, stages + stage, phase ^ 1))
            ops += [Op(EXPECT, stage), Op(COPY, stage)] if copies else [Op(ARRIVE, stage)]
        threads.append(ops)
    for _ in range(consumers):
        ops = []
        for i in range(rounds):
            stage, phase = i % stages, i // stages & 1
            ops.append(Op(WAIT, stage, phase))
            ops.append(Op(rng.choice((ARRIVE, ARRIVE, COMMIT)), stages + stage))
        threads.append(ops)
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        _spoil(threads, rng)
    if rng.random() < 0.3:
        _meet(threads, rng)
    return Program(tuple(map(tuple, threads)), tuple(counts))


def scattered(rng):
    """Steps at random, each wait for the phase that the thread would see next."""
    n, bars = rng.choice((2, 2, 3)), rng.choice((1, 2))
    counts = tuple(rng.choice((1, 1, 2)) for _ in range(bars))
    threads = []
    for _ in range(n):
        waited, ops = [0] * bars, []
        for _ in range(rng.randint(1, 5)):
            b = rng.randrange(bars)
            kind = rng.choice((ARRIVE, ARRIVE, WAIT, WAIT, EXPECT, COPY, COMMIT, ANNOUNCE))
            ops.append(Op(kind, b, waited[b] & 1))
            waited[b] += kind == WAIT
            if kind in (EXPECT, ANNOUNCE) and rng.random() < 0.9:
                ops.append(Op(COPY, b))
        threads.append(ops)
    if rng.random() < 0.3:
        _meet(threads, rng)
    return Program(tuple(map(tuple, threads)), counts)


def _spoil(threads, rng):
    ops = rng.choice([t for t in threads if t])
    at = rng.randrange(len(ops))
    how = rng.randrange(4)
    if how == 0:
        del ops[at]
    elif how == 1:
        ops.insert(rng.randrange(len(ops) + 1), ops[at])
    elif how == 2:
        ops.append(ops.pop(at))
    else:
        other = rng.randrange(len(ops))
        ops[at], ops[other] = ops[other], ops[at]


def _meet(threads, rng):
    """All threads meet at a named barrier, or two of them do."""
    some = threads if rng.random() < 0.5 else rng.sample(threads, 2)
    for _ in range(rng.choice((1, 2))):
        for ops in some:
            barrier = rng.randrange(2) if rng.random() < 0.2 else 0
            ops.insert(rng.randrange(len(ops) + 1), Op(SYNC, barrier, 0, len(some)))


def judged(seeds):
    """Judge the programs of some seeds whose one run is right: how many are proved and right, proved and wrong, refused
    and right, refused and wrong, and too large to search; and the seeds of those proved wrongly."""
    counts, wrong = dict.fromkeys(("proved", "proved wrongly", "refused needlessly", "refused", "too large"), 0), []
    for seed in seeds:
        rng = random.Random(seed)
        program = (pipelined if seed % 2 else scattered)(rng)
        try:
            seen, order = one_run(program, rng)
        except Bad:
            continue
        what = differs(program, seen)
        proved = not order.conflicts
        if what is None:
            counts["too large"] += 1
        elif not what:
            counts["proved" if proved else "refused needlessly"] += 1
        else:
            counts["proved wrongly" if proved else "refused"] += 1
            if proved:
                wrong.append((seed, what))
    return counts, wrong


class Greedy:
    """Lets the first, or the last, that can go on do so."""

    def __init__(self, at):
        self.at = at

    def choice(self, moves):
        return moves[self.at]


def looped(rng, times):
    """A loop of a pipeline's rounds, of which some steps of each are left out, doubled or exchanged."""
    stages = rng.choice((1, 1, 2))
    producers, consumers = rng.choice(((1, 1), (1, 1), (1, 2), (2, 1)))
    copies, commits = rng.random() < 0.5, rng.random() < 0.3
    counts = [*[producers] * stages, *[consumers] * stages]
    threads = [[] for _ in range(producers + consumers)]
    for i in range(2 * stages):
        stage, phase = i % stages, i // stages & 1
        for ops in threads[:producers]:
            ops.append(Op(WAIT, stages + stage, phase ^ 1))
            ops += [Op(EXPECT, stage), Op(COPY, stage)] if copies else [Op(ARRIVE, stage)]
        for ops in threads[producers:]:
            ops += [Op(WAIT, stage, phase), Op(COMMIT if commits else ARRIVE, stages + stage)]
    for _ in range(rng.choice((0, 1, 1, 2))):
        _spoil(threads, rng)
    if rng.random() < 0.3:
        _meet(threads, rng)
    return Program(tuple(tuple(ops) * times for ops in threads), tuple(counts))


TIMES = 5
"""Rounds of a random loop, each of two of a pipeline's."""


def judged_rounds(seeds):
    """Judge the rounds that are found in loops: how many loops are proved, of how many a round is found, how many of
    the programs with fewer and more of these are searched, and how many are right, by a search, with fewer and more
    though no round is found; and the seeds of those that are wrong."""
    counts, wrong = dict.fromkeys(("proved", "found", "right", "too large", "refused needlessly"), 0), []
    for seed in seeds:
        program = looped(random.Random(seed), TIMES)
        try:
            _, order, rounds = one_run(program, Greedy(-(seed & 1)), look=True)
        except Bad:
            continue
        if order.conflicts:
            continue
        counts["proved"] += 1
        if rounds.found is None:
            counts["refused needlessly"] += all(_is_right(looped(random.Random(seed), n)) for n in (3, 4, TIMES + 1))
            continue
        counts["found"] += 1
        for more in (-1, 1, 2):
            what = _pumped(program, rounds.found, more)
            counts["too large" if what is None else "right"] += not what
            if what:
                wrong.append((seed, more, what))
    return counts, wrong


def _is_right(program):
    """Whether each order of a program ends, and does the same; one too large to search is not."""
    try:
        seen, _ = one_run(program, Greedy(0))
    except Bad:
        return False
    return differs(program, seen) == ""


def _pumped(program, found, more):
    """What is wrong with a program that does a round more often, or once less; "" for nothing."""
    threads = []
    for t, ops in enumerate(program.threads):
        at, steps = found.at.get(t, 0), found.steps.get(t, ())
        threads.append((*ops[: at - len(steps)], *steps * (1 + more), *ops[at:]))
    pumped = Program(tuple(threads), program.counts)
    try:
        seen, order = one_run(pumped, Greedy(0))
    except Bad as e:
        return str(e)
    return "it has conflicts" if order.conflicts else differs(pumped, seen)
