# SPDX-License-Identifier: Apache-2.0
"""Spaces of configurations, and the parts of them in which every combination of some choices occurs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np


class Space(NamedTuple):
    """What a plan can choose. axes: by the name of each choice, its values. holds: says of a choice of each, given by
    name, whether a plan can choose that. launches: gives, of the same, the kernels with their arguments."""

    axes: Mapping[str, Sequence[Any]]
    holds: Callable[..., bool]
    launches: Callable[..., list[tuple[Any, Any]]]

    def choice(self, place: Any) -> dict[str, Any]:
        """Give the choices of which each is the so manieth of its axis."""
        return {name: values[i] for (name, values), i in zip(self.axes.items(), place)}

    def places(self) -> Any:
        """List every configuration, by the places of its choices in their axes: (configurations, axes)."""
        every = itertools.product(*(range(len(values)) for values in self.axes.values()))
        held = [place for place in every if self.holds(**self.choice(place))]
        return np.array(held, np.int16).astype(np.int64)


def covering(space: Space, strength: int, seed: int = 0, tries: int = 64) -> list[dict[str, Any]]:
    """Choose configurations among which every combination of values of any `strength` axes occurs that occurs in the
    space: of `tries` that have one which is missing, the one that has the most such, again and again."""
    names, draw = list(space.axes), np.random.default_rng(seed)
    every = space.places()
    groups = [list(g) for g in itertools.combinations(range(len(names)), min(strength, len(names)))]
    sizes = np.array([len(values) for values in space.axes.values()])
    weights = [np.cumprod([1, *sizes[g][:-1]]) for g in groups]
    of = lambda rows: [rows[:, g].astype(np.int64) @ w for g, w in zip(groups, weights)]  # noqa: E731
    missing = []
    for g, codes in zip(groups, of(every)):
        missing.append(np.zeros(int(np.prod(sizes[g])), bool))
        missing[-1][codes] = True
    chosen: list[Any] = []
    for group, left in enumerate(missing):
        while left.any():
            with_it = np.flatnonzero(every[:, groups[group]] @ weights[group] == np.flatnonzero(left)[0])
            some = every[draw.choice(with_it, min(tries, len(with_it)), replace=False)]
            best = some[np.argmax(sum(m[codes].astype(int) for m, codes in zip(missing, of(some))))]
            for m, codes in zip(missing, of(best[None])):
                m[codes] = False
            chosen.append(best)
    return [space.choice(row) for row in chosen]
