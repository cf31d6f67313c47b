# SPDX-License-Identifier: Apache-2.0
"""What kernels do with peers' memory on two GPUs or more: each rank is a process, all of them under a time limit."""

from __future__ import annotations

import json

import pytest

from benchmarks.ranks import start

pytestmark = [pytest.mark.gpu, pytest.mark.slow]

TOGETHER = (
    "elements", "vectors", "tma", "bulk", "atomics", "strides_and_parts", "signals", "graph", "other_devices",
    "limits_of_other_devices", "of_a_pool", "remembered", "mapped_once_and_freed", "refusals", "multicast",
    "attention",
)  # fmt: skip
"""Cases that one start runs, one after the other."""


EXPERTS = "tokens", "skewed", "topks", "again", "graph", "plain", "errors"
"""Cases of experts.py."""


def ran(cases, timeout, module="rank"):
    """Run cases on all GPUs; return their lines of JSON, and how the ranks ended."""
    ended = start(f"tests.several_gpus.{module}", list(cases), _gpus(), timeout)
    lines = [json.loads(line) for text in ended.said for line in text.splitlines() if line.startswith('{"case"')]
    return lines, ended


def _gpus():
    torch = pytest.importorskip("torch", reason="ranks are torch.distributed's")
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    return torch.cuda.device_count()


@pytest.fixture(scope="module")
def together():
    return ran(TOGETHER, timeout=400)


@pytest.fixture(scope="module")
def experts():
    return ran(EXPERTS, timeout=400, module="experts")


@pytest.mark.parametrize("case", TOGETHER)
def test_a_kernel_reaches_its_peers(together, case):
    check(*together, case)


@pytest.mark.parametrize("case", EXPERTS)
def test_experts_of_several_gpus(experts, case):
    check(*experts, case)


def check(lines, ended, case):
    found = [line for line in lines if line["case"] == case]
    assert found, f"it did not end{'' if ended.in_time else ', in time'}:\n{ended.text[-4000:]}"
    assert not found[0]["wrong"], "\n".join(f"rank {r}: {s}" for r, s in found[0]["wrong"].items())
    print(case, found[0]["measured"])


def test_a_rank_that_is_dead_is_named_to_the_others():
    lines, ended = ran(["dead"], timeout=120)
    assert ended.in_time, ended.text[-4000:]
    assert len(lines) == _gpus() - 1, ended.text[-4000:]
    for line in lines:
        last = _gpus() - 1
        assert line["torch"], "the wait ended without a failure"
        assert 1.9 < line["seconds"] < 6, "the limit is 2 s"
        assert len(line["found"]) == 2, f"check() and the next launch say it: {line}"
        for rank, slot, limit, kernel, text in line["found"]:
            assert (rank, slot, limit, kernel) == (last, 2, 2.0, "waits_for"), text
            assert f"rank {last} did not come" in text
        print(line)
    printed = ended.text.count(f"numba_cute.PeerError: rank {_gpus() - 1} did not come")
    assert printed == _gpus() - 1, "each process prints it"
