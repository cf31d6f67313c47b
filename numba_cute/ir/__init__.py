# SPDX-License-Identifier: Apache-2.0
"""CuTe's IR of kernels: the dialects `cute` and `cute_nvgpu`, on xDSL. Imported on demand only."""
