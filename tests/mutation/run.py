# SPDX-License-Identifier: Apache-2.0
"""Judging the mutants of a kernel, and which of them are not bugs."""

import signal
import time
import warnings
from itertools import product
from typing import Any

from .kernels import KERNELS
from .mutants import Mutant, mutants
from .source import Kernel

SEEDS = range(7)

# (kernel, what the mutant's description holds, or ends with if there is a $): why the mutant is no bug.
OWN = "only its own CTA uses its barriers, and that has not exited"
NOT_TAKEN = "this branch is not taken"
STORES = "PipelineTmaStore only checks its type"
KEPT = "B is loaded once, and stays: nobody waits for its release"
FIRST = "a producer's first wait of a stage passes"
TMA = "the copies complete the stage: with TMA commit does nothing"
MORE = "waiting for all groups is slower, and right"
FENCED = "what it multiplies was written before the fence of the multiply before it"
WAITED = "what is loaded is waited for where it is first used"
BEHIND_K = "the next load to that stage of Q comes behind K's, which waits for the release after the next wait"
BEHIND_Q = "the next load of dO to that stage comes behind Q's, which waits for the release after the next wait"
EQUIVALENT = {
    ("PipelineTmaAsync", "without pipe.producer_tail(fill)"): OWN,
    ("PipelineTmaAsync", "without pipe.sync_object_full.arrive(fill.index)"): NOT_TAKEN,
    ("PipelineTmaAsync", "without pipe.consumer_release(use)$"): NOT_TAKEN,
    ("PipelineTmaAsync", "without pipe.consumer_release(use) #3"): NOT_TAKEN,
    ("PipelineAsync", "without producer.tail()"): OWN,
    ("PipelineAsync", "without stage.commit()$"): NOT_TAKEN,
    ("PipelineAsync", "consumer.wait_and_advance(1) does not wait"): NOT_TAKEN,
    ("PipelineTmaStore", "CooperativeGroup(THREAD, TILE)"): STORES,
    ("PipelineOrder", "without arch.sync_threads()"): "the first turn is that of the thread that wrote the count",
    ("PipelineCpAsync", "without producer.tail()"): OWN,
    ("PipelineCpAsync", "without arch.mbarrier_arrive(pipe.producer_get_barrier(stage))"): NOT_TAKEN,
    ("tensor memory", "without umma.tcgen05_wait_ld()"): WAITED,
    ("Hopper GEMM", "without stage.commit()"): TMA,
    ("Hopper GEMM", "without arch.cluster_wait() #2"): "consumers of its CTA wait there too, and keep it alive",
    ("Hopper GEMM", "without arch.cluster_wait() #3"): "producers of its CTA wait there too, and keep it alive",
    ("Hopper GEMM", "without arch.sync_warp() #2"): NOT_TAKEN,
    ("Hopper GEMM", "CONSUMER_WA: argument 1 +1 #2"): KEPT,
    ("Hopper GEMM", "CONSUMER_WA: argument 1 -1 #2"): KEPT,
    ("Hopper GEMM", "whole.make_producer().acquire_and_advance() does not wait"): FIRST,
    ("TMA to warps", "without stage.commit()"): TMA,
    ("threads to threads", "without producer.tail()"): OWN,
    ("TMA to warps", "without producer.tail()"): OWN,
    ("raw GEMM", "without sync.bar_sync(1, 256) #2"): "the second of two: nothing uses the tile after it",
    ("TMA store", "without fence.fence_proxy_async(space='shared::cta') #2"): NOT_TAKEN,
    ("TMA store", "cp_async_bulk_wait_group(n=0, read=True)"): NOT_TAKEN,
    ("Hopper GEMM", "warpgroup.wait_group(1): argument 0 -1"): MORE,
    ("mixed GEMM", "without stage.commit()"): TMA,
    ("mixed GEMM", "pipeline.CooperativeGroup(pipeline.Agent.Thread, 128)"): STORES,
    ("Ampere GEMM", "arch.cp_async_wait_group(STAGES - 2): argument 0 -1"): "waiting for more is slower, and right",
    ("Ampere GEMM", "arch.cp_async_wait_group(0)"): "the groups open at the end are empty: all copies were waited for",
    ("Blackwell GEMM", "without response.release()"): NOT_TAKEN,
    ("Blackwell GEMM", "responses.wait_and_advance() does not wait"): NOT_TAKEN,
    ("Blackwell GEMM", "asks.acquire_and_advance() does not wait"): NOT_TAKEN,
    ("Blackwell GEMM", "without asks.tail()"): NOT_TAKEN,
    ("Blackwell GEMM", "CooperativeGroup(Agent.Thread, followers)"): NOT_TAKEN,
    ("Blackwell GEMM", "without producer.tail()"): OWN,
    ("Blackwell GEMM", "CooperativeGroup(Agent.Thread, 32 * EPILOGUE_WARPS):"): STORES,
    ("Blackwell GEMM of pairs", "CooperativeGroup(Agent.Thread, 32 * EPILOGUE_WARPS):"): STORES,
    ("Blackwell attention", "without loads_kv.tail()"): OWN,
    ("Blackwell attention", "without arch.fence_view_async_tmem_load()"): WAITED,
    ("Blackwell attention", "loads_q.acquire_and_advance() does not wait"): FIRST,
    ("Blackwell attention", "tiles.acquire_and_advance() does not wait"): FIRST,
    ("kernels: grouped GEMM", "without teller.tail()"): OWN,
    ("kernels: grouped GEMM", "without stage.commit()"): TMA,
    ("kernels: products", "warpgroup.wait_group(1): argument 0 -1"): MORE,
    ("kernels: what other GPUs have", "without arch.fence_proxy('async')$"): "TMA wrote the rows, and no thread",
    ("kernels: what other GPUs have", "without arch.fence_proxy('async') #2"): "no kernel of this run wrote the rows",
    ("kernels: weights of 4 bits", "without stage.commit()"): TMA,
    ("kernels: ampere GEMM", "arch.cp_async_wait_group(stages - 2): argument 0 -1"): MORE,
    ("kernels: weights of 4 bits", "warpgroup.wait_group(1): argument 0 -1"): MORE,
    ("kernels: weights of 4 bits", "without arch.cluster_wait() #2"): "consumers of its CTA wait there too",
    ("kernels: attention", "without loads_q.tail()"): OWN,
    ("kernels: attention", "without loads_k.tail()"): "the tail of V waits for later releases of the same warps",
    ("kernels: attention", "without mine.arrive_and_wait() #2"): "nobody comes to that barrier later",
    ("kernels: attention", "warpgroup.wait_group(1): argument 0 -1"): MORE,
    ("kernels: attention", "without arch.sync_warp()"): "it converges the warp: no lane reads what another wrote",
    ("kernels: attention", "without warpgroup.fence() #3"): FENCED,
    ("kernels: attention", "without warpgroup.fence() #5"): FENCED,
    ("kernels: gradients", "warpgroup.wait_group(1): argument 0 -1"): MORE,
    ("kernels: gradients", "without arch.mbarrier_init_fence()"): "the fence of the async proxy after it does the same",
    ("kernels: gradients", "without warpgroup.fence()$"): "the registers of the last dQ are new: nothing touched them",
    ("kernels: gradients", "without warpgroup.commit_group() #6"): BEHIND_K,
    ("kernels: gradients", "without warpgroup.wait_group(0) #3"): BEHIND_Q,
    ("kernels: gradients", "wait_group(0): argument 0 +1 #3"): BEHIND_Q,
    (
        "kernels: wide gradients of queries",
        "without loads_v.tail()",
    ): "the tail of K waits for later releases of the same warps",
    ("kernels: wide gradients of queries", "warpgroup.wait_group(1): argument 0 -1"): MORE,
    ("kernels: wide gradients", "q_ready.wait_and_advance() does not wait #2"): "P, which has come, was made of that Q",
    ("kernels: rows by an index", "without ahead.tail()"): OWN,
    ("kernels: rows by an index", "arch.cp_async_wait_group(lag): argument 0 -1"): MORE,
    ("bulk copies", "mbarrier_wait_parity(BAR + 8 * s, 0)"): "at the end, where all copies have been waited for",
}


def orders(seed: Any) -> dict[str, Any]:
    return {} if seed is None else {"seed": seed}


def found(kernel: Kernel, mutant: Mutant, at: int) -> str:
    """Run the mutant of this number, in the usual order, then in others: the class of what is raised, or ""."""
    space = mutant.load(f"mutant_{at}_of_{kernel.name.replace(' ', '_')}.py", vars(kernel.module))
    for problem, seed in (*((p, None) for p in kernel.problems), *product(kernel.problems, SEEDS)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                problem(space, orders(seed))
        except (Exception, SystemExit) as e:  # whatever it is: the unmutated kernel gives none
            return type(e).__name__
    return ""


def reason(kernel: Kernel, mutant: str) -> str:
    """Why the mutant of this text is no bug; "" if it is one."""
    known = ((words, why) for (name, words), why in EQUIVALENT.items() if name == kernel.name)
    return next((why for words, why in known if matches(words, mutant)), "")


def matches(words: str, text: str) -> bool:
    return text.endswith(words[:-1]) if words.endswith("$") else words in text


def wrong_mutants(kernel: Kernel) -> list[tuple[int, Mutant]]:
    made = enumerate(mutants(kernel.source, set(kernel.functions)))
    return [(at, m) for at, m in made if not reason(kernel, str(m))]


class Unfinished(BaseException):
    """The time of a mutant is up. No `Exception`: that would be one of the mutant's."""


def judged(kernel: Kernel, at: int, limit: int) -> str | None:
    """`found` for the mutant of this number; None after so many CPU seconds."""

    def stop(*_: Any) -> None:
        raise Unfinished

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, limit)
    try:
        return found(kernel, list(mutants(kernel.source, set(kernel.functions)))[at], at)
    except Unfinished:
        return None
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def silent(kernel: Kernel, seed: int | None) -> str:
    """Run the right kernel: "" if it passes without a word, or what is said. seed: of the order in which it runs one of
    its problems, each seed the next one; None for all of them in the usual order."""
    problems = kernel.problems
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for problem in problems if seed is None else [problems[seed % len(problems)]]:
                problem(vars(kernel.module), orders(seed))
    except (Exception, SystemExit) as e:  # all of them are wanted in the table
        return f"{type(e).__name__}: {e}"
    return ""


def at_work(work: tuple[Any, ...]) -> tuple[Any, ...]:
    """Call `judged` or `silent` for the kernel of a name: both, their number, what it gave, and the CPU seconds."""
    task, name, at, *limit = work
    start = time.process_time()
    found = task(next(k for k in KERNELS if k.name == name), at, *limit)
    return task, name, at, found, time.process_time() - start
