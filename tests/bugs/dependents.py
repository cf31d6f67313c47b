# SPDX-License-Identifier: Apache-2.0
"""Bugs of launches that may begin before those before them have ended (programmatic dependent launch)."""

import numpy as np
from numba import cuda

from numba_cute import arch
from numba_cute.sim import RaceError
from numba_cute.sim.checks.dependents import Dependents

from .zoo import bug


def arrays():
    return tuple(np.zeros(128, np.float32) for _ in range(3))


def pdl_bug(*words):
    return bug(RaceError, "race between launches", *words, check=Dependents, arguments=arrays, blocks=2)


def writes_a(a, b, c):
    arch.griddepcontrol_launch_dependents()
    a[cuda.grid(1)] = 1


def writes_b(wait, early=False):
    def kernel(a, b, c):
        if early:
            arch.griddepcontrol_launch_dependents()
        if wait:
            arch.griddepcontrol_wait()
        if not early:
            arch.griddepcontrol_launch_dependents()
        b[cuda.grid(1)] = 2

    return kernel


def doubles_a(wait):
    """Writes c; where only one thread of a block waits, a barrier tells the others."""

    def kernel(a, b, c):
        if wait == "one" and cuda.threadIdx.x == 0:
            arch.griddepcontrol_wait()
        if wait == "one":
            cuda.syncthreads()
        if wait == "all":
            arch.griddepcontrol_wait()
        c[cuda.grid(1)] = 2 * a[cuda.grid(1)]
        if wait == "late":
            arch.griddepcontrol_wait()

    return kernel


@pdl_bug("launch 2", "launch 1", "is read by", "griddepcontrol_wait() in kernel")
def dependent_launch_that_never_waits(mended):
    return [writes_a, doubles_a("one" if mended else "")]


@pdl_bug("launch 2", "is read by", "before this line")
def dependent_launch_that_reads_before_it_waits(mended):
    return [writes_a, doubles_a("all" if mended else "late")]


@pdl_bug("launch 3", "launch 2", "never waits for it")
def a_launch_in_the_middle_that_never_waits(mended):
    return [writes_a, writes_b(mended), doubles_a("all")]


@pdl_bug("launch 3", "launch 1", "launch_dependents")
def a_launch_in_the_middle_that_lets_the_next_begin_before_it_waits(mended):
    return [writes_a, writes_b(True, early=not mended), doubles_a("")]


@pdl_bug("is written by", "reads it at")
def dependent_launch_that_overwrites_what_the_one_before_reads(mended):
    def reads(a, b, c):
        arch.griddepcontrol_launch_dependents()
        c[cuda.grid(1)] = a[cuda.grid(1)]

    def overwrites(a, b, c):
        if mended:
            arch.griddepcontrol_wait()
        a[cuda.grid(1)] = 3

    return [reads, overwrites]
