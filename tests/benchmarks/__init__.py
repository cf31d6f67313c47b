# SPDX-License-Identifier: Apache-2.0
"""The harness of the benchmarks."""
