# SPDX-License-Identifier: Apache-2.0
"""Guards of everything public: what a wrong call is told, in words that both engines share."""
