# SPDX-License-Identifier: Apache-2.0
"""Operations that came with Blackwell (sm_100): tensor memory and tcgen05."""
