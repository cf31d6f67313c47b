# SPDX-License-Identifier: Apache-2.0
"""The marks of functions, classes, parameters and objects that kernels use, and those of the user that bear none."""
