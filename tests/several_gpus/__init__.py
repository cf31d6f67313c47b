# SPDX-License-Identifier: Apache-2.0
"""Several GPUs: what needs them is started as processes of their own, one for each; the rest stands in for them."""
