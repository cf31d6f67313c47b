# SPDX-License-Identifier: Apache-2.0
"""Hooks for engines: what the compiler and the simulator plug in, or ask of each other."""
