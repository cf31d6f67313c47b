# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's names for this library: files that are written for the CuTe DSL run with nothing changed.

`install()` has `import cutlass`, `import cutlass.cute` and the modules below them answered by this library, in this
process. `python -m numba_cute run FILE.py` does so for a file, on a GPU or with `--simulate` on the CPU.
"""

from .importing import install as install, uninstall as uninstall

__all__ = ["install", "uninstall"]
