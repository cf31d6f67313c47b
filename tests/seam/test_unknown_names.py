# SPDX-License-Identifier: Apache-2.0
"""Names that are not there: misspelt ones suggest the nearest, foreign ones name what to write instead, everywhere."""

from __future__ import annotations

import copy
import enum
import inspect
import pickle
import re
import traceback
from typing import Any

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import pipeline, utils
from numba_cute.nvgpu import warp
from numba_cute.runtime import from_dlpack
from numba_cute.seam.ground import absent, names

MODULES = {m["__name__"]: m for m in names.PUBLISHED}


def misspelt(name: str) -> str:
    """The name with two neighbouring letters, about its middle, in each other's place."""
    for at in (*range(len(name) // 2, len(name) - 1), *range(len(name) // 2)):
        if name[at] != name[at + 1] and "_" not in name[at : at + 2]:
            return name[:at] + name[at + 1] + name[at] + name[at + 2 :]
    return name + "x"


def said(owner: Any, name: str) -> str:
    """What is said of a name that an owner lacks: that error is an AttributeError, and nobody who asks is disturbed."""
    assert not hasattr(owner, name) and getattr(owner, name, 7) == 7
    with pytest.raises(AttributeError) as e:
        getattr(owner, name)
    assert isinstance(e.value, cute.CuteError), e.value
    return str(e.value)


# ---------------------------------------------------------------- misspelt


@pytest.mark.parametrize("module", MODULES)
def test_modules_suggest_the_nearest_name(module):
    owner = inspect.sys.modules[module]
    for name in MODULES[module]["__all__"][::9]:
        wrong = misspelt(name)
        if len(name) > 4 and not hasattr(owner, wrong):
            assert re.search(r"did you mean '\w+'", said(owner, wrong)), wrong


CLASSES = sorted(
    {c for m in names.PUBLISHED for c in map(m.get, m["__all__"]) if isinstance(c, (names.Named, names.NamedEnum))},
    key=lambda c: (c.__module__, c.__qualname__),
)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.__qualname__)
def test_classes_suggest_the_nearest_name(cls):
    public = list(cls.__members__) if isinstance(cls, enum.EnumMeta) else [n for n in dir(cls) if not n.startswith("_")]
    for name in public[::5]:
        wrong = misspelt(name)
        if len(name) > 3 and not hasattr(cls, wrong):
            assert "did you mean" in said(cls, wrong), wrong
    assert f"has no {'member' if isinstance(cls, enum.EnumMeta) else 'attribute'} 'zzzz'" in said(cls, "zzzz")


def _objects() -> dict[str, Any]:
    op = warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16))
    mma = cute.make_tiled_mma(op)
    tensor = from_dlpack(np.zeros((4, 4), np.float32))
    swizzled = cute.make_composed_layout(cute.make_swizzle(3, 4, 3), 0, cute.make_layout((8, 8)))
    made = (
        cute.make_layout((4, 2)), swizzled, swizzled.inner, tensor, tensor.iterator, cute.make_identity_tensor((3, 4)),
        cute.Int32(3), cute.Float32, cute.sym_int(), cute.E(0), pipeline.Agent.Thread, op, mma, mma.get_slice(0),
        cute.make_mma_atom(op), cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32),
    )  # fmt: skip
    return {f"{i}-{type(x).__name__}": x for i, x in enumerate(made)}


OBJECTS = _objects()


@pytest.mark.parametrize("name", OBJECTS)
def test_objects_suggest_the_nearest_name(name):
    owner = OBJECTS[name]
    for known in [n for n in dir(owner) if not n.startswith("_")]:
        wrong = misspelt(known)
        if len(known) > 3 and not hasattr(owner, wrong):
            assert "did you mean" in said(owner, wrong), wrong


@pytest.mark.parametrize("name", OBJECTS)
def test_every_attribute_of_an_object_may_be_asked_for(name):
    owner = OBJECTS[name]
    for known in dir(owner):
        hasattr(owner, known)  # raises nothing: what a property refuses is an AttributeError


def test_what_a_property_refuses_is_said():
    assert "has no strides: ask its outer layout" in said(OBJECTS["1-ComposedLayout"], "stride")
    assert "has no memory" in said(OBJECTS["5-Tensor"], "memspace")
    assert "no size in whole bytes" in said(cute.Float4E2M1FN, "bytes")


def test_python_adds_no_suggestion_of_its_own():
    with pytest.raises(AttributeError) as e:
        cute.make_laout  # noqa: B018
    assert "".join(traceback.format_exception(e.value)).lower().count("did you mean") == 1


def test_the_error_is_copied_and_pickled_with_its_words():
    with pytest.raises(AttributeError) as raised:
        cute.make_laout  # noqa: B018
    e = raised.value
    assert str(pickle.loads(pickle.dumps(e))) == str(copy.copy(e)) == str(e)


def test_a_name_of_another_module_is_found():
    assert "did you mean cute.arch.thread_idx?" in said(cute, "thread_idx")
    assert "did you mean cute.make_layout?" in said(cute.arch, "make_layout")


def test_imports_say_it_too():
    with pytest.raises(ImportError, match="did you mean 'thread_idx'") as e:
        from numba_cute.arch import thread_indx  # noqa: F401
    assert isinstance(e.value, cute.CuteError)
    with pytest.raises(ImportError, match="use .cute.compile"):
        from numba_cute import export  # noqa: F401


def test_settings_and_fields_of_structs():
    state = pipeline.PipelineState(2, 0, 0, 0)
    with pytest.raises(AttributeError, match="PipelineState has no field 'indx'; did you mean 'index'"):
        state.indx = 1


# ---------------------------------------------------------------- foreign


def used(dotted: str) -> str:
    """What is said of the first part of a dotted name that is not there."""
    at: Any = cute
    for part in dotted.split("."):
        if not hasattr(at, part):
            return said(at, part)
        at = getattr(at, part)
    raise AssertionError(f"{dotted} is here: take it out of seam/ground/absent.py")


OF_MODULES = {f"{m}.{n}": why for m, (why, some) in absent.ABSENT_MODULES.items() for n in some}


@pytest.mark.parametrize("name", [*absent.ABSENT, *OF_MODULES, *absent.EXAMPLES])
def test_absent_names_of_the_lists_give_their_reason(name):
    why = {**absent.ABSENT, **OF_MODULES, **absent.EXAMPLES}[name]
    if name == "torch.default_stream":
        why = "kernels take torch streams directly"
    assert why in used(name)


_OF_OBJECTS = {"Tensor": "3-Tensor", "Layout": "0-Layout", "*": "6-Scalar"}


@pytest.mark.parametrize("name", absent.FOREIGN)
def test_foreign_names_say_what_to_write_instead(name):
    owner, _, attribute = name.rpartition(".")
    message = said(OBJECTS[_OF_OBJECTS[owner]], attribute) if owner in _OF_OBJECTS else used(name)
    assert absent.FOREIGN[name] in message


def test_names_in_the_reasons_are_there():
    texts = [*absent.ABSENT.values(), *absent.EXAMPLES.values(), *absent.FOREIGN.values()]
    mentioned = {m for t in texts for m in re.findall(r"`(?:cute\.)?((?:\w+\.)*\w+)", t)}
    modules = ("arch", "runtime", "utils", "pipeline", "nvgpu", "math", "cute")
    dotted = [m for m in mentioned if m.split(".")[0] in modules and "." in m]
    plain = {m for t in texts for m in re.findall(r"`cute\.(\w+)[`(]", t)}
    assert len(dotted) > 20 and len(plain) > 15
    for name in (*dotted, *plain):
        at: Any = cute
        for part in name.split("."):
            at = getattr(at, part)


# ---------------------------------------------------------------- both engines


@cute.struct
class Counter:
    count: cute.Int32

    def step(self):
        self.count += 1


KERNELS: dict[str, tuple[Any, str]] = {}


def says(words: str) -> Any:
    """Name a kernel, of which both engines must say these words."""

    def add(body: Any) -> Any:
        KERNELS[body.__name__] = body, words
        return body

    return add


@says("numba_cute has no attribute 'make_laout'; did you mean 'make_layout'?")
def module(x):
    cute.size(cute.make_laout(4))


@says("numba_cute.arch has no attribute 'thread_indx'; did you mean 'thread_idx'?")
def arch(x):
    x[cute.arch.thread_indx()[0]] = 1


@says("has no attribute 'PipelineTmaAsnc'; did you mean 'PipelineTmaAsync'?")
def classes(x):
    pipeline.PipelineTmaAsnc.create(num_stages=2)


@says("Agent has no member 'Thraed'; did you mean 'Thread'?")
def member(x):
    pipeline.CooperativeGroup(pipeline.Agent.Thraed)


@says("Layout has no attribute 'shpae'; did you mean 'shape'?")
def layout(x):
    x[0] = cute.make_layout(4).shpae


@says("Tensor has no attribute 'flil'; did you mean 'fill'?")
def tensor(x):
    cute.make_tensor(x, cute.make_layout(4)).flil(0)


@says("TensorSSA has no attribute 'redcue'; did you mean 'reduce'?")
def vector(x):
    x[0] = cute.make_rmem_tensor(4, cute.Float32).load().redcue(0)


@says("DType has no attribute 'widht'; did you mean 'width'?")
def element(x):
    x[0] = cute.Float32.widht


@says("Counter has no attribute 'cuont'; did you mean 'count'?")
def field(x):
    x[0] = Counter(1).cuont


@says("Counter has no attribute 'setp'; did you mean 'step'?")
def method(x):
    counter = Counter(1)
    counter.setp()


@says("Counter has no field 'cuont'; did you mean 'count'?")
def setting(x):
    counter = Counter(1)
    counter.cuont = 3


@says("SmemAllocator has no attribute 'allocate_tenser'; did you mean")
def library_method(x):
    utils.SmemAllocator().allocate_tenser(cute.Float32, cute.make_layout(4))


@says("Tensor has no attribute 'numel': `cute.size(tensor)`")
def foreign(x):
    x[0] = cute.make_tensor(x, cute.make_layout(4)).numel()


@says(
    "make_layout(shape, *, stride=None) was called with other arguments: got an "
    "unexpected keyword argument 'strde'; did you mean 'stride'?"
)
def keyword(x):
    x[0] = cute.size(cute.make_layout(4, strde=1))


@says(
    "SmemAllocator.allocate_tensor(element_type, layout, byte_alignment=1, swizzle=None, name=None, "
    "partition=<SmemPartition.USER: 'user'>) was called with other arguments: got an unexpected keyword argument "
    "'bytealignment'; did you mean 'byte_alignment'?"
)
def keyword_of_a_method(x):
    utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout(4), bytealignment=4)


@says("size(a, mode=()) was called with other arguments: too many positional arguments")
def too_many(x):
    x[0] = cute.size(cute.make_layout(4), 1, 2, 3)


@says("mbarrier_init(mbar_ptr, cnt) was called with other arguments: missing a required")
def too_few(x):
    cute.arch.mbarrier_init(x)


@says("Counter(count) was called with other arguments: too many positional")
def too_many_fields(x):
    x[0] = Counter(1, 2).count


@pytest.mark.parametrize("name", KERNELS)
def test_the_simulator_and_the_compiler_say_the_same(name):
    body, words = KERNELS[name]
    kernel, x = cuda.jit(body), np.zeros(8, np.float32)
    with pytest.raises(cute.CuteError) as simulated:
        cute.simulate(kernel)[1, 1](x)
    with pytest.raises(cute.CuteError) as compiled:
        cute.compile(kernel, x)
    assert words in str(simulated.value) and words in str(compiled.value)
    assert isinstance(compiled.value, (AttributeError, TypeError))
    assert type(simulated.value) is type(compiled.value)
    source, first = inspect.getsourcelines(body)
    line = int(re.search(r"test_unknown_names.py:(\d+)", str(compiled.value))[1])
    assert first < line < first + len(source)


def test_wrong_arguments_on_the_host_say_the_signature():
    with pytest.raises(TypeError, match=r"make_layout\(shape, \*, stride=None\) was called .*did you mean 'stride'\?"):
        cute.make_layout(4, strde=1)
    with pytest.raises(cute.CuteError, match=r"size\(a, mode=\(\)\) was called with other arguments: missing"):
        cute.size()
