# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's own files, unchanged: `python -m tests.reference PATH [FILE…]`, see `__main__`."""
