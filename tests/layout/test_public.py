# SPDX-License-Identifier: Apache-2.0
"""What holds for every public name of the package."""

from __future__ import annotations

import dataclasses
import inspect

import pytest

from numba_cute import layout as cl
from numba_cute.seam import CuteError, is_frozen_class, is_traced

from ..each import each

PUBLIC = {name: getattr(cl, name) for name in cl.__all__}
FUNCTIONS = {name: f for name, f in PUBLIC.items() if inspect.isfunction(f)}
CLASSES = {name: c for name, c in PUBLIC.items() if inspect.isclass(c) and name != "IntTuple"}


@each("name", FUNCTIONS)
def test_functions_are_traced_explicit_and_documented(name):
    f = FUNCTIONS[name]
    assert is_traced(f) and f.__doc__
    kinds = {p.kind for p in inspect.signature(f).parameters.values()}
    assert inspect.Parameter.VAR_KEYWORD not in kinds


@each("name", CLASSES)
def test_classes_are_static_immutable_and_documented(name):
    c = CLASSES[name]
    assert is_frozen_class(c) and c.__doc__ and c.__hash__
    assert c.__dataclass_params__.frozen
    methods = [m for n, m in vars(c).items() if inspect.isfunction(m) and n not in KEPT_PLAIN]
    assert all(is_traced(m) for m in methods), [m.__name__ for m in methods if not is_traced(m)]


KEPT_PLAIN = {
    "_repr_svg_",
    "_repr_html_",
    "__init__",
    "__post_init__",
    "__getattr__",
    "__repr__",
    "__eq__",
    "__hash__",
    "__setattr__",
    "__delattr__",
    "__replace__",
    "__getstate__",
    "__reduce__",
}


def test_layouts_are_values():
    a, b = cl.make_layout((4, 8)), cl.make_layout((4, 8), stride=(1, 4))
    assert a == b and hash(a) == hash(b) and a != cl.make_layout((8, 4))
    with pytest.raises(dataclasses.FrozenInstanceError):
        a.shape = (1, 2)


def test_equal_numbers_of_other_types_are_told_apart():
    assert cl.make_layout((1, 3)).shape == (1, 3)
    assert repr(cl.make_layout((True, 3))) == "(1,3):(0,1)"
    with pytest.raises(CuteError):
        cl.make_layout((1.0, 3))
    with pytest.raises(CuteError):
        cl.make_layout(4.0)
