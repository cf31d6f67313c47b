# SPDX-License-Identifier: Apache-2.0
"""The commands of `python -m numba_cute`, each a module with `add`, which adds its options to a parser, and `run`."""
