# SPDX-License-Identifier: Apache-2.0
"""Modules as the CuTe DSL prints them, made Python: each operation is the call of this library that it is."""
