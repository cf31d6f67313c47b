# SPDX-License-Identifier: Apache-2.0
"""Spaces of configurations, and the parts of them in which every combination of some choices occurs."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple


class Space(NamedTuple):
    """What a plan can choose. axes: by the name of each choice, its values. holds: says of a choice of each, given by
    name, whether a plan can choose that. launches: gives, of the same, the kernels with their arguments."""

    axes: Mapping[str, Sequence[Any]]
    holds: Callable[..., bool]
    launches: Callable[..., list[tuple[Any, Any]]]

    def all(self) -> Iterator[dict[str, Any]]:
        """Yield every configuration."""
        for values in itertools.product(*self.axes.values()):
            choice = dict(zip(self.axes, values))
            if self.holds(**choice):
                yield choice


def covering(space: Space, strength: int, seed: int = 0) -> list[dict[str, Any]]:
    """Choose configurations among which every combination of values of any `strength` axes occurs that occurs in the
    space: those with the most new ones come first, so that few are needed."""
    every = list(space.all())
    random.Random(seed).shuffle(every)
    groups = list(itertools.combinations(space.axes, min(strength, len(space.axes))))
    index = {name: {repr(v): i for i, v in enumerate(values)} for name, values in space.axes.items()}
    places = [{name: index[name][repr(c[name])] for name in c} for c in every]
    tuples = [[(g, *(at[name] for name in names)) for g, names in enumerate(groups)] for at in places]
    missing, chosen = {t for each in tuples for t in each}, []
    least = len(groups)
    while missing:
        for choice, each in zip(every, tuples):
            new = missing.intersection(each)
            if len(new) >= least:
                chosen.append(choice)
                missing -= new
        least = max(1, least * 3 // 4)
    return chosen
