# SPDX-License-Identifier: Apache-2.0
"""docs/compatibility.md: the names of the systems that this project follows, and what there is of each."""
