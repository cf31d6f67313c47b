# SPDX-License-Identifier: Apache-2.0
# ruff: isort: off
"""Name all that is taken of numba itself, and of `numba.cuda` whatever it is: numba-cuda, what numba brings where that
is not installed, or the simulator of either. This file can be imported with each of them.

numba-cuda has a copy of numba's compiler, and wherever it has one that is meant. Numba's own is here where objects of
both meet: what its types raise, and what other libraries registered with it.
"""

from . import versions

try:
    from numba import cuda
except (AttributeError, ImportError) as e:  # as of a numba-cuda with a numba that is newer than it
    raise versions.broken(e) from e
from numba.cuda.cudadrv import devices
from numba.cuda.cudadrv.driver import CudaAPIError
from numba.cuda.cudadrv.error import CudaSupportError

try:  # by which numba.cuda itself decides what it is
    from numba.cuda.core import config
except ModuleNotFoundError:  # it is numba's
    config = None

# What types raise that numba-cuda takes from numba.
from numba.core.errors import (
    NumbaError as OtherNumbaError,
    NumbaExperimentalFeatureWarning,
    TypingError as OtherTypingError,
)

# What others registered with numba.
from numba.core import imputils as cpu_implementations
from numba.core.extending import _Intrinsic as CpuIntrinsic  # of what `intrinsic` makes: it has no other name
from numba.core.target_extension import target_override
from numba.core.typing import templates as cpu_templates
