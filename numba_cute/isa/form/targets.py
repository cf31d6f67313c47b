# SPDX-License-Identifier: Apache-2.0
"""The targets that kernels are compiled for and simulated: one record each of what they have.

A new target is one more `Target` in `TARGETS`; rows, limits, plans, the simulator and the docs' table read it there.
Figures: the CUDA C++ Programming Guide ("Compute Capabilities"), the tuning guides, the toolkit's cuda_occupancy.h, and
the PTX ISA (".target"). The tests compare them with what the assembler takes, which takes clusters of any size. The
largest clusters: 16 of sm_90 and sm_100 are the tuning guides'; 8 of sm_110 and sm_121, and 16 of sm_120, are what
NVIDIA's Warp says that the driver finds on Thor, DGX Spark and ("typically") desktop Blackwell (documentation of
warp.get_cuda_max_cluster_dim; of Thor also jax-ml/jax#33720); 16 of sm_103 and sm_107 are assumed, as their family's.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ...seam import CuteError, current_or, frozen

__all__ = ["Target", "target"]

KIB = 1024
PORTABLE_CLUSTER = 8
"""CTAs of the largest cluster that every target with clusters runs; more are allowed for a kernel one by one."""
LARGEST_CLUSTER = 16
"""CTAs of the largest cluster of any target."""

FEATURES = {
    "cp.async": "sm_80",
    "fp8 mma": "sm_89",
    "clusters": "sm_90",
    "tma": "sm_90",
    "multicast": "sm_90",
    "multimem": "sm_90",
    "wgmma": "sm_90a",
    "setmaxnreg": "sm_90a|sm_100f|sm_110f|sm_120f",
    "tma gather4": "sm_100f|sm_110f",
    "tcgen05": "sm_100f|sm_110f",
    "clusterlaunchcontrol": "sm_100",
    "block-scaled mma": "sm_120f",
}
"""By what kernels are written with, the target that its rows need, as they state it."""


class Product(NamedTuple):
    """A GPU that is sold. name: its name. sms: the SMs that it has. l2: the bytes of its L2 cache, 0 if not known."""

    name: str
    sms: int
    l2: int = 0


@frozen
class Target:
    """The figures of a target. `cute.target("sm_90a")` gives one; fields in bytes, 32-bit registers, threads and CTAs.

    name: as `arch=` takes it. ptx: the first version of PTX that names it. smem_per_block: the most shared memory of a
    CTA, static and dynamic, if the launch opts in. smem_per_sm: of an SM. smem_static: the most that is declared
    (`cuda.shared.array`, `arch.alloc_smem`). smem_reserved: what the system takes of each CTA's share of an SM.
    registers_per_thread, registers_per_block, registers_per_sm: the most of each. threads_per_block, threads_per_sm,
    blocks_per_sm: likewise. block, grid: the most along x, y and z. cluster_size: the most CTAs of a cluster, 1 where
    there are none; above 8 a kernel is not portable. tmem_columns: columns of tensor memory, 0 where there is none.
    family: the first target whose "f" code it runs; its own name where there is no such. products: known GPUs, the one
    that stands for the target first. renamed: what newer toolkits call it.

    >>> cute.target("sm_90a").cluster_size, cute.target("sm_100a").tmem_columns
    (16, 512)
    """

    name: str
    ptx: str
    smem_per_sm: int
    threads_per_sm: int
    blocks_per_sm: int
    cluster_size: int = 1
    tmem_columns: int = 0
    family: str = ""
    products: tuple[Product, ...] = ()
    renamed: str = ""
    smem_reserved: int = KIB
    smem_static: int = 48 * KIB
    registers_per_thread: int = 255
    registers_per_block: int = 65536
    registers_per_sm: int = 65536
    threads_per_block: int = 1024
    block: tuple[int, int, int] = (1024, 1024, 64)
    grid: tuple[int, int, int] = ((1 << 31) - 1, 65535, 65535)

    @property
    def smem_per_block(self) -> int:
        """The most shared memory of a CTA, static and dynamic, in bytes."""
        return self.smem_per_sm - self.smem_reserved

    @property
    def features(self) -> tuple[str, ...]:
        """The features that it has, of those in `FEATURES`."""
        return tuple(name for name, need in FEATURES.items() if supports(self.name, need))

    def __repr__(self) -> str:
        kib, sold = KIB, [f"{p.name} ({p.sms} SMs{f', {p.l2 >> 20} MiB of L2' if p.l2 else ''})" for p in self.products]
        lines = {
            "shared memory": f"{self.smem_per_block // kib} KiB of a block, {self.smem_static // kib} of them static; "
            f"{self.smem_per_sm // kib} KiB of an SM, {self.smem_reserved // kib} reserved for each block",
            "registers": f"{self.registers_per_thread} of a thread, {self.registers_per_block} of a block, "
            f"{self.registers_per_sm} of an SM",
            "threads": f"{self.threads_per_block} of a block, {self.threads_per_sm} of an SM, in at most "
            f"{self.blocks_per_sm} blocks",
            "cluster": f"{self.cluster_size} blocks" if self.cluster_size > 1 else "none",
            "tensor memory": f"{self.tmem_columns} columns" if self.tmem_columns else "none",
            "features": ", ".join(self.features),
            "products": ", ".join(sold) or "none known",
        }
        family = f", family {self.family}" if self.family else ""
        renamed = f", now called {self.renamed}" if self.renamed else ""
        head = f"Target {self.name} (PTX {self.ptx}{family}{renamed})"
        return "\n".join([head, *(f"  {name + ':':<15}{text}" for name, text in lines.items())])


TARGETS: dict[str, Target] = {}
"""The records by name, in order."""


def _add(chip: Target, **suffixed: str) -> None:
    """Add the record of a chip, and those of the same chip whose names have a suffix, with the PTX that names them."""
    TARGETS[chip.name] = chip
    for suffix, ptx in suffixed.items():
        name = chip.name + suffix
        renamed = chip.renamed and chip.renamed + suffix
        TARGETS[name] = dataclasses.replace(chip, name=name, ptx=ptx, renamed=renamed)


_A100 = Product("A100", 108, 40 << 20), Product("A30", 56, 24 << 20)
_GA10X = Product("A10", 72, 6 << 20), Product("A40", 84, 6 << 20), Product("GeForce RTX 3090", 82, 6 << 20)
_ADA = Product("L40S", 142, 96 << 20), Product("L4", 58, 48 << 20), Product("GeForce RTX 4090", 128, 72 << 20)
_HOPPER = Product("H100 SXM", 132, 50 << 20), Product("H200", 132, 60 << 20), Product("H100 PCIe", 114, 50 << 20)
_THOR = (Product("Jetson AGX Thor", 20, 32 << 20),)
_GB202 = Product("RTX PRO 6000 Blackwell", 188, 128 << 20), Product("GeForce RTX 5090", 170, 96 << 20)
_B200, _B300 = (Product("B200", 148, 126 << 20),), (Product("B300", 148),)

_add(Target("sm_80", "7.0", 164 * KIB, 2048, 32, products=_A100))
_add(Target("sm_86", "7.1", 100 * KIB, 1536, 16, products=_GA10X))
_add(Target("sm_87", "7.4", 164 * KIB, 1536, 16, products=(Product("Jetson AGX Orin", 16, 4 << 20),)))
_add(Target("sm_88", "9.0", 100 * KIB, 1536, 16))
_add(Target("sm_89", "7.8", 100 * KIB, 1536, 24, products=_ADA))
_add(Target("sm_90", "7.8", 228 * KIB, 2048, 32, 16, products=_HOPPER), a="8.0")
_add(Target("sm_100", "8.6", 228 * KIB, 2048, 32, 16, 512, "sm_100", _B200), a="8.6", f="8.8")
_add(Target("sm_101", "8.6", 228 * KIB, 1536, 24, 8, 512, "sm_110", _THOR, "sm_110"), a="8.6", f="8.8")
_add(Target("sm_103", "8.8", 228 * KIB, 2048, 32, 16, 512, "sm_100", _B300), a="8.8", f="8.8")
# cuda_occupancy.h knows a configuration of sm_107 with 328 KiB of an SM, which a launch asks for apart: none here does.
_add(Target("sm_107", "9.4", 228 * KIB, 1024, 16, 16, 512, "sm_100", (Product("Rubin", 224),)), a="9.4", f="9.4")
_add(Target("sm_110", "9.0", 228 * KIB, 1536, 24, 8, 512, "sm_110", _THOR), a="9.0", f="9.0")
_add(Target("sm_120", "8.7", 100 * KIB, 1536, 24, 16, 0, "sm_120", _GB202), a="8.7", f="8.8")
_add(Target("sm_121", "8.8", 100 * KIB, 1536, 24, 8, 0, "sm_120", (Product("GB10", 48, 24 << 20),)), a="8.8", f="8.8")


# ---------------------------------------------------------------- the target of now


class _Asked(threading.local):
    """The target that this thread compiles for or simulates, whatever GPU is here; sms: how many SMs it is to have."""

    arch: str | None = None
    sms: int | None = None


_ASKED = _Asked()


@contextmanager
def answering_for(arch: str, sms: int | None = None) -> Iterator[None]:
    """Have what is asked of "the GPU" on this thread answered for a target. sms: how many SMs it is to have; None: as
    many as was said around this, or as its first product has."""
    before = _ASKED.arch, _ASKED.sms
    _ASKED.arch, _ASKED.sms = arch, sms or _ASKED.sms
    try:
        yield
    finally:
        _ASKED.arch, _ASKED.sms = before


def asked() -> Target | None:
    """Return the target that was named to `compile` or `simulate`, while one of them runs: who asks what the GPU has
    is answered for that. None of a launch on a GPU."""
    found, sms = None if _ASKED.arch is None else named(_ASKED.arch), _ASKED.sms
    if found is None or sms is None:
        return found
    products = tuple(p._replace(sms=sms) for p in found.products or (Product(found.name, sms),))
    return dataclasses.replace(found, products=products)


def named(arch: object) -> Target:
    """Return the record of a target. Raises CuteError for a name that is none."""
    found = TARGETS.get(arch) if isinstance(arch, str) else None
    if found is None:
        raise CuteError(unknown_target(arch))
    return found


def target(name: str | None = None) -> Target:
    """Return what a target has: shared memory, registers, threads, clusters, tensor memory, features, products.

    name: as `arch=` takes it, like "sm_90a"; None: the target that a kernel or host function is compiled for or
    simulated now. Raises CuteError for a name that is none, and for None where nothing is compiled or simulated.

    >>> cute.target("sm_90a").smem_per_sm
    233472
    """
    if name is not None:
        return named(name)
    arch = getattr(current_or(None), "arch", None) or _ASKED.arch
    if arch is None:
        raise CuteError('target: nothing is compiled or simulated here: name one, as cute.target("sm_90a")')
    return named(arch)


# ---------------------------------------------------------------- which have what


class _Need(NamedTuple):
    name: str
    number: int
    kind: str


@functools.cache
def _needs(need: str) -> tuple[_Need, ...]:
    """Take apart what a row says of its target."""
    matches = [re.fullmatch(r"(sm_(\d+))([af]?)", one) for one in need.split("|")]
    return tuple(_Need(m[1], int(m[2]), m[3]) for m in matches if m is not None)


def supports(arch: str, need: str) -> bool:
    """Say whether code for `arch` ("sm_90a") may use an instruction whose least target is `need`.

    A plain target runs there and on all later ones; an "a" target on itself alone; an "f" target on its family;
    "sm_90a|sm_100f" where either does. A GPU that there is no record of has what its number says. Raises CuteError for
    an `arch` that is not a name of a target.
    """
    have = TARGETS.get(arch)
    of = _needs(arch if have is None else have.renamed or arch)
    if not of:
        raise CuteError(unknown_target(arch))
    ((name, number, suffix),) = of
    for least in _needs(need):
        if least.kind == "":
            fits = number >= least.number
        elif least.kind == "a":
            fits = suffix == "a" and name == least.name
        else:
            fits = suffix != "" and number >= least.number and _family(least.name) == _family(name)
        if fits:
            return True
    return False


def _family(name: str) -> str:
    found = TARGETS.get(name)
    return name[:-1] + "0" if found is None else found.family or name


def supporting(need: str) -> list[str]:
    """List the targets that have what needs `need`, but for names that are no longer used."""
    return [name for name, have in TARGETS.items() if not have.renamed and supports(name, need)]


def listing(names: Iterable[str]) -> str:
    """Write down targets, the suffixes of each together: "sm_90 (a), sm_100 (a, f)"."""
    suffixes: dict[str, list[str]] = {}
    for name in names:
        chip = name.rstrip("af")
        suffixes.setdefault(chip, []).extend([name[len(chip) :]] if name != chip else [])
    return ", ".join(f"{chip} ({', '.join(found)})" if found else chip for chip, found in suffixes.items())


def lacks(what: str, need: str, arch: str) -> str:
    """Write the message for `what` of an instruction, whose least target is `need`, in code for `arch`."""
    needed, having = " or ".join(need.split("|")), supporting(need)
    having = [name for name in having if not name.endswith("f") or name[:-1] + "a" not in having]
    if not having:
        remedy = "no target that kernels are compiled for has it"
    elif len(having) == 1:
        remedy = f'use arch="{having[0]}"'
    elif all(n.kind == "" for n in _needs(need)):
        remedy = f"use {having[0]} or a later one as arch="
    else:
        remedy = f"use {', '.join(having[:-1])} or {having[-1]} as arch="
    return f"{what} needs {needed}, and the target is {arch}: {remedy}, or an operation that {arch} has"


def unknown_target(arch: object) -> str:
    """Write the message for an `arch` that is not a target."""
    said = f"arch {arch!r}: not a known target; use one of {listing(TARGETS)}"
    match = re.fullmatch(r"(?:sm_?|compute_)?(\d+)([af]?)", str(arch))
    near = [a for a in TARGETS if match is not None and re.fullmatch(rf"sm_{match[1]}a?", a)]
    return f"{said}; did you mean {near[-1]!r}?" if near else said
