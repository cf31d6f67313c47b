# SPDX-License-Identifier: Apache-2.0
"""The ground of the seam: errors and their places, leaves, backends, and how things are named for people."""
