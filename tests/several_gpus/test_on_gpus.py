# SPDX-License-Identifier: Apache-2.0
"""What kernels do with peers' memory on two GPUs or more: each rank is a process, all of them under a time limit."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.gpu, pytest.mark.slow]

TOGETHER = (
    "elements", "vectors", "tma", "bulk", "atomics", "strides_and_parts", "signals", "graph", "other_devices",
    "remembered", "mapped_once_and_freed", "refusals", "multicast",
)  # fmt: skip
"""Cases that one start runs, one after the other."""


def start(cases, timeout, ranks=None):
    """Run cases in as many processes as there are GPUs (or `ranks`); return their lines of JSON, all that they printed,
    and whether they ended in time."""
    ranks = ranks or _gpus()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    of_all = {**os.environ, "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    command = [sys.executable, "-m", "tests.several_gpus.rank", *cases]
    root = Path(__file__).parents[2]
    running = [
        subprocess.Popen(
            command, cwd=root, env={**of_all, "RANK": str(r), "LOCAL_RANK": str(r)}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        for r in range(ranks)
    ]  # fmt: skip
    said, in_time = [], True
    for one in running:
        try:
            said.append(one.communicate(timeout=timeout)[0])
        except subprocess.TimeoutExpired:
            in_time = False
            for other in running:
                other.kill()
            said.append(one.communicate()[0])
    lines = [json.loads(line) for text in said for line in text.splitlines() if line.startswith('{"case"')]
    return lines, "\n".join(said), in_time


def _gpus():
    torch = pytest.importorskip("torch", reason="ranks are torch.distributed's")
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    return torch.cuda.device_count()


@pytest.fixture(scope="module")
def together():
    return start(TOGETHER, timeout=400)


@pytest.mark.parametrize("case", TOGETHER)
def test_a_kernel_reaches_its_peers(together, case):
    lines, said, in_time = together
    found = [line for line in lines if line["case"] == case]
    assert found, f"it did not end{'' if in_time else ', in time'}:\n{said[-4000:]}"
    assert not found[0]["wrong"], "\n".join(f"rank {r}: {s}" for r, s in found[0]["wrong"].items())
    print(case, found[0]["measured"])


def test_a_rank_that_is_dead_is_named_to_the_others():
    lines, said, in_time = start(["dead"], timeout=120)
    assert in_time, said[-4000:]
    assert len(lines) == _gpus() - 1, said[-4000:]
    for line in lines:
        last = _gpus() - 1
        assert line["torch"], "the wait ended without a failure"
        assert 1.9 < line["seconds"] < 6, "the limit is 2 s"
        assert len(line["found"]) == 2, f"check() and the next launch say it: {line}"
        for rank, slot, limit, kernel, text in line["found"]:
            assert (rank, slot, limit, kernel) == (last, 2, 2.0, "waits_for"), text
            assert f"rank {last} did not come" in text
        print(line)
    assert said.count(f"numba_cute.PeerError: rank {_gpus() - 1} did not come") == _gpus() - 1, "each process prints it"
