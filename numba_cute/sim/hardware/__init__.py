# SPDX-License-Identifier: Apache-2.0
"""The machine: threads, warps, CTAs, clusters, memories, barriers and the units that copy and multiply."""
