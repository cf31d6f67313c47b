# SPDX-License-Identifier: Apache-2.0
# ruff: isort: off
"""Name all that is taken of llvmlite, and the functions of numba-cuda that write by its builders.

`from ..ground import llvmlite as ir` has what a kernel's LLVM IR is made of, and a `Builder` (`builder.py`) writes
it: kernels in another IR need these names, those methods, and nothing else.
"""

from llvmlite import __version__ as VERSION

# Types and constants.
from llvmlite.ir import (
    ArrayType,
    Constant,
    DoubleType,
    FloatType,
    FunctionType,
    HalfType,
    IntType,
    LiteralStructType,
    PointerType,
    Type,
    Undefined,
    VectorType,
    VoidType,
)

# What stands in a function.
from llvmlite.ir import (
    AllocaInstr,
    Argument,
    CallInstr,
    GEPInstr,
    GlobalVariable,
    InlineAsm,
    LoadInstr,
    Ret,
    StoreInstr,
)
from llvmlite.ir.instructions import ExtractValue, InsertValue
from llvmlite.ir.values import ArgumentAttributes, MDValue, MetaDataString

# What writes it, and where.
from llvmlite.ir import Function, IRBuilder, Module

# Pieces that Numba writes too.
from .numba_cuda import (
    add_global_variable,
    alloca_once,
    alloca_once_value,
    create_struct_proxy,
    for_range,
    get_or_insert_function,
    get_or_insert_named_metadata,
    pack_array,
    unpack_tuple,
    voidptr_t,
)

# Machine code for this processor, of which launches are (host/native): LLVM's, whatever kernels are written in.
from llvmlite import binding
