# SPDX-License-Identifier: Apache-2.0
"""One rank of several: `python -m tests.several_gpus.rank CASE…` with RANK, WORLD_SIZE and MASTER_… set (torchrun).

Each case prints a line of JSON by rank 0 as it ends: its name, what went wrong on each rank, and what it measured."""

from __future__ import annotations

import gc
import json
import os
import sys
import time
import traceback
import weakref

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem

import numba_cute as cute
from numba_cute.kernels.distributed import ring_attention, zigzag
from numba_cute.runtime import from_multicast, from_symmetric
from numba_cute.seam import CuteError
from numba_cute.tensor import symmetric
from numba_cute.utils.distributed import Signals
from tests.several_gpus import kernels as k

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
DEVICE = torch.device("cuda", int(os.environ.get("LOCAL_RANK", RANK)))
NEXT, BEFORE = (RANK + 1) % WORLD, (RANK - 1) % WORLD
LIMIT = 2.0
"""Seconds that signals wait, of cases in which a rank does not come."""


def settle():
    """Let all that any rank began be done."""
    torch.cuda.synchronize()
    dist.barrier()


def memory(rows=k.ROWS, columns=k.COLUMNS, extra=64):
    """Symmetric memory, not at the beginning of its allocation: the first block is 5 + 2 * rank, the third 1."""
    whole = symm_mem.empty(rows * columns + extra, dtype=torch.float32, device=DEVICE)
    x = whole[extra:].view(rows, columns)
    x.zero_()
    x[: k.BLOCK] = 5 + 2 * RANK
    x[2 * k.BLOCK : 3 * k.BLOCK] = 1
    settle()
    return x


def block(x, which):
    return x[which * k.BLOCK : (which + 1) * k.BLOCK]


def room():
    return torch.zeros(k.BLOCK, k.COLUMNS, device=DEVICE)


def must(tensor, value, what):
    assert bool((tensor == value).all()), f"{what}: {tensor.unique()[:8].tolist()}, and not {value}"


def refuses(says, call):
    try:
        call()
    except CuteError as e:
        assert says in str(e), f"it says {e}, without {says!r}"
    else:
        raise AssertionError(f"it is not refused, with {says!r}")


# ---------------------------------------------------------------------- cases
def elements():
    x, out = memory(), room()
    k.by_elements[1, k.THREADS](from_symmetric(x), out, RANK, NEXT)
    settle()
    must(out, 5 + 2 * NEXT, "loaded of the next rank")
    must(block(x, k.STORED), 100 + BEFORE, "stored by the one before")


def vectors():
    x, out = memory(), room()
    args = from_symmetric(x, assumed_align=16), cute.runtime.from_dlpack(out, assumed_align=16)
    k.by_vectors[1, k.THREADS](*args, RANK, NEXT)
    settle()
    must(out, 5 + 2 * NEXT, "loaded of the next rank")
    must(block(x, k.STORED), 100 + BEFORE, "stored by the one before")


def tma():
    x, out = memory(), room()
    args = (*k.tma_atoms(from_symmetric(x, assumed_align=128)), out, NEXT)
    for _ in range(4):  # twice through Python, and twice in machine code
        k.by_tma[1, k.THREADS](*args)
    settle()
    must(out, 5 + 2 * NEXT, "loaded by TMA")
    must(block(x, k.STORED), 6 + 2 * RANK, "stored by TMA")
    must(block(x, k.ADDED), 1 + 4 * (6 + 2 * RANK), "added by TMA")


def bulk():
    x = memory()
    k.in_bulk[1, 32](from_symmetric(x, assumed_align=128), NEXT)
    settle()
    must(block(x, k.BULK), 5 + 2 * RANK, "copied in bulk")


def atomics():
    counters = symm_mem.empty(4, dtype=torch.int32, device=DEVICE)
    counters.zero_()
    settle()
    k.count_up[10, 64](from_symmetric(counters), WORLD)
    settle()
    assert counters.tolist() == [WORLD * 640, 0, 0, 0], counters.tolist()


def strides_and_parts():
    """A transposed part of a matrix has its own strides, and the rank mode the same distance."""
    x = memory()
    part = x[3:40, 2:10].t()
    peers = from_symmetric(part)
    assert peers.shape == (8, 37, WORLD) and peers.stride[:2] == (1, k.COLUMNS), peers.layout
    assert peers.stride[2] * 4 % (1 << 21) == 0, peers.layout
    out = torch.zeros(WORLD, device=DEVICE)

    k.read[1, WORLD](peers, (7, 36), out)
    settle()
    assert out.tolist() == [5 + 2 * r for r in range(WORLD)], out.tolist()


def signals():
    x, wrong = memory(), torch.zeros(1, dtype=torch.int32, device=DEVICE)
    made, turns = Signals.create(4, limit=20.0, name="ping-pong"), 200
    peers = from_symmetric(x)
    k.ping_pong[1, 1](made, peers, turns, wrong)
    settle()
    began = time.perf_counter()
    for _ in range(3):
        k.ping_pong[1, 1](made, peers, turns, wrong)
    torch.cuda.synchronize()
    took = time.perf_counter() - began
    settle()
    made.check()
    assert wrong.item() == 0, wrong.item()
    return {"microseconds to and fro": round(took / 3 / turns * 1e6, 2)}


def graph():
    x, out = memory(), torch.zeros(8, k.COLUMNS, device=DEVICE)
    made, peers = Signals.create(2, limit=20.0, name="exchange"), None
    peers = from_symmetric(x)
    for _ in range(2):
        k.exchange[8, 32](made, peers, out)
    settle()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        k.exchange[8, 32](made, peers, out)
    settle()
    for turn in range(3):
        captured.replay()
        settle()
        want = [1000.0 * NEXT + 10 * b + 3 + turn for b in range(8)]
        assert out[:, 0].tolist() == want, (turn, out[:, 0].tolist(), want)


def other_devices():
    """A process launches on a GPU that is not the current one: elements, TMA, and what its limits are raised for."""
    there = torch.device("cuda", (DEVICE.index + 1) % torch.cuda.device_count())
    x = torch.zeros(k.ROWS, k.COLUMNS, 1, device=there)
    x[: k.BLOCK] = 3
    out = torch.zeros(k.BLOCK, k.COLUMNS, device=there)
    own = torch.zeros(k.BLOCK, k.COLUMNS, device=DEVICE)
    mine = torch.zeros(k.ROWS, k.COLUMNS, 1, device=DEVICE)
    mine[: k.BLOCK] = 4
    peers, here = (cute.runtime.from_dlpack(t, assumed_align=16) for t in (x, mine))
    torch.cuda.synchronize(there)
    for _ in range(4):
        k.by_tma[1, k.THREADS](*k.tma_atoms(peers), out, 0)
        k.by_tma[1, k.THREADS](*k.tma_atoms(here), own, 0)
    torch.cuda.synchronize(there)
    torch.cuda.synchronize()
    must(out, 3, "loaded by TMA there")
    must(x[k.BLOCK : 2 * k.BLOCK], 4, "stored by TMA there")
    must(own, 4, "loaded by TMA here")
    assert torch.cuda.current_device() == DEVICE.index


def limits_of_other_devices():
    """A kernel with more shared memory than a GPU gives unasked, by every way to launch, here and there."""
    there = torch.device("cuda", (DEVICE.index + 1) % torch.cuda.device_count())
    for device in (there, DEVICE):
        out = torch.zeros(128, device=device)
        k.far_apart[1, 128](out)
        prepared = cute.launch(k.far_apart, grid=1, block=128).prepare(out)
        for call in (prepared, lambda out=out: k.far_apart[1, 128](out), prepared):
            out.zero_()
            call()
            torch.cuda.synchronize(device)
            assert out.tolist() == [float(127 - i) for i in range(128)], (device, out.tolist()[:4])
    assert torch.cuda.current_device() == DEVICE.index


def of_a_pool():
    """Tensors of torch's pool of symmetric memory share allocations."""
    if not hasattr(symm_mem, "get_mem_pool"):
        return "this torch has no pool"
    with torch.cuda.use_mem_pool(symm_mem.get_mem_pool(DEVICE)):
        tensors = [torch.full((k.ROWS, k.COLUMNS), 10.0 * i + RANK, device=DEVICE) for i in range(3)]
    settle()
    for i, x in enumerate(tensors):
        out = room()
        k.by_elements[1, k.THREADS](from_symmetric(x), out, RANK, NEXT)
        settle()
        must(out, 10 * i + NEXT, f"of tensor {i}")
        must(block(x, k.STORED), 100 + BEFORE, "stored by the one before")
    return None


def remembered():
    """A function whose result is cast for other arrays of its kind gives each the memory of its own peers."""
    made = cute.runtime.remembered(lambda x: (from_symmetric(x),))
    for value in range(6):
        x, out = memory(), room()
        block(x, k.HERE).add_(value)
        settle()
        k.by_elements[1, k.THREADS](*made(x), out, RANK, NEXT)
        settle()
        must(out, 5 + 2 * NEXT + value, f"of array {value}")


def mapped_once_and_freed():
    x = memory()
    first, second = from_symmetric(x), from_symmetric(x[1:])
    assert int(second.iterator.address) - int(first.iterator.address) == 4 * k.COLUMNS
    key = int(x.untyped_storage().data_ptr()), str(dist.group.WORLD.group_name)
    mapping = weakref.ref(symmetric._SHARED[key].side_by_side)
    del x
    gc.collect()
    assert mapping() is not None, "a tensor of it lives"
    del first, second
    gc.collect()
    assert mapping() is None and key not in symmetric._SHARED, "it outlives its storage"
    settle()


def refusals():
    unequal = symm_mem.empty(64 + RANK, dtype=torch.float32, device=DEVICE)
    refuses("the shape of x must be the same on all ranks", lambda: from_symmetric(unequal))
    kinds = symm_mem.empty(64, dtype=(torch.float32, torch.int32)[RANK % 2], device=DEVICE)
    refuses("the dtype of x must be the same on all ranks", lambda: from_symmetric(kinds))
    moved = symm_mem.empty(64, dtype=torch.float32, device=DEVICE)[RANK : 32 + RANK]
    refuses("the place in its storage of x must be the same", lambda: from_symmetric(moved))
    refuses("is not symmetric memory", lambda: from_symmetric(torch.zeros(64, device=DEVICE)))
    refuses("is not symmetric memory", lambda: from_symmetric(torch.zeros(64)))
    alone = [dist.new_group([r]) for r in range(WORLD)][RANK]
    refuses("one rank alone", lambda: from_symmetric(memory(), alone))


def multicast():
    x = memory()
    handle = symm_mem.rendezvous(x, dist.group.WORLD)
    if handle.multicast_ptr:
        assert from_multicast(x).shape == tuple(x.shape)
        return {"multicast": True}
    refuses("has no multicast mapping", lambda: from_multicast(x))
    return {"multicast": False}


def expected(q, k, v, at, causal):
    """Attention in float64, and its logs, of queries at places in a sequence of keys."""
    share = q.shape[2] // k.shape[2]
    q, k, v = q.double(), *(x.double().repeat_interleave(share, 2) for x in (k, v))
    scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5
    if causal:
        scores.masked_fill_(at[:, None] < torch.arange(k.shape[1], device=DEVICE), -torch.inf)
    return torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), v), scores.logsumexp(-1)


def part_of(x, order, dim=1):
    """This rank's rows of a whole sequence."""
    return zigzag(x, dim=dim) if order == "zigzag" else x.chunk(WORLD, dim)[RANK].contiguous()


def attention():
    """Attention over parts of a sequence, in either order, is what it is over all of it, launch after launch."""
    for rows, heads, kv_heads, d, order, causal in (
        (512, 4, 2, 128, "zigzag", True), (264, 2, 2, 64, "zigzag", True), (1030, 8, 1, 128, "zigzag", True),
        (130, 2, 1, 256, "zigzag", True), (264, 2, 2, 64, "zigzag", False), (264, 4, 2, 128, "contiguous", True),
    ):  # fmt: skip
        at, shape = part_of(torch.arange(WORLD * rows, device=DEVICE), order, 0), (1, rows, kv_heads, d)
        own_k, own_v = (symm_mem.empty(shape, dtype=torch.bfloat16, device=DEVICE) for _ in range(2))
        for seed in range(3):
            torch.manual_seed(seed)  # all ranks have the whole sequence
            whole = [torch.randn(1, WORLD * rows, n, d, device=DEVICE).bfloat16() for n in (heads, kv_heads, kv_heads)]
            q, k, v = (part_of(x, order) for x in whole)
            own_k.copy_(k)
            own_v.copy_(v)
            o, lse = ring_attention(q, own_k, own_v, causal=causal, order=order, return_lse=True)
            want, logs = expected(q, *whole[1:], at, causal)
            off = float((o - want).abs().max()), float((lse - logs).abs().max())
            what = f"{rows} rows, {heads} heads, d {d}, {order}, causal {causal}, launch {seed}"
            assert off[0] < 3e-2 and off[1] < 2e-3, f"{what}: off by {off}"
    refuses("causal and order must be the same on all ranks", lambda: ring_attention(
        torch.cat([q, q], 2), own_k, own_v, causal=True, order="zigzag" if RANK else "contiguous"
    ))  # fmt: skip
    settle()


def dead():
    """The last rank ends before it launches; the others are told who it was."""
    made = Signals.create(4, limit=LIMIT, name="waiting")
    settle()
    if RANK == WORLD - 1:
        time.sleep(1)
        os._exit(0)
    began, said = time.monotonic(), []
    k.waits_for[2, 32](made, WORLD - 1)
    try:
        torch.cuda.synchronize()
    except Exception as e:  # what torch says of it
        said.append(f"{type(e).__name__}: {str(e).splitlines()[0]}")
    took = time.monotonic() - began
    found = []
    for call in (made.check, lambda: k.waits_for[1, 32](made, WORLD - 1)):
        try:
            call()
        except cute.PeerError as e:
            found.append([e.rank, e.slot, e.limit, e.kernel, str(e)])
    print(json.dumps({"case": "dead", "rank": RANK, "torch": said, "seconds": took, "found": found}), flush=True)
    time.sleep(0.5)  # the thread prints it
    os._exit(0)  # the context is lost, and NCCL waits for the rank that is not there


CASES = {
    f.__name__: f
    for f in (
        elements, vectors, tma, bulk, atomics, strides_and_parts, signals, graph, other_devices,
        limits_of_other_devices, of_a_pool, remembered,
        mapped_once_and_freed, refusals, multicast, attention, dead,
    )
}  # fmt: skip


def main(names):
    torch.cuda.set_device(DEVICE)
    dist.init_process_group("nccl", device_id=DEVICE)
    for name in names:
        said, measured = "", None
        try:
            measured = CASES[name]()
        except Exception:
            said = traceback.format_exc(limit=-6)
        all_said = [None] * WORLD
        dist.all_gather_object(all_said, said)
        if RANK == 0:
            wrong = {r: s for r, s in enumerate(all_said) if s}
            print(json.dumps({"case": name, "wrong": wrong, "measured": measured}), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1:])
