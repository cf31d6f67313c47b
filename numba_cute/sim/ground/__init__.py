# SPDX-License-Identifier: Apache-2.0
"""What the simulator's rooms stand on: its errors, and what threads know of each other's accesses."""
