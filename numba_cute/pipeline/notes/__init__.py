# SPDX-License-Identifier: Apache-2.0
"""While a kernel is compiled: notes of what is likely a mistake in its use of pipelines.

A function is followed that makes a pipeline, or is given one or a participant of one, and what happens to it there and
in the device functions that are given it: a pipeline that goes elsewhere (into a traced function, an object, a branch
that joins others) is let through. The simulator finds the same, and more, in a run.
"""

from ...seam.hooks.audits import AUDITS, Code
from .flow import Flow, Threads
from .order import of_one_side, of_order
from .sides import of_arrivals, of_clusters, of_sides
from .uses import Uses, creates, is_given


def check_pipelines(code: Code) -> None:
    """Note likely mistakes in the use of the pipelines that a function makes or is given."""
    if not any(creates(s, code) or is_given(s, code) for s in code.steps):
        return
    uses, flow = Uses(code), Flow(code)
    threads = Threads(code, flow)
    for text, line in of_clusters(code):
        code.note(text, line)
    for pipe in uses.pipes:
        if pipe.seen and pipe.obj is not None:
            found = next(of_sides(pipe), None)
            for text, line in [found] if found else [*of_arrivals(pipe, code, threads)]:
                code.note(text, line)
            for text, line in of_order(pipe, uses, code, flow, threads):
                code.note(text, line)
    for pipe in uses.given.values():
        if pipe.seen:
            for text, line in of_one_side(pipe, uses, code, flow):
                code.note(text, line)


AUDITS.append(check_pipelines)
