# SPDX-License-Identifier: Apache-2.0
"""The object of a kernel that sets its fields (`source.own_fields` makes them variables)."""

from __future__ import annotations

import copy
import inspect
from typing import Any

from ..ground.error import CuteError
from ..marks.decorators import frozen, is_frozen_class, traced
from ..marks.host_objects import Snapshot, kernels_object
from .language import NOT_SET


@frozen
class NotSet:
    """The value of a variable for a field that the object does not have at the launch."""

    name: str

    def __getattr__(self, name: str) -> Any:
        raise CuteError(NOT_SET)


@traced
def check_fields(this: Any, names: str, read: str) -> None:
    """Refuse a kernel's object whose fields cannot be variables. names: those that the kernel sets. read: what it reads
    and does not call; both with commas between them."""
    cls = type(this).cute_of if isinstance(this, Snapshot) else type(this)
    if is_frozen_class(type(this)) and not isinstance(this, Snapshot):
        raise CuteError(f"{cls.__name__}.{names.split(',')[0]} cannot be assigned: a {cls.__name__} is immutable")
    for name in names.split(","):
        own: Any = cls.__setattr__
        if own is not object.__setattr__ or isinstance(inspect.getattr_static(cls, name, None), property):
            raise CuteError(
                f"{cls.__name__}.{name} is set in a kernel, by a property or a `__setattr__` of its own: use a variable"
            )
    for name in filter(None, read.split(",")):
        if name not in vars(this) and inspect.isroutine(inspect.getattr_static(cls, name, None)):
            raise CuteError(
                f"{cls.__name__}.{name} is a method that is kept, in a kernel that sets {names}: it would have the "
                "object as it was then; call it where it is needed"
            )


@traced
def at_launch(this: Any, name: str) -> Any:
    """Return what a field is when the kernel begins."""
    cls = type(this).cute_of if isinstance(this, Snapshot) else type(this)
    known = name in vars(this) or inspect.getattr_static(cls, name, NotSet) is not NotSet
    return getattr(this, name) if known else NotSet(name)


@traced
def with_fields(this: Any, names: str, *values: Any) -> Any:
    """Return a kernel's object with other values in some fields, whose names have commas between them."""
    new = {n: v for n, v in zip(names.split(","), values) if not isinstance(v, NotSet)}
    if isinstance(this, Snapshot):
        return kernels_object(type(this), vars(this) | new)
    made = copy.copy(this)
    for name, value in new.items():
        setattr(made, name, value)
    return made
