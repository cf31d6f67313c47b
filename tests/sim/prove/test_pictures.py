# SPDX-License-Identifier: Apache-2.0
"""Pictures of a proof and of a deadlock: their texts, and that SVG and HTML say the same and are well-formed."""

import re
from html import unescape
from xml.etree import ElementTree

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import dtypes, seam
from numba_cute.isa.rows import bulk, fence, mbarrier
from numba_cute.seam.ground.drawing import Drawing
from numba_cute.sim import DeadlockError, simulate
from numba_cute.sim.prove.roles import Loop, folded

FULL, EMPTY, BUF, STAGE, ROUNDS = 1024, 1040, 2048, 128, 5
SVG = "{http://www.w3.org/2000/svg}"


def ring(a, out, rounds):
    """A producer's lane and a warp that reads, over two stages; then the first stage's memory is used for a sum."""
    t, load, store = cuda.threadIdx.x, seam.current().load, seam.current().store
    if t < 2:
        mbarrier.mbarrier_init(FULL + 8 * t, 1)
        mbarrier.mbarrier_init(EMPTY + 8 * t, 32)
        fence.fence_mbarrier_init()
    cuda.syncthreads()
    for i in range(rounds):
        stage, parity = i % 2, i // 2 % 2
        if t == 0:
            mbarrier.mbarrier_wait_parity(EMPTY + 8 * stage, parity ^ 1)
            mbarrier.mbarrier_arrive_expect_tx(FULL + 8 * stage, STAGE)
            bulk.cp_async_bulk_g2s(BUF + STAGE * stage, a.ctypes.data + STAGE * i, STAGE, FULL + 8 * stage)
        if t >= 32:
            mbarrier.mbarrier_wait_parity(FULL + 8 * stage, parity)
            out[t - 32] += load(dtypes.Int32, "smem", BUF + STAGE * stage + 4 * (t - 32), 1, 4)[0]
            mbarrier.mbarrier_arrive(EMPTY + 8 * stage)
    cuda.syncthreads()
    if t >= 32:
        store(dtypes.Int32, "smem", BUF + 4 * (t - 32), (1,), 4)
        fence.fence_proxy_async(space="shared::cta")
        out[t - 32] += load(dtypes.Int32, "smem", BUF + 4 * (t - 32), 1, 4)[0]


@pytest.fixture(scope="module")
def proof():
    a, out = np.ones(32 * ROUNDS, np.int32), np.zeros(32, np.int32)
    found = simulate(ring).prove()[1, 64, 0, 4096](a, out, ROUNDS)
    assert found and (out == ROUNDS + 1).all()
    return found


def without_places(text):
    return [re.sub(r" *test_pictures\.py:.*", "", line) for line in str(text).splitlines()]


def test_roles_are_listed_by_steps_with_their_loops_folded(proof):
    assert without_places(proof.roles) == [
        "TMA load: warp 0",
        "  initialises mbarrier 0x400[0-1] (2 lanes)",
        "  initialises mbarrier 0x410[0-1] (2 lanes)",
        "  meets others at syncthreads",
        "  5 x:",
        "    waits for mbarrier 0x410[0-1] (1 lane)",
        "    announces 128 bytes and arrives at mbarrier 0x400[0-1] (1 lane)",
        "    cp_async_bulk_g2s, shared memory, signals mbarrier 0x400[0-1] (1 lane)",
        "  meets others at syncthreads",
        "reader + writer: warp 1",
        "  meets others at syncthreads",
        "  5 x:",
        "    waits for mbarrier 0x400[0-1]",
        "    reads out",
        "    reads shared memory",
        "    writes out",
        "    arrives at mbarrier 0x410[0-1]",
        "  meets others at syncthreads",
        "  writes shared memory",
        "  reads out",
        "  reads shared memory",
        "  writes out",
    ]


def test_barriers_are_listed_with_counts_bytes_and_who_signals_and_waits(proof):
    told = re.sub(r"test_pictures\.py:\d+", "HERE", str(proof.barriers))
    assert told.splitlines() == [
        "mbarrier 0x400[0-1]: 1 arrival and 128 bytes a phase, 2 to 3 phases",
        "    TMA load announces 128 bytes and arrives (HERE)",
        "    TMA load issues cp_async_bulk_g2s (HERE)",
        "    reader + writer waits (HERE)",
        "mbarrier 0x410[0-1]: 32 arrivals a phase, 2 to 3 phases",
        "    reader + writer arrives (HERE)",
        "    TMA load waits (HERE)",
    ]


def test_memory_is_drawn_over_steps_with_what_lies_over_what(proof):
    lines = str(proof.memory).splitlines()
    assert re.fullmatch(r"memory over steps 0 to \d+ of \d+", lines[0])
    rows = {line.partition(",")[0]: line for line in lines if line.startswith("shared memory 0x")}
    assert list(rows) == ["shared memory 0x800", "shared memory 0x880"]
    signs = {name: re.sub("[^WR=]", "", line.partition("bytes")[2][:60]) for name, line in rows.items()}
    assert signs["shared memory 0x800"].count("W") == 4 and signs["shared memory 0x880"].count("W") == 2
    assert "TMA load and reader + writer > reader + writer" in rows["shared memory 0x800"]
    assert proof.memory.only(first=5, last=9).last == 9
    with pytest.raises(cute.CuteError, match="cta 1 is none"):
        proof.memory.only(cta=1)


def test_what_lies_over_another_is_an_alias():
    def kernel(out):
        t, store = cuda.threadIdx.x, seam.current().store
        store(dtypes.Int32, "smem", BUF + 4 * t, (1,), 4)
        cuda.syncthreads()
        out[t] = seam.current().load(dtypes.Int32, "smem", BUF + 4 * t, 1, 4)[0]
        cuda.syncthreads()
        if t < 16:
            store(dtypes.Int32, "smem", BUF + 4 * t, (2,), 4)
        cuda.syncthreads()
        out[t] += seam.current().load(dtypes.Int32, "smem", BUF + 4 * (t % 16), 1, 4)[0]

    found = simulate(kernel).prove()[1, 32, 0, 4096](np.zeros(32, np.int32))
    assert found.memory.aliases == ("shared memory 0x800, 64 bytes and shared memory 0x800, 128 bytes share 64 bytes",)


def hangs(out):
    t = cuda.threadIdx.x
    if t == 0:
        mbarrier.mbarrier_init(FULL, 1)
        mbarrier.mbarrier_init(EMPTY, 2)  # but one arrives
    cuda.syncthreads()
    for i in range(2):
        if t == 0:
            mbarrier.mbarrier_wait_parity(EMPTY, i & 1 ^ 1)
            mbarrier.mbarrier_arrive(FULL)
        if t == 32:
            mbarrier.mbarrier_wait_parity(FULL, i & 1)
            mbarrier.mbarrier_arrive(EMPTY)


@pytest.fixture(scope="module")
def graph():
    with pytest.raises(DeadlockError) as caught:
        simulate(hangs)[1, 64, 0, 4096](np.zeros(1))
    return caught.value.graph


def test_a_deadlock_carries_who_waits_for_whom(graph):
    at = r"tests/sim/prove/test_pictures.py:\d+"
    told = re.sub(at, "HERE", str(graph).replace("\\", "/"))
    assert told.splitlines() == [
        "thread 0 (warp 0), at HERE",
        "  waits for mbarrier at 0x410, phase 0: 1 of 2 arrivals missing",
        "    which wants thread 32 (warp 1), at HERE",
        "thread 32 (warp 1), at HERE",
        "  waits for mbarrier at 0x400, phase 1: 1 of 1 arrival missing",
        "    which wants thread 0 (warp 0), at HERE",
        "cycle: thread 0 (warp 0) > thread 32 (warp 1) > thread 0 (warp 0)",
    ]


@pytest.mark.parametrize("name", ["roles", "barriers", "memory", "graph"])
def test_pictures_are_well_formed_and_say_what_the_text_does(name, proof, graph, tmp_path):
    picture = graph if name == "graph" else getattr(proof, name)
    svg, html = picture.svg(tmp_path / "a.svg"), picture.html(tmp_path / "a.html")
    assert (tmp_path / "a.svg").read_text() == svg == picture._repr_svg_()
    root = ElementTree.fromstring(svg)
    ElementTree.fromstring(html.removeprefix("<!doctype html>"))
    assert unescape(str(picture)) in unescape(html) and "http" not in html.replace("http://www.w3.org/2000/svg", "")
    words = " ".join(t.text or "" for t in root.iter(f"{SVG}text"))
    wanted = re.findall(r"0x[0-9a-f]+|\d+ (?:x|bytes|arrivals?|phases|lanes?)\b|:\d+\b", str(picture))
    assert wanted and not [w for w in wanted if w not in words]
    drawn = picture.drawn().words
    over = [
        (a, b) for i, a in enumerate(drawn) for b in drawn[i + 1 :]
        if abs(a.y - b.y) < 10 and a.x < b.x + b.width and b.x < a.x + a.width
    ]  # fmt: skip
    assert not over, "no text lies over another"


def test_a_notebook_shows_a_proof_with_its_pictures(proof):
    shown = ElementTree.fromstring(f"<div>{proof._repr_html_()}</div>")
    assert len(list(shown.iter(f"{SVG}svg"))) == 3 and "proved. Every order" in shown[0].text


def test_a_picture_escapes_its_texts():
    d = Drawing()
    d.text(0, 10, "a < b & c")
    d.box(0, 0, 5, 5, title="<&>")
    assert [t.text for t in ElementTree.fromstring(str(d)).iter() if t.text][-2:] == ["a < b & c", "<&>"]


@pytest.mark.parametrize(
    ("steps", "gives"),
    [
        ("abc", "abc"),
        ("xabababy", "x 3(ab) y"),
        ("aabaab", "2(2(a) b)"),
        ("ababcababc", "2(2(ab) c)"),
        ("abbabbbb", "2(a 2-4(b))"),
    ],
)
def test_loops_are_found_with_how_often_they_go_round(steps, gives):
    def told(items):
        parts = [""]
        for item in items:
            if isinstance(item, Loop):
                times = str(item.least) if item.least == item.most else f"{item.least}-{item.most}"
                parts += [f"{times}({told(item.body)})", ""]
            else:
                parts[-1] += item
        return " ".join(filter(None, parts))

    assert told(folded(list(steps))) == gives
