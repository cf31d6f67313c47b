# SPDX-License-Identifier: Apache-2.0
"""Operations that came with Ampere (sm_80) and Ada: mma.sync, cp.async."""
