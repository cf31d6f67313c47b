# SPDX-License-Identifier: Apache-2.0
"""Kernels of plain tensors: memory of every kind by `allocate`, TMA without atoms, pipelines that keep their states."""

from ..seam.guards import facade as _facade
from . import iket as iket
from .core import *
from .epilogue import *
from .kernels import *
from .mainloop import *
from .math import *
from .memory import *
from .operations import *
from .pipelines import *
from .tensor_memory import *
from .tensors import *
from .tma import *

_facade.publish(globals(), iket)
