# SPDX-License-Identifier: Apache-2.0
"""The records of targets: what they say is what the assembler takes, what is shown, and what the docs' table has."""

from __future__ import annotations

import re
import subprocess
from dataclasses import fields
from pathlib import Path

import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.isa import TABLE
from numba_cute.isa.form.limits import launched_registers, registers_for
from numba_cute.isa.form.targets import FEATURES, TARGETS, Target

from .ptxas import assemble, find_ptxas

ptxas = pytest.mark.skipif(find_ptxas() is None, reason="needs ptxas")
DOCS = Path(__file__).resolve().parents[2] / "docs" / "environment.md"


@cuda.jit
def ones(x):
    x[cuda.threadIdx.x] = 1


# ---------------------------------------------------------------- the assembler


def said_of(folder, target, body="", directives="", ptx=None):
    """What the assembler says of an entry function, and whether it takes it. ptx: the version, by default the first
    that names the target."""
    source = folder / "probe.ptx"
    code = f".visible .entry probe() {directives} {{ {body} ret; }}"
    source.write_text(f".version {ptx or TARGETS[target].ptx}\n.target {target}\n.address_size 64\n{code}")
    command = [find_ptxas(), "-v", f"-arch={target}", str(source), "-o", str(folder / "out.cubin")]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout + done.stderr, not done.returncode


def takes(*args, **named):
    """Whether the assembler takes it without a warning."""
    said, taken = said_of(*args, **named)
    return taken and "warning" not in said


def static(nbytes):
    """A kernel's static shared memory."""
    return f".shared .b8 s[{nbytes}]; .reg .b32 r; mov.u32 r, s; st.shared.u32 [r], r;"


def known():
    """The targets that the installed assembler has."""
    if find_ptxas() is None:
        return []
    said = subprocess.run([find_ptxas(), "--help"], capture_output=True, text=True).stdout
    return sorted(set(re.findall(r"'(sm_\d+[af]?)'", said)))


KNOWN = [name for name in known() if int(re.sub(r"\D", "", name)) >= 80]
USUAL = (
    "sm_80",
    "sm_86",
    "sm_90",
    "sm_90a",
    "sm_107",
    "sm_107a",
    "sm_120",
    "sm_120a",
    "wgmma",
    "tcgen05",
    "setmaxnreg",
)
"""What is tried by default; the others are slow."""


def usually(names):
    return [pytest.param(name, marks=() if name in USUAL else pytest.mark.slow) for name in names]


CHIPS = usually(name for name in KNOWN if name[-1].isdigit())


@ptxas
def test_all_targets_of_the_assembler_from_sm_80_on_are_recorded():
    assert KNOWN and set(KNOWN) <= TARGETS.keys()


@ptxas
@pytest.mark.parametrize("name", CHIPS)
def test_the_first_version_of_ptx_that_names_a_target_is_recorded(name, tmp_path):
    before = {"7.0": "6.5", "8.0": "7.8", "9.0": "8.8"}
    for one in (n for n in KNOWN if n.rstrip("af") == name):
        first = TARGETS[one].ptx
        assert takes(tmp_path, one)
        assert not takes(tmp_path, one, ptx=before.get(first) or f"{first[:2]}{int(first[2:]) - 1}")


@ptxas
@pytest.mark.parametrize("name", CHIPS)
def test_the_assembler_has_the_recorded_limits_of_a_block_and_an_sm(name, tmp_path):
    have = TARGETS[name]
    assert takes(tmp_path, name, static(have.smem_static))
    assert "too much shared data" in said_of(tmp_path, name, static(have.smem_static + 4))[0]
    for threads, most in ((256, have.threads_per_sm // 256), (32, have.blocks_per_sm)):
        assert takes(tmp_path, name, directives=f".reqntid {threads} .minnctapersm {most}")
    more = have.threads_per_sm // 256 + 1
    assert "out of range" in said_of(tmp_path, name, directives=f".reqntid 256 .minnctapersm {more}")[0]
    assert takes(tmp_path, name, directives=f".maxnreg {have.registers_per_thread}")
    assert not takes(tmp_path, name, directives=f".maxnreg {have.registers_per_thread + 1}")
    assert takes(tmp_path, name, directives=".reqnctapercluster 2, 1, 1") == (have.cluster_size > 1)


@ptxas
@pytest.mark.parametrize("name", usually(n for n in KNOWN if n.endswith("a")))
def test_the_assembler_has_the_recorded_memories(name, tmp_path):
    """For a target with the suffix "a" it takes all of a block's shared memory as static."""
    have = TARGETS[name]
    assert takes(tmp_path, name, static(have.smem_per_block))
    assert f"{have.smem_per_block:#x} max" in said_of(tmp_path, name, static(have.smem_per_block + 4))[0]
    alloc = ".reg .b32 r; .shared .b32 s; mov.u32 r, s; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32"
    assert takes(tmp_path, name, f"{alloc} [r], {have.tmem_columns or 32};") == bool(have.tmem_columns)
    assert not takes(tmp_path, name, f"{alloc} [r], 1024;")


@ptxas
@pytest.mark.parametrize("threads, blocks", [(128, 1), (160, 2), (288, 1), (416, 1), (640, 2), (1024, 1)])
def test_a_kernel_with_setmaxnreg_begins_with_the_registers_that_the_assembler_gives_it(threads, blocks, tmp_path):
    directives = f".maxntid {threads} .minnctapersm {blocks}"
    said, _ = said_of(tmp_path, "sm_90a", "setmaxnreg.dec.sync.aligned.u32 24;", directives)
    begins = launched_registers(TARGETS["sm_90a"], 1, (threads, blocks))
    assert min(255, begins) == int(re.search(r"Used (\d+) registers", said)[1])


ROWS = {
    "cp.async": "cp_async", "fp8 mma": "mma_f32_fp8", "clusters": "mapa", "tma": "cp_async_bulk_tensor_s2g",
    "multicast": "cp_async_bulk_tensor_g2s", "multimem": "multimem_red", "wgmma": "wgmma_fence",
    "setmaxnreg": "setmaxnreg", "tma gather4": "cp_async_bulk_tensor_g2s", "tcgen05": "tcgen05_fence_before",
    "clusterlaunchcontrol": "clc_query", "block-scaled mma": "mma_mxf8f6f4",
}  # fmt: skip
"""A row of each feature."""


@ptxas
@pytest.mark.parametrize("feature", usually(FEATURES))
def test_the_targets_that_have_a_feature_are_those_for_which_its_row_assembles(feature, tmp_path):
    row = TABLE[ROWS[feature]]
    given = ("cta_mask",) if feature == "multicast" else ()
    form = next(f for f in row.forms() if set(row.needs(*f)) == {FEATURES[feature]} and set(given) <= set(f[1]))
    having = [name for name in KNOWN if assemble(name, row, [form], tmp_path) == ""]
    assert having == [name for name in KNOWN if feature in TARGETS[name].features]


# ---------------------------------------------------------------- records


def test_the_first_targets_of_families_are_recorded():
    for have in TARGETS.values():
        assert have.family == "" or TARGETS[have.family].family == have.family
        assert have.renamed == "" or have.renamed in TARGETS
        assert have.smem_per_block + have.smem_reserved == have.smem_per_sm
        assert have.cluster_size in (1, 8, 16)
        assert registers_for(have, have.threads_per_block) * have.threads_per_block <= have.registers_per_block


def test_a_target_is_shown_with_its_figures():
    said = repr(cute.target("sm_120a"))
    for words in ("sm_120a (PTX 8.7, family sm_120)", "99 KiB of a block, 48 of them static", "255 of a thread",
                  "1536 of an SM", "cluster:       16", "tensor memory: none", "block-scaled mma", "170 SMs",
                  ):  # fmt: skip
        assert words in said
    for field in fields(Target):
        assert f"{field.name}:" in Target.__doc__ or f"{field.name}," in Target.__doc__, field.name
    with pytest.raises(cute.CuteError, match="arch 'sm_130': not a known target"):
        cute.target("sm_130")
    with pytest.raises(cute.CuteError, match="name one, as cute.target"):
        cute.target()


def rows_of_docs():
    """What docs/environment.md says of each chip."""
    for name, have in TARGETS.items():
        if name[-1].isdigit():
            same = [n for n in TARGETS if n.rstrip("af") == name]
            sold = ", ".join(f"{p.name}: {p.sms}" for p in have.products)
            columns = (
                ", ".join(f"`{n}`" for n in same),
                ", ".join(dict.fromkeys(TARGETS[n].ptx for n in same)),
                f"{have.smem_per_block >> 10} ({have.smem_per_sm >> 10})",
                f"{have.threads_per_sm} ({have.blocks_per_sm})",
                have.cluster_size if have.cluster_size > 1 else "",
                have.tmem_columns or "",
                f"now `{have.renamed}`" if have.renamed else sold,
            )
            yield f"| {' | '.join(map(str, columns))} |"


def test_the_docs_have_the_records():
    found = [line for line in DOCS.read_text().splitlines() if line.startswith("| `sm_")]
    assert found == list(rows_of_docs())
