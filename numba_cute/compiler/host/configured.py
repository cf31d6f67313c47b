# SPDX-License-Identifier: Apache-2.0
"""`kernel[grid, block, stream, smem]` of Numba: once it has launched a kernel of this library, it launches in machine
code. Any other stays as Numba made it.

Whose a kernel is may be known only when it is called with its arguments. So Numba's configurations are noted as they
are made, by what only one of them has, and found again by what Numba hands to the kernel: nothing is asked of launches
of plain kernels.
"""

from __future__ import annotations

import weakref
from types import MethodType
from typing import Any

from ..ground.numba_cuda import _LaunchConfiguration
from .launching import compiled, fitting, launched, named_stream, on_device_of, on_grid, wanted
from .native import oracle
from .native.plans import Setting, plan
from .native.sites import Site, relate, relatives

_NOTED: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
"""By the identity of its `griddim`, a tuple that is made for it alone: a configuration."""


def noted(configuration: Any, stream: Any) -> None:
    """Note a configuration that Numba made. stream: as the user gave it."""
    if named_stream(stream):  # an attribute less, and nothing that asks for its __dict__, which makes reading it slower
        configuration._cute_named = True
    _NOTED[id(configuration.griddim)] = configuration
    known = relatives(configuration.dispatcher, _key(configuration))
    if known:
        _adopt(configuration)
        for one in on_grid(known, configuration.griddim):
            configuration._cute_site.add(one)


def _key(configuration: Any) -> Any:
    """Return the settings of a launch besides its kernel and its grid."""
    named = getattr(configuration, "_cute_named", False)
    stream = int(configuration.stream.handle) if named else None
    return tuple(configuration.blockdim), configuration.sharedmem, stream


_SET = ("griddim", "blockdim", "stream", "sharedmem", "dispatcher")
"""The attributes of a configuration that plans hold."""


class Configured(_LaunchConfiguration):
    """A configuration of Numba's that launched a kernel of this library."""

    def __call__(self, *args: Any) -> None:
        if self.pre_launch_callbacks:
            self._slowly(*args)
        else:
            self._cute_site.call(*args)

    def _slowly(self, *args: Any) -> None:
        with on_device_of(args):
            super().__call__(*args)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in _SET:
            self._cute_site.forget()
            self.__dict__["_cute_named"] = getattr(self, "_cute_named", False) or name == "stream"
            _NOTED[id(self.griddim)] = self

    def _again(self, *args: Any) -> oracle.Wanted | None:
        """Say what a launch with these arguments is to be."""
        with on_device_of(args):
            named = getattr(self, "_cute_named", False)
            stream = int(self.stream.handle) if named else None
            return wanted(
                compiled(self.dispatcher, args, self),
                args,
                Setting(None, 0, self.griddim, self.blockdim, self.sharedmem, stream),
            )

    def __getstate__(self) -> Any:
        state = super().__getstate__()
        state.pop("_cute_site")
        return state

    def __reduce__(self) -> Any:
        return _again, (self.__getstate__(),)


def _again(state: Any) -> Any:
    made = object.__new__(_LaunchConfiguration)
    made.__setstate__(state)
    return made


def _adopt(found: Any) -> None:
    """Make a configuration launch in machine code."""
    slow, again = MethodType(Configured._slowly, found), MethodType(Configured._again, found)
    found._cute_site = Site(slow, found.dispatcher, again)
    found.__class__ = Configured  # last: another thread may launch by the configuration at any time


def launch_of_numba(kernel: Any, args: Any, griddim: Any, blockdim: Any, stream: Any, sharedmem: int) -> None:
    """Launch a kernel of this library as Numba asks it to, and make a plan of it for the configuration."""
    with on_device_of(args):
        _launched(kernel, args, griddim, blockdim, stream, sharedmem)


def _launched(kernel: Any, args: Any, griddim: Any, blockdim: Any, stream: Any, sharedmem: int) -> None:
    found = _NOTED.get(id(griddim))
    if found is None or found.griddim is not griddim or found.stream is not stream:
        launched(kernel, args, Setting(None, 0, griddim, blockdim, sharedmem, int(getattr(stream, "handle", stream))))
        return
    named = getattr(found, "_cute_named", False)
    kernel = fitting(found.dispatcher, kernel, args)
    setting = Setting(None, 0, griddim, blockdim, sharedmem, int(stream.handle) if named else None)
    setting = launched(kernel, args, setting)
    dispatcher = found.dispatcher
    if (
        setting.kernel is None
        or dispatcher._launch_config_sensitive
        or hasattr(dispatcher.py_func, "__cute_arguments__")
    ):
        return
    if type(found) is _LaunchConfiguration:
        if not getattr(found, "_cute_launched", False):  # machine code is made for what is launched again
            found._cute_launched = True
            return
        _adopt(found)
    made = plan(setting, args, args, {})
    relate(dispatcher, _key(found), made)
    found._cute_site.add(made)
