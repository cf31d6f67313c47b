# SPDX-License-Identifier: Apache-2.0
"""Fresh environments with the wheel in them, and what a user does there first."""
