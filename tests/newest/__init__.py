# SPDX-License-Identifier: Apache-2.0
"""The newest releases of what this package leans on: tried each week, and the page that says which versions were."""
