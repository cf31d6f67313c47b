# SPDX-License-Identifier: Apache-2.0
"""Dataclasses of this library are as Python's own; what an import makes is not looked at by the collector."""

import copy
import dataclasses
import gc
import inspect
import pickle
from dataclasses import field
from types import SimpleNamespace
from typing import ClassVar

import pytest

from numba_cute.seam.ground import collecting
from numba_cute.seam.ground.collecting import staying
from numba_cute.seam.ground.records import dataclass

NAN = float("nan")


def family(make, module):
    """The same classes, by one decorator or the other."""

    @make(frozen=True)
    class Base:
        __module__ = module
        a: int
        b: object = 3
        kind: ClassVar[int] = 7

    @make(frozen=True)
    class Derived(Base):
        __module__ = module
        b: object = 4
        c: list = field(default_factory=list, compare=False)
        d: int = field(default=1, kw_only=True, repr=False)
        e: int = field(default=5, init=False, hash=False)

        def __post_init__(self):
            object.__setattr__(self, "seen", (self.a, self.d))

    @make
    class Open:
        __module__ = module
        x: int
        more: dict = field(default_factory=dict)

    @make(eq=False)
    class ByIdentity:
        __module__ = module
        x: int = 0

    @make(frozen=True)
    class Own:
        __module__ = module
        x: int

        def __eq__(self, other):
            return True

        def __hash__(self):
            return 5

        def __repr__(self):
            return "own"

    @make(frozen=True)
    class Nothing:
        __module__ = module

    return Base, Derived, Open, ByIdentity, Own, Nothing


OURS, PYTHONS = family(dataclass, "numba_cute.seam"), family(dataclasses.dataclass, __name__)


def tried(fn):
    try:
        return fn()
    except Exception as e:
        return type(e), str(e)


def facts(classes):
    """What is known of the classes, in plain data."""
    base, derived, plain, by_identity, own, nothing = classes
    one, two = derived(1, c=[2]), derived(1, c=[])
    mutable = plain(1)
    mutable.x = 4

    def sets(name):
        return lambda: setattr(one, name, 1)

    less = type("Less", (derived,), {})
    return (
        [str(inspect.signature(c)) for c in classes],
        [[(f.name, f.compare, f.init, f.repr, f.kw_only) for f in dataclasses.fields(c)] for c in classes],
        [[getattr(c.__dataclass_params__, n) for n in ("init", "repr", "eq", "frozen")] for c in classes],
        [c.__match_args__ for c in classes],
        [repr(x).rpartition(".")[2] for x in (one, two, mutable, own(1), nothing(), base(one))],
        (one == two, one == derived(2), one == base(1), base(1) == base(1), one != two),
        (hash(one) == hash(two), hash(one) == hash(derived(2)), hash(own(1)), hash(base(1)) == hash((1, 3))),
        (plain.__hash__, mutable == plain(4), by_identity() == by_identity(), own(1) == own(2), nothing() == nothing()),
        (one.seen, two.c is not derived(1).c, derived.kind, derived.d, hasattr(derived, "c"), derived.e),
        [tried(sets(n)) for n in ("a", "e", "other")] + [tried(lambda: delattr(one, "a"))],
        [tried(fn) for fn in (lambda: setattr(less(1), "free", 1), lambda: setattr(less(1), "a", 1))],
        [tried(lambda: derived())[0], tried(lambda: derived(1, 2, 3, 4))[0], tried(lambda: base(1, z=2))[0]],
        dataclasses.asdict(one), dataclasses.replace(one, a=5).a, copy.copy(one) == one, less(1) == less(1),
        less(1) == derived(1),
    )  # fmt: skip


def test_they_are_as_pythons_own():
    assert facts(OURS) == facts(PYTHONS)


def test_fields_are_compared_as_tuples_are():
    """As Python's until 3.12 are: what is the same object is equal, a NaN too."""
    assert OURS[0](NAN) == OURS[0](NAN) and OURS[0](NAN) != OURS[0](float("nan"))


def test_one_refers_to_itself():
    made = OURS[2](1)
    made.more["self"] = made
    assert "..." in repr(made)


def test_users_classes_may_derive_and_pickle():
    import numba_cute as cute

    layout = cute.make_layout((4, 8))
    assert pickle.loads(pickle.dumps(layout)) == layout

    @dataclasses.dataclass(frozen=True)
    class Mine(OURS[0]):
        z: int = 9

    assert (Mine(1).b, Mine(1, z=2).z, Mine(1) == Mine(1)) == (3, 2, True)


@pytest.mark.parametrize("on", [True, False])
def test_what_stays_is_old_at_once(on):
    before, looked = gc.isenabled(), []

    def note(phase, info):
        looked.append(info["generation"])

    (gc.enable if on else gc.disable)()
    gc.callbacks.append(note)
    try:
        with staying:
            made = [[i] for i in range(5000)]
        assert looked == [] and len(made) == 5000
    finally:
        gc.callbacks.remove(note)
        (gc.enable if before else gc.disable)()


def test_what_the_user_froze_is_counted_once(monkeypatch):
    """To count them Python goes through all: .2 s of a million, and each launch would ask."""
    counts = [0, 7]
    monkeypatch.setattr(collecting, "gc", SimpleNamespace(get_freeze_count=lambda: counts.pop(0)))
    frozen = collecting._Frozen()
    assert [frozen(), frozen(), frozen()] == [False, True, True] and counts == []
