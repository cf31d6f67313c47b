# SPDX-License-Identifier: Apache-2.0
"""Benchmarks: `python -m benchmarks` runs them all or by name, and says what changed.."""
