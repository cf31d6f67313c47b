# SPDX-License-Identifier: Apache-2.0
"""Find the variables that nodes of a structured function read and write, and those that are read after each."""

from __future__ import annotations

from .form import (
    Set,
    SetAttribute,
    SetItem,
    read_by,
)  # fmt: skip
from .structure import Choose, Condition, For, Go, If, Node, Region, Repeat, While


def _reads(node: Node) -> set[str]:
    """Return what a node reads itself, not what is within it."""
    if isinstance(node, Set):
        return set(read_by(node.source))
    if isinstance(node, SetItem):
        return {node.of, node.value} | ({node.index} if node.index is not None else set())
    if isinstance(node, SetAttribute):
        return {node.of, node.value}
    return set()


def written(region: Region) -> dict[str, None]:
    """List the variables that a region writes, in the order in which it does so first."""
    found: dict[str, None] = {}
    for node in region:
        if isinstance(node, Set):
            found[node.target] = None
        elif isinstance(node, (Go, Choose)):
            found[node.selector] = None
        elif isinstance(node, If):
            found |= written(node.then) | written(node.otherwise)
        elif isinstance(node, For):
            found |= {node.index: None} | written(node.body)
        elif isinstance(node, While):
            found |= written(node.test) | written(node.body)
        elif isinstance(node, Repeat):
            found |= written(node.body)
    return found


def live_before(node: Node, after: set[str]) -> set[str]:
    """Return what is read by a node or after it before it is written, given what is read `after` it."""
    if isinstance(node, Set):
        return after - {node.target} | _reads(node)
    if isinstance(node, Go):
        return after - {node.selector}
    if isinstance(node, Choose):
        return after - {node.selector} | {node.condition.variable}
    if isinstance(node, If):
        return live_in(node.then, after) | live_in(node.otherwise, after) | {node.condition.variable}
    if isinstance(node, For):
        bounds = {v for v in (node.start, node.stop, node.step) if v is not None}
        return around(node, after) | bounds
    if isinstance(node, (While, Repeat)):
        return around(node, after)
    return after | _reads(node)


def around(loop: For | While | Repeat, after: set[str]) -> set[str]:
    """Return what is read at the start of each turn of a loop, by it or later."""
    found = set(after) if isinstance(loop, For) else set()
    while True:
        if isinstance(loop, For):
            new = live_in(loop.body, found | after) - {loop.index}
        elif isinstance(loop, While):
            new = live_in(loop.test, live_in(loop.body, found) | after | {loop.condition.variable})
        else:
            new = live_in(loop.body, found | after | asked(loop.again))
        if new <= found:
            return found
        found |= new


def asked(condition: Condition | None) -> set[str]:
    """Return the variable that a condition asks."""
    return set() if condition is None else {condition.variable}


def live_in(region: Region, after: set[str]) -> set[str]:
    """Return what is read in a region or after it before it is written."""
    for node in reversed(region):
        after = live_before(node, after)
    return after


def live_after_each(region: Region, after: set[str]) -> list[set[str]]:
    """Return what is read after each node of a region."""
    found = []
    for node in reversed(region):
        found.append(after)
        after = live_before(node, after)
    return found[::-1]
