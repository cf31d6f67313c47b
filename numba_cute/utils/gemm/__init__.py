# SPDX-License-Identifier: Apache-2.0
"""Parts of GEMM kernels, by architecture."""

from ...seam.guards import facade as _facade
from . import sm100 as sm100

_facade.publish(globals(), sm100)
