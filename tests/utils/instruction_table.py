# SPDX-License-Identifier: Apache-2.0
"""The table of instructions in docs/nvgpu.md. `python -m tests.utils.instruction_table` writes it."""

from __future__ import annotations

import re
from pathlib import Path

from numba_cute.isa.form.instr import TABLE, Instr

PAGE = Path(__file__).resolve().parents[2] / "docs" / "nvgpu.md"
BEGIN, END = "<!-- instructions -->\n", "<!-- end of instructions -->\n"

FAMILIES = {
    "Matrices": ("mma.sync", "mma.sp", "wgmma.mma_async.sp", "wgmma.mma_async", "wgmma.fence", "wgmma.commit_group",
                 "wgmma.wait_group", "ldmatrix", "stmatrix", "movmatrix", "tcgen05.mma.ws", "tcgen05.mma",
                 "tcgen05.cp", "tcgen05.ld", "tcgen05.st", "tcgen05.shift", "tcgen05.alloc", "tcgen05.dealloc",
                 "tcgen05.relinquish_alloc_permit", "tcgen05.wait", "tcgen05.fence", "tcgen05.commit"),
    "Copies": ("cp.async.bulk.tensor", "cp.async.bulk.prefetch.tensor", "cp.async.bulk.prefetch",
               "cp.async.bulk.commit_group", "cp.async.bulk.wait_group", "cp.async.bulk",
               "cp.reduce.async.bulk.tensor", "cp.reduce.async.bulk", "cp.async.mbarrier.arrive",
               "cp.async.commit_group", "cp.async.wait_group", "cp.async.wait_all", "cp.async", "st.async",
               "red.async", "multimem", "prefetch.tensormap", "tensormap.replace", "tensormap.cp_fenceproxy"),
    "Barriers and fences": ("mbarrier", "barrier.cluster", "barrier.cta", "bar.warp", "fence.proxy.tensormap",
                            "fence.proxy", "fence.mbarrier_init", "fence.acq_rel", "fence", "elect.sync",
                            "setmaxnreg", "griddepcontrol", "clusterlaunchcontrol"),
}  # fmt: skip
_PREFIXES = sorted((p for family in FAMILIES.values() for p in family), key=len, reverse=True)
_SPLIT = re.compile(r"[\s;{}<>|]+")


def family(row: Instr) -> str | None:
    """Which family a row is of: the longest of the prefixes that an instruction of its text starts with."""
    words = _SPLIT.split(row.ptx)
    for prefix in _PREFIXES:
        if any(w == prefix or w.startswith((prefix + ".", prefix + ":")) for w in words):
            return "wgmma.mma_async.sp" if prefix == "wgmma.mma_async" and ".sp." in row.ptx else prefix
    return None


def table() -> str:
    """Each family with its targets, who issues it, what completes it and what it may be given."""
    lines, by_family = [], {}
    for row in TABLE.values():
        by_family.setdefault(family(row), []).append(row)
    for title, prefixes in FAMILIES.items():
        lines += [
            f"### {title}",
            "",
            "| PTX | target | issued by a | completed by | optional |",
            "| --- | --- | --- | --- | --- |",
        ]
        for prefix in sorted(prefixes):
            rows = by_family.get(prefix, [])
            for issuer in sorted({row.issuer for row in rows}):
                mine = [row for row in rows if row.issuer == issuer]
                targets = sorted({t for row in mine for t in targets_of(row)}, key=order)
                optional = dict.fromkeys(o.name for row in mine for o in row.operands if o.optional)
                done = sorted({(row.done_by or "").replace("_", " ") for row in mine} - {""})
                lines.append(
                    f"| `{prefix}` | {', '.join(targets)} | {issuer} | {', '.join(done)} | {', '.join(optional)} |"
                )
        lines.append("")
    return "\n".join(lines)


def targets_of(row: Instr) -> set[str]:
    """The targets that its forms and its optional operands need."""
    return {t for case in row.spelled for target in row.needs(case, row.names) for t in target.split("|")}


def order(target: str) -> tuple[int, str]:
    return int(re.sub(r"\D", "", target)), target


def between(page: str) -> str:
    """The table as the page has it."""
    return page.split(BEGIN)[1].split(END)[0]


if __name__ == "__main__":
    page = PAGE.read_text()
    PAGE.write_text(page.replace(BEGIN + between(page) + END, BEGIN + table() + END))
