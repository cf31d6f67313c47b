# SPDX-License-Identifier: Apache-2.0
"""DLPack's description of an array, as C lays it out: read where tensors are made, and where they are launched."""

import ctypes


class DLTensor(ctypes.Structure):
    """dlpack.h, DLTensor; it stands at the start of a DLManagedTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]
