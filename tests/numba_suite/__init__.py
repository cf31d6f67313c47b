# SPDX-License-Identifier: Apache-2.0
"""numba-cuda's own tests, with `import numba_cute` and without: `python -m tests.numba_suite`."""
