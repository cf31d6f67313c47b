# SPDX-License-Identifier: Apache-2.0
"""The CuTe IR: the dialects `cute` and `cute_nvgpu` on xDSL, from kernels and to kernels. Needs `numba-cute[ir]`."""

from .module import Module as Module, parse as parse
