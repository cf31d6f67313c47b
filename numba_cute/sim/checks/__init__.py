# SPDX-License-Identifier: Apache-2.0
"""What the simulator looks for while a kernel runs, and how it explains what it finds."""
