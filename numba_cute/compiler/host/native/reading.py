# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: F821
# mypy: ignore-errors
"""Check that what a function of the host reads besides its arguments is unchanged, as functions of words (language.py):
never run as Python."""

from __future__ import annotations

from ...bridge.reads import ITEM, ITEMS
from .calls import refused, released

# A function's first words: the places where the names in its code lead, and how many; a Python function that says
# whether all that it reads is as it was, or 0.
PLACES, PLACE_COUNT, HOLDS, READING_SIZE = range(0, 32, 8)
# The words of a place: its kind (bridge/reads.py); whose; the name, or how many items; what is there, 0 for nothing, or
# where keys and values lie by turns.
PLACE_KIND, HOLDER, PLACE_NAME, THERE, PLACE_SIZE = range(0, 40, 8)


def has_items(holder, count, items):
    """Say whether a dictionary has these keys and values, in this order, and no others."""
    if PyDict_Size(holder) != count:
        return 0
    at = scratch(24)
    store64(at, 0)
    while count:
        if PyDict_Next(holder, at, at + 8, at + 16) == 0:
            return 0
        if load64(at + 8) != load64(items) or load64(at + 16) != load64(items + 8):
            return 0
        items += 16
        count -= 1
    return 1


def leads_there(place):
    kind = load64(place + PLACE_KIND)
    holder = load64(place + HOLDER)
    if kind == ITEM:
        return PyDict_GetItem(holder, load64(place + PLACE_NAME)) == load64(place + THERE)
    if kind == ITEMS:
        return has_items(holder, load64(place + PLACE_NAME), load64(place + THERE))
    found = PyObject_GetAttr(holder, load64(place + PLACE_NAME))
    if found == 0:
        PyErr_Clear()
        return load64(place + THERE) == 0
    return released(found, found == load64(place + THERE))


def all_lead_there(own):
    place = load64(own + PLACES)
    left = load64(own + PLACE_COUNT)
    while left:
        if leads_there(place) == 0:
            return 0
        place += PLACE_SIZE
        left -= 1
    return 1


def reads_the_same(own):
    """Say whether all that a function reads besides its arguments is unchanged since its templates were made."""
    holds = load64(own + HOLDS)
    if holds == 0:
        return all_lead_there(own)
    found = PyObject_CallNoArgs(holds)
    if found == 0:
        return refused()
    return released(found, found == TRUE)
