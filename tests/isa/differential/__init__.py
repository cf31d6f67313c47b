# SPDX-License-Identifier: Apache-2.0
"""Programs that are run twice on the same random inputs, in the simulator and on the GPU, generated from the table."""
