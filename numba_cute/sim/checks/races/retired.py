# SPDX-License-Identifier: Apache-2.0
"""Accesses of clusters that have ended, where no cluster runs and no report is to name them: lanes that run together
name nobody, as what is found among them runs again lane by lane. Then one access stands for all of a kind, so that
memory does not grow with the number of blocks. Those of clusters of which atomics still tell are kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...ground.access import Ids
from ...ground.ordering import lasts
from .shadow import Bundle, History, distinct

_CHUNK = 1 << 18  # elements of a shadow that are looked at at once
_Members = tuple[bool, frozenset[int]]
"""A set of readers: whether some of it were plain reads that are forgotten, and the numbers of the others."""


Bases = tuple[int, int, int]


class Retiring:
    """Forgets the accesses of a launch until now; used once.

    bases: the numbers of accesses, of sets and of unions from which on they are not yet forgotten. kinds: by kind, the
    number of the access that stands for all that are."""

    def __init__(self, history: History, bases: Bases, kinds: dict[Any, int]) -> None:
        self.history, self.kinds = history, kinds
        self._access, self._set, self._union = bases
        self._told = _told(history.run.left)
        self._stay: list[Any] = []
        self._new: dict[int, int] = {}  # of those
        self._numbers = np.arange(history.numbers, dtype=np.int32)  # the new ones, by old number
        self._plain = self._plain_accesses()
        self._plain_sets = self._sets_of_plain()
        self._members: dict[int, _Members] = {}

    def forget(self, shadows: list[Any]) -> Bases:
        """Let the shadows name what stays; gives the next `bases`."""
        h = self.history
        if self._plain.any():
            self._numbers[self._plain] = self._kind(int(np.flatnonzero(self._plain)[0]))
        for shadow in shadows:
            for part in self._touched(shadow.writers, self._access):
                for i in self._hard(part, self._access, self._plain):
                    self._numbers[i] = self._kept(i)
            for part in self._touched(shadow.readers, self._set):
                for s in self._hard(part, self._set, self._plain_sets):
                    self._members[s] = self._split(s)
        sets, unions = h.sets, h.unions
        h.truncate(self._access, self._set, self._union)
        for access in self._stay:
            h.add(access)
        new_sets, new_unions = np.arange(sets, dtype=np.int32), -np.arange(unions, dtype=np.int32)
        new_sets[self._plain_sets] = 0
        forgotten, of_unions = self._plain_sets.copy(), np.zeros(unions, bool)
        for s, (plain, others) in self._members.items():
            at, numbers, flags = (s, new_sets, forgotten) if s >= 0 else (-s, new_unions, of_unions)
            numbers[at], flags[at] = h.set_of(others), plain
        for shadow in shadows:
            for part in self._touched(shadow.writers, self._access):
                part[:] = self._numbers[part]
            self._apply(shadow, (new_sets, new_unions), (forgotten, of_unions))
        return h.numbers, h.sets, h.unions

    def _apply(self, shadow: Any, numbers: tuple[Ids, Ids], forgotten: tuple[Any, Any]) -> None:
        for at in range(0, len(shadow.readers), _CHUNK):
            part = shadow.readers[at : at + _CHUNK]
            if not self._has_new(part, self._set):
                continue
            if part.min() >= 0:  # as mostly: no unions
                before, now = forgotten[0].take(part), numbers[0].take(part)
            else:
                low = np.maximum(part, 0), np.maximum(-part, 0)
                before = np.where(part >= 0, *(f[i] for f, i in zip(forgotten, low)))
                now = np.where(part >= 0, *(n[i] for n, i in zip(numbers, low)))
            part[:] = now
            if before.any():
                if shadow.before is None:
                    shadow.before = np.zeros(len(shadow.readers), bool)
                shadow.before[at : at + _CHUNK] |= before

    def _touched(self, ids: Ids, base: int) -> Iterator[Ids]:
        """The parts of a shadow that name what is not yet forgotten."""
        for at in range(0, len(ids), _CHUNK):
            part = ids[at : at + _CHUNK]
            if self._has_new(part, base):
                yield part

    def _has_new(self, part: Ids, base: int) -> bool:
        return bool(part.max() >= base) or bool(part.min() <= -self._union)

    def _hard(self, part: Ids, base: int, plain: Any) -> set[int]:
        """The numbers in a part at which each is to be looked."""
        new = part[(part >= base) | (part <= -self._union)]
        return distinct(hard) if (hard := new[(new < 0) | ~plain[new]]).size else set()

    def _plain_accesses(self) -> Any:
        """By number, whether an access is a plain one that is to be forgotten."""
        found, accesses, i = np.zeros(self.history.numbers, bool), self.history.accesses, self._access
        while i < len(found):
            entry, end = accesses[i], i + 1
            if type(entry) is Bundle and accesses[i : i + len(entry.column)].count(entry) == len(entry.column):
                end = i + len(entry.column)
            found[i:end] = self._is_plain(entry)
            i = end
        return found

    def _is_plain(self, entry: Any) -> bool:
        if type(entry) is Bundle:
            return entry.machine.cta.cluster not in self._told
        return entry.cluster not in self._told and not (entry.atomic or entry.wrote or entry.constant)

    def _sets_of_plain(self) -> Any:
        """By number, whether a set has one access, which is such a one."""
        sets = self.history.single_accesses(self._set)
        try:
            alone = np.array(sets, np.int64)
        except TypeError:  # others are among them
            alone = np.array([s if type(s) is int else 0 for s in sets], np.int64)
        return np.concatenate([np.zeros(self._set, bool), self._plain[alone]])

    def _kept(self, number: int) -> int:
        """The new number of an access that is not plain."""
        if number < self._access:
            return number
        if self._plain[number]:
            return int(self._numbers[number])
        a = self.history.access(number)
        return self._again(number) if a.cluster in self._told else self._kind(number)

    def _kind(self, number: int) -> int:
        """The number of the access that stands for all of its kind."""
        a = self.history.access(number)
        kind = a.atomic, a.wrote, a.constant, a.group
        if kind not in self.kinds:
            self.kinds[kind] = self._again(number)
        return self.kinds[kind]

    def _again(self, number: int) -> int:
        if number not in self._new:
            self._new[number] = self._access + len(self._stay)
            self._stay.append(self.history.access(number))
        return self._new[number]

    def _split(self, s: int) -> _Members:
        members = list(self.history.members(s))
        plain = [i for i in members if self._plain[i]]
        return bool(plain), frozenset(self._kept(i) for i in members if not self._plain[i])


def _told(left: dict[Any, Any]) -> set[Any]:
    """The clusters of which releases tell those that start later; what they left to their own threads is dropped."""
    found: set[Any] = set()
    for key in list(left):
        there = left[key]
        there.by = {at: clock for at, clock in there.by.items() if lasts(at)}
        there.own, there.silent = {}, {}
        there.history.clear()
        for clock in there.by.values():
            found |= {clock.cluster, *clock.others}
        if not there.by:
            del left[key]
    return found
