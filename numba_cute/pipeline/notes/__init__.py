# SPDX-License-Identifier: Apache-2.0
"""While a kernel is compiled: notes of what is likely a mistake in its use of pipelines.

Each pipeline is followed from where it is made through all functions and methods of the user's that the kernel calls,
and through the objects that hold it. One that goes elsewhere (into a branch that joins others, a closure, a partial) is
let through. The simulator finds the same, and more, in a run.
"""

from ...seam.hooks.audits import AUDITS_OF_KERNELS, Code
from .flow import Flow, Threads
from .order import of_beginnings, of_order
from .sides import of_arrivals, of_clusters, of_sides
from .uses import uses_of


def check_pipelines(code: Code) -> None:
    """Note likely mistakes in the use of the pipelines of a kernel."""
    uses = uses_of(code)
    if not uses.pipes:
        return
    flow = Flow(code)
    threads = Threads(code, flow)
    for text, at in of_clusters(code):
        code.note(text, at)
    for pipe in uses.pipes:
        if not pipe.seen or pipe.obj is None:
            continue
        whole = [*of_sides(pipe)] or [*of_arrivals(pipe, code, threads), *of_beginnings(pipe, code, flow, threads)]
        for text, at in [*(whole if pipe.begun else ()), *of_order(pipe, uses, code, flow)]:
            code.note(text, at)


AUDITS_OF_KERNELS.append(check_pipelines)
