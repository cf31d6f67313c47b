# SPDX-License-Identifier: Apache-2.0
"""What launches keep: what is proved immutable, for this process, until it is forgotten; and who finds faults in it."""

from __future__ import annotations

import collections
import contextlib
import copy
import gc
import pickle
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numba import cuda
from numba.cuda import types
from numba.cuda.cudadrv import devices

import numba_cute as cute
from numba_cute import arch, config
from numba_cute.compiler.bridge.exact import Changes, exact
from numba_cute.compiler.host import configured, launching, mapped
from numba_cute.compiler.host.native import plans, sites, words
from numba_cute.runtime import from_dlpack, remembered
from numba_cute.seam import frozen
from tests.compiler.casts import Array, Host
from tests.compiler.noting import launches, packed, planned

from .cases import Data, Frozen, Holds, HoldsMore, Pair, Plain, _closing, _gives, tensor
from .gpu import CONTEXT, a_gpu
from .of_arrays import array
from .slow import casts

__all__ = ["launches"]
pytestmark = pytest.mark.filterwarnings("ignore::numba.cuda.core.errors.NumbaPerformanceWarning")
ROOT = Path(__file__).resolve().parents[2]


def takes_one(a):
    arch.thread_idx()


@pytest.mark.parametrize("value", [cute.Int32(3), cute.fast_divmod_create_divisor(cute.Int32(3))], ids=type)
@pytest.mark.parametrize("tuple_of", [lambda *x: x, Pair])
def test_tuples_are_launched_in_machine_code(value, tuple_of):
    with a_gpu(), casts():
        site = cute.kernel(takes_one)[1, 32]
        for _ in range(6):
            site(tuple_of(value, 1))
        assert sum(p.launched for p in site._site.plans) >= 3


DIFFERENT = [
    0, False, 0.0, -0.0, 1, True, 1.0, 0j, complex(0.0, -0.0), complex(-0.0, 0.0), "1", b"1", None, (0,), (False,),
    (0.0,),
    np.int32(0), np.int64(0), np.float32(0), np.float32(-0.0), cute.Int32(0), cute.Int64(0), cute.Int32(0).assumed(4),
    cute.Float32(0), cute.Float32(-0.0), range(0, 3, 2), range(0, 4, 2), *cute.dtypes.ALL, len, int,
    cute.make_layout(0), cute.make_layout((0,)),
]  # fmt: skip
CHANGE = [
    [], {}, set(), Plain(1), Data(1), Frozen(1), Holds(1), HoldsMore(1), lambda: 0, _closing(1), _gives, Plain,
    np.zeros(2), (1, []), slice([], 1), np.dtype([("a", "i4")]),
]  # fmt: skip


def test_immutable_objects_are_told_apart_by_type_and_bits():
    keys = [exact(x) for x in DIFFERENT]
    assert len(set(keys)) == len(keys)
    assert keys == [exact(copy.copy(x)) for x in DIFFERENT]


@pytest.mark.parametrize("x", CHANGE, ids=lambda x: type(x).__name__)
def test_what_may_change_has_no_key(x):
    with pytest.raises(Changes):
        exact(x)


def test_numbers_of_this_library_do_not_change():
    for name, value in (("value", 3), ("dtype", cute.Float32), ("divisor", 2)):
        n = cute.Int32(2)
        with pytest.raises(cute.CuteError, match=f"{name} cannot be assigned: a Scalar is immutable"):
            setattr(n, name, value)
        assert copy.deepcopy(n) is n and pickle.loads(pickle.dumps(n)) == n


def test_nothing_that_is_remembered_goes_with_a_copy_or_a_pickle():
    with a_gpu(), casts():
        t = from_dlpack(array())
        lay = cute.make_layout((4, cute.Int32(8)))
        kernel = cute.kernel(takes_one)[1, 32]
        for x in (t, lay):
            for _ in range(4):
                kernel(x)
            assert "_cute_launch" in vars(x)
            travelled = [copy.copy(x)] + ([] if x is t else [copy.deepcopy(x), pickle.loads(pickle.dumps(x))])
            for made in travelled:
                assert made == x and not any(n.startswith(("_cute", "__cute")) for n in vars(made))


CHILD = """
import pickle, struct, sys
import numba_cute as cute
from tests.launches.gpu import a_gpu
from tests.launches.test_what_is_kept import takes_one
held = pickle.loads(bytes.fromhex(sys.argv[1]))
with a_gpu() as gpu:
    kernel = cute.kernel(takes_one)[1, 32]
    others = [cute.make_layout((n, cute.Int32(5))) for n in range(3, 40)]
    for x in [*others, held] * 3:
        kernel(x)
        first = gpu.seen[-1]
    for x in (held, cute.make_layout((4, cute.Int32(8)))):
        kernel(x)
    assert gpu.seen[-1] == gpu.seen[-2] == first, gpu.seen[-3:]
"""


def test_an_object_that_was_launched_is_launched_right_by_another_process():
    with a_gpu():
        lay = cute.make_layout((4, cute.Int32(8)))
        kernel = cute.kernel(takes_one)[1, 32]
        for _ in range(4):
            kernel(lay)
        assert "_cute_launch" in vars(lay)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CHILD, pickle.dumps(lay).hex()], cwd=ROOT, capture_output=True, text=True
    )
    assert not done.returncode, done.stderr


def test_a_deep_copy_of_a_tensor_lies_in_a_copy_of_its_array():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    t = from_dlpack(x)
    made, part = copy.deepcopy((t, cute.local_tile(t, (1, 4), (2, 0))))
    own = made.iterator.address.owner
    assert own is not x and np.array_equal(own, x) and made.iterator.address.value == own.ctypes.data
    assert part.iterator.address.owner is own and part.iterator.address.value == own[2].ctypes.data
    assert made.iterator.address.memory == (own.ctypes.data, own.ctypes.data + 48)
    with pytest.raises(cute.CuteError, match="copy.deepcopy of a tensor of numpy.*has strides"):
        copy.deepcopy(from_dlpack(x[:, ::2]))
    with pytest.raises(cute.CuteError, match="cannot be pickled: its address is this process's own"):
        pickle.dumps(t)


class Says(Array):
    """An array as torch has it, that says something of itself."""

    negative = False

    def is_neg(self):
        return self.negative


class Nested(Host):
    is_nested = True


class Conjugate(Host):
    def is_conj(self):
        return True


class Masked:
    __cuda_array_interface__ = {  # noqa: RUF012
        "data": (0x1000, False), "shape": (4,), "typestr": "<f4", "mask": Host(0x2000), "strides": None, "version": 3,
    }  # fmt: skip


def saying(**said):
    made = Says(0x10000)
    vars(made).update(said)
    return made


REFUSED = {
    "negative": (lambda: saying(negative=True), "its negative bit is set.*resolve_neg"),
    "conjugate": (lambda: Conjugate(0x10000), "its conjugate bit is set.*resolve_conj"),
    "nested": (lambda: Nested(0x10000), "it is nested"),
    "fake": (lambda: Array(0), "it has no memory of its own, as fake, meta"),
    "masked": (lambda: np.ma.masked_array(np.arange(4.0), mask=[0, 1, 0, 0]), "its mask would be left out.*filled"),
    "masked_on_a_gpu": (Masked, "its mask would be left out"),
    "other_order_of_bytes": (lambda: np.arange(4, dtype=">f4"), "has its bytes in another order"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_arrays_that_are_not_what_lies_in_their_memory_are_refused(name):
    make, why = REFUSED[name]
    with casts():
        for _ in range(2):
            from_dlpack(saying())
        for _ in range(2):  # where a template of such arrays is, too
            with pytest.raises(cute.CuteError, match=why):
                from_dlpack(make())
    assert from_dlpack(np.zeros((0, 3), np.float32)).shape == (0, 3)


def test_what_is_forgotten_leaves_room(launches):
    site = planned(launches, (3,))
    kernel = site.plans[0].setting.kernel
    for n in range(sites.MOST_PLANS):
        setting = plans.Setting(kernel, 1, (1, 1, 1), (1, 1, 1), 0, n + 10)
        site.add(plans.plan(setting, (3,), (3,), {}))
    assert len(site.plans) == sites.MOST_PLANS
    site.forget()
    assert not site.plans
    site.add(plans.plan(plans.Setting(kernel, 1, (1, 1, 1), (1, 1, 1), 0, 5), (3,), (3,), {}))
    packed(launches, site, 4)


def test_recompiling_forgets_the_tensor_maps_the_annotations_and_bounded_kernels(monkeypatch):
    def k(a, n: cute.Int32):
        arch.thread_idx()

    with a_gpu() as gpu:
        kernel = cute.kernel(k)
        mapped._found[k] = {"types": (forms := {})}
        mapped._names[id(forms)] = (forms, {})
        for _ in range(4):
            kernel[1, 32](tensor(0x1000), 3)
            kernel(tensor(0x1000), 3).launch(grid=1, block=32)
        k.__annotations__["n"] = cute.Int64
        kernel.dispatcher.recompile()
        assert k not in mapped._found and id(forms) not in mapped._names
        for _ in range(4):
            kernel[1, 32](tensor(0x1000), 3)
            assert len(gpu.seen[-1][-1][1]) == 8
            kernel(tensor(0x1000), 3).launch(grid=1, block=32)
            assert len(gpu.seen[-1][-1][1]) == 8


@pytest.mark.parametrize("name, value, place", [
    ("griddim", (5, 1, 1), 0), ("blockdim", (64, 1, 1), 1), ("sharedmem", 512, 2),
    ("stream", SimpleNamespace(handle=77), 3),
])  # fmt: skip
def test_a_configuration_that_is_set_otherwise_launches_so(name, value, place):
    with a_gpu() as gpu:
        configured = cuda.jit(takes_one)[1, 32]
        for _ in range(4):
            configured(3)
        assert sum(p.launched for p in configured._cute_site.plans) == 2
        setattr(configured, name, value)
        for _ in range(4):
            configured(3)
            assert gpu.seen[-1][1][place] == getattr(value, "handle", value)
        assert sum(p.launched for p in configured._cute_site.plans) >= 2, "in machine code again"


@pytest.mark.parametrize("way", ["numba", "cute", "bound"])
def test_integers_beyond_63_bits_are_launched_as_what_they_are(way):
    with a_gpu() as gpu:
        made = cute.kernel(takes_one) if way == "cute" else cute.kernel(takes_one).dispatcher
        site = cute.launch(made, grid=1, block=32) if way == "bound" else made[1, 32]
        for n in (5, 1 << 63, 6, (1 << 63) + 1, 7, 5, 1 << 63, (1 << 64) - 1, -1) * 2:
            site(n)
            of = gpu._of[gpu.seen[-1][0]]
            assert str(of[0]) == ("uint64" if n >= 1 << 63 else "int64")
            assert gpu.seen[-1][-1] == [(n % (1 << 64)).to_bytes(8, "little")]
        for n in (1 << 64, -(1 << 63) - 1):
            with pytest.raises((ValueError, OverflowError)):
                site(n)


def test_a_launch_beside_the_making_of_machine_code_is_made(monkeypatch):
    with a_gpu() as gpu:
        site = cuda.jit(takes_one)[1, 32]

        def beside(*args):
            """Launch as another thread would, at its turn."""
            monkeypatch.setattr(configured, "Site", sites.Site)
            site(7)
            return sites.Site(*args)

        monkeypatch.setattr(configured, "Site", beside)
        for n in range(5):
            site(n)
        assert [int.from_bytes(values[0], "little") for _, _, values in gpu.seen] == [0, 1, 7, 2, 3, 4]
        assert configured.Site is sites.Site and sum(p.launched for p in site._cute_site.plans) >= 2


def test_each_launch_is_made_on_the_gpu_of_its_arrays():
    current, on = [0], []

    def context(*_):
        return SimpleNamespace(handle=CONTEXT, device=SimpleNamespace(id=current[-1]))

    @contextlib.contextmanager
    def other(ordinal):
        current.append(ordinal)
        yield
        current.pop()

    real = configured.launched
    with a_gpu() as gpu, pytest.MonkeyPatch.context() as patched:  # undone before the GPU goes, which has its own
        patched.setattr(devices, "get_context", context)
        patched.setattr(launching, "current_device", other)
        patched.setattr(configured, "launched", lambda *args: on.append(current[-1]) or real(*args))
        x = Array(0x10000, device=(2, 1))
        cuda.jit(takes_one)[1, 32](from_dlpack(x))
        assert on == [1] and current == [0] and len(gpu.seen) == 1


Two = collections.namedtuple("Two", "x y")


@pytest.mark.parametrize("ns", [(1 << 63, -5, 5, 1 << 63), (-5, 1 << 63, 5)], ids=["beyond first", "within first"])
@pytest.mark.parametrize("name", ["tuple", "nested", "named"])
@pytest.mark.parametrize("way", ["numba", "cute", "bound"])
def test_integers_in_tuples_are_launched_as_what_they_are(way, name, ns):
    """Numba has one type for all tuples of a process that are like the first such one, whatever ints are in them."""
    more = (0,) * (2 + 2 * ["numba", "cute", "bound"].index(way) + len(ns) % 2)  # a tuple that no other test has
    held = {"tuple": lambda n: (n, *more), "nested": lambda n: ((n, *more), 1), "named": lambda n: Two(n, more)}[name]
    with a_gpu() as gpu:
        made = cute.kernel(takes_one) if way == "cute" else cute.kernel(takes_one).dispatcher
        site = cute.launch(made, grid=1, block=32) if way == "bound" else made[1, 32]
        for n in ns * 4:
            site(held(n))
            (of,) = gpu._of[gpu.seen[-1][0]]
            found = of[0][0] if name == "nested" else of[0]
            assert str(found) == ("uint64" if n >= 1 << 63 else "int64")
            assert gpu.seen[-1][-1][0] == (n % (1 << 64)).to_bytes(8, "little")


def test_a_kernel_with_a_signature_takes_the_integers_that_it_names():
    named = SimpleNamespace(argument_types=(types.Tuple((types.uint64, types.int64)),))
    assert launching.fitting(SimpleNamespace(_can_compile=False), named, ((5, 2),)) is named


def test_a_check_finds_a_plan_that_launches_something_else():
    def k(a, b):
        arch.thread_idx()

    with a_gpu() as gpu, config.override(check_launches=True):
        kernel = cute.kernel(k)[1, 32]
        for n in range(4):
            kernel(n, 2.5)
        assert sum(p.launched for p in kernel._site.plans) == 2
        (plan,) = kernel._site.plans
        plan._steps[words.A // 8] = 2  # of the first number two bytes are written
        with pytest.raises(cute.InternalError, match=r"parameter 0 is .*, not .*: this is a fault of numba-cute"):
            kernel(0x12345678, 2.5)
        assert gpu.seen[-1][-1][0] == (0x12345678).to_bytes(8, "little"), "what is right was launched"


def test_a_check_finds_a_function_that_is_remembered_and_gives_something_else():
    held = [3]

    @frozen
    class Of:
        n: int

    with a_gpu(), config.override(check_launches=True), casts():

        @remembered
        def function(x):
            return from_dlpack(x), Of(3)

        for _ in range(3):
            assert function(array())[1] == Of(3)
        own = function.templates
        own._function = lambda x: (from_dlpack(x), Of(held[0]))
        function(array())
        held[0] = 4
        with pytest.raises(cute.InternalError, match=r"what it gives\.1\.n is 3, not 4"):
            function(array())
        gc.collect()
