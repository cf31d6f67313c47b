# SPDX-License-Identifier: Apache-2.0
"""Programs that call a package's functions and compare what they give with torch."""
