# SPDX-License-Identifier: Apache-2.0
"""What makes the site of docs/*.md: `make docs`. Nothing here is installed."""
