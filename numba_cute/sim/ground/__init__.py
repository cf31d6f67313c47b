# SPDX-License-Identifier: Apache-2.0
"""The ground of the simulator's rooms: its errors, and what threads know of each other's accesses."""
