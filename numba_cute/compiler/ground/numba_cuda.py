# SPDX-License-Identifier: Apache-2.0
# ruff: isort: off
"""Name all that is taken of numba-cuda: no other file of this package imports it.

A new release may break what is named here, what `PRIVATE` lists, and the code that `patches.py` has digests of.
`numba.py` has what is there without it.
"""

# Types, how they are found of values and of calls, and how one becomes another.
from numba.cuda import types, typing
from numba.cuda.cudadecl import registry as typing_registry
from numba.cuda.descriptor import cuda_target
from numba.cuda.target import CUDATypingContext
from numba.cuda.typeconv import Conversion
from numba.cuda.typing import signature
from numba.cuda.typing.builtins import TupleAdd, TupleConstructor
from numba.cuda.typing.templates import AbstractTemplate, AttributeTemplate, fold_arguments, make_concrete_template
from numba.cuda.typing.typeof import Purpose, typeof, typeof_impl
from numba.cuda.core.typeinfer import PairFirstConstraint, Propagate, TypeInferer, TypeVar, TypeVarMap
from numba.cuda.np import numpy_support
from numba.cuda.np.numpy_support import as_dtype

# How values of them are held, and what is lowered for them.
from numba.cuda.datamodel import models, register_default
from numba.cuda.datamodel.models import UniTupleModel
from numba.cuda.extending import lower_cast, register_model
from numba.cuda.cudaimpl import registry as lowering_registry
from numba.cuda.core.base import OverloadSelector
from numba.cuda.core.imputils import RefType, iternext_impl
from numba.cuda.cpython import numbers
from numba.cuda.np.arrayobj import make_array
from numba.cuda.lowering import CUDALower
from numba.cuda.debuginfo import DummyDIBuilder

# Small pieces of LLVM IR, for `llvmlite.py`.
from numba.cuda.cgutils import (
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

# A function: its bytecode, and the IR that it becomes.
from numba.cuda.core import ir, postproc, sigutils, ssa
from numba.cuda.core.analysis import compute_cfg_from_blocks, compute_use_defs, ir_extension_usedefs, must_use_alloca
from numba.cuda.core.bytecode import ByteCodeInst, FunctionIdentity
from numba.cuda.core.interpreter import Interpreter
from numba.cuda.core.ir import Loc
from numba.cuda.core.ir_utils import (
    build_definitions,
    get_definition,
    guard,
    merge_adjacent_blocks,
    rename_labels,
    replace_vars,
    replace_vars_inner,
    replace_vars_stmt,
)
from numba.cuda.core.postproc import VariableLifetime
from numba.cuda.core.transforms import canonicalize_cfg

# The passes, and what runs them.
from numba.cuda.compiler import (
    CUDABytecodeInterpreter,
    CUDACompiler,
    CUDANativeLowering,
    CUDATranslateBytecode,
    DefaultPassBuilder,
    ExternFunction,
)
from numba.cuda.core import event
from numba.cuda.core.compiler_lock import global_compiler_lock
from numba.cuda.core.compiler_machinery import AnalysisPass, FunctionPass, PassManager, register_pass
from numba.cuda.core.consts import ConstantInference
from numba.cuda.core.inline_closurecall import RewriteArrayOfConsts
from numba.cuda.core.rewrites import rewrite_registry
from numba.cuda.core.rewrites.ir_print import RewritePrintCalls
from numba.cuda.core.rewrites.registry import RewriteRegistry
from numba.cuda.core.rewrites.static_getitem import RewriteStringLiteralGetitems, RewriteStringLiteralSetitems
from numba.cuda.core.targetconfig import ConfigStack
from numba.cuda.core.typed_passes import (
    InlineOverloads,
    NopythonRewrites,
    NopythonTypeInference,
    PartialTypeInference,
    type_inference_stage,
)
from numba.cuda.core.untyped_passes import (
    DeadBranchPrune,
    ExtractByteCode,
    GenericRewrites,
    InlineClosureLikes,
    LiteralPropagationSubPipelinePass,
    PropagateLiterals,
    ReconstructSSA,
    RewriteSemanticConstants,
)

# What its compiler raises, and warns of.
from numba.cuda import utils
from numba.cuda.core.errors import (
    ConstantInferenceError,
    ForceLiteralArg,
    NumbaError,
    NumbaNotImplementedError,
    NumbaTypeError,
    TypingError,
    WarningsFixer,
    loc_info,
    new_error_context,
)
from numba.cuda.cudadrv.error import NvvmSupportError
from numba.cuda.errors import UnsupportedBytecodeError

# Kernels, and how they are launched.
from numba.cuda.codegen import CUDACodeLibrary
from numba.cuda.dispatcher import CUDADispatcher, ForAll, normalize_kernel_dimensions
from numba.cuda.stubs import Stub

# The driver, the toolkit, arrays, and where files are kept.
from numba.cuda import api as cuda_api
from numba.cuda.cuda_paths import get_cuda_paths
from numba.cuda.cudadrv import driver, nvrtc, nvvm
from numba.cuda.cudadrv.devicearray import DeviceNDArray
from numba.cuda.cudadrv.libs import get_cudalib
from numba.cuda.misc.appdirs import AppDirs

# Modules in which something is replaced (`patches.py`), or which others teach Numba by (`taught.py`).
from numba.cuda import codegen, compiler, cudadecl, cudaimpl, debuginfo, dispatcher, lowering, nvvmutils
from numba.cuda.core import (
    analysis,
    base,
    bytecode,
    byteflow,
    imputils,
    inline_closurecall,
    interpreter,
    ir_utils,
    targetconfig,
    typed_passes,
    typeinfer,
    untyped_passes,
)
from numba.cuda.typing import context, templates

# Of private names: `PRIVATE` says what for.
from numba.cuda.core.analysis import _use_defs_result
from numba.cuda.core.caching import _Cache
from numba.cuda.dispatcher import _LAUNCH_CONFIG_KW, _dispatcher, _Kernel, _LaunchConfiguration
from numba.cuda.extending import _Intrinsic

PRIVATE: dict[str, dict[str, str]] = {
    "numba.cuda.dispatcher": {
        "_Kernel _codelibrary _prepare_args _rebuild": "kernels of this library: a class of their own, of Numba's",
        "_LaunchConfiguration _LAUNCH_CONFIG_KW _launch_config_sensitive _select_launch_config_dispatcher "
        "_update_launch_config_sensitivity": "kernel[grid, block], which launches them in machine code",
        "_dispatcher _cuda_call _can_compile": "to find the compiled kernel of arguments without its launch",
        "_cache": "the disk cache of this library in the place of Numba's",
    },
    "numba.cuda.codegen": {
        "_cubin_cache _ptx_cache _linking_files _linking_libraries _setup_functions _teardown_functions _finalized":
        "what the disk cache keeps of a kernel's code, and gives back",
        "_ensure_cc _max_registers _lto _nvvm_options": "to assemble a kernel with ptxas as Numba would, and its twins",
        "_create_empty_module": "what it asks libNVVM, which a check stands in for",
        "_llvm_strs": "what it gives libNVVM, for kernels that go through MLIR (host/backend.py)",
    },
    "numba.cuda.cudadrv.driver": {"_Linker _object_codes": "to compile CUDA C++ for this library's kernels by nvrtc"},
    "numba.cuda.cudadrv.nvvm": {"_datalayout": "what a check answers in libNVVM's place"},
    "numba.cuda.cudadrv.nvrtc": {"_get_nvrtc_version": "which of its headers are nvrtc's"},
    "numba.cuda.core.caching": {"_Cache": "the disk cache: what a dispatcher takes for one"},
    "numba.cuda.core.event": {"_registered": "whether anybody listens to passes"},
    "numba.cuda.core.compiler_machinery": {
        "_runPass _debug_init _finalized _analysis _print_before _print_after _print_wrap":
        "to run passes that are listed once for functions of a kind",
        "_name": "what registers a pass",
    },
    "numba.cuda.core.targetconfig": {"_values _MetaTargetConfig": "a function's options, listed at once"},
    "numba.cuda.core.bytecode": {"_FIXED_OFFSET": "which instruction a statement comes from"},
    "numba.cuda.core.interpreter": {
        "_dispatch _remove_unused_temporaries _iter_inst _start_new_block": "statements that know their instruction"
    },
    "numba.cuda.core.ir": {
        "_kws": "to set operands of an expression, which its own attributes do not",
        "_definitions": "definitions after a pass: Numba's own passes read them there",
        "_consts": "constants that Numba found, without the source where there is none",
        "_rec_list_vars": "a statement's variables, in less time",
    },
    "numba.cuda.core.consts": {"_cache": "the same, kept from one question to the next"},
    "numba.cuda.core.ssa": {
        "_CacheListVars _FixSSAVars _FreshVarHandler _GatherDefsHandler _compute_phi_locations _find_def "
        "_find_def_from_top _find_defs_violators _fix_ssa_vars _fresh_vars _iterated_domfronts _run_block_rewrite "
        "_run_ssa _warn_about_uninitialized_variable": "SSA form in time that grows with a function, not its square"
    },
    "numba.cuda.core.untyped_passes": {"_patch_locals": "what SSA form leaves of locals with given types"},
    "numba.cuda.core.postproc": {"_insert_var_dels": "where variables live, when that is asked for"},
    "numba.cuda.core.analysis": {"_use_defs_result": "where variables live, in less time"},
    "numba.cuda.core.typed_passes": {"_do_work_expr": "overloads that are inlined, for functions of this library"},
    "numba.cuda.core.errors": {
        "_category": "warnings of inference, kept over its rounds",
        "_contexts": "an error that is raised once more, with contexts of its own",
    },
    "numba.cuda.core.base": {
        "_defns": "implementations of a function that is typed by this library's templates",
        "_select_compatible _match _match_arglist": "an implementation, found once for types of the same classes",
    },
    "numba.cuda.lowering": {
        "_disable_sroa_like_opt": "whether variables have slots, asked once for each function",
        "_adjust_line_if_prologue _compute_def_location": "lines, of functions that are no Python too",
        "_blk_local_varmap _singly_assigned_vars _find_singly_assigned_variable": "variables without a slot, faster",
        "_lower_call_normal _lower_call_RecursiveCall": "calls, by the types that this library's passes found",
    },
    "numba.cuda.debuginfo": {
        "_di_location": "the column of a statement, for a kernel's typed form",
        "_var_type": "tuples of static objects, with line numbers",
    },
    "numba.cuda.cgutils": {"_getvalue": "the LLVM value of a struct that was written field by field"},
    "numba.cuda.datamodel": {
        "_models _elem_model _count": "what objects a tuple holds, which a function returns",
        "_fe_type": "the type of a model",
    },
    "numba.cuda.typing.context": {"_lookup_global": "names, typed by this library's context before Numba's"},
    "numba.cuda.typing.templates": {"_registries": "to look through Numba's registries only when one has grown"},
    "numba.core.types": {
        "_impl_keys": "what a call is lowered by, which typing finds",
        "_code": "the number of a type, by which it is found faster than by its key",
    },
    "numba.cuda.extending": {"_Intrinsic _defn": "what compiling an intrinsic reads"},
    "numba_cuda_mlir.descriptor": {
        "_ArgMarshaller _available_launch_config _launch_stream _stream_ref _configure_cached":
        "launches of that package, which this library's kernels go through (mlir.py)"
    },
    "numba_cuda_mlir.mlir_optimization": {
        "_get_llvm70_capi _get_op_ptr _get_single_gpu_module": "the way from MLIR to LLVM's IR (host/backend.py)"
    },
    "numba_cuda_mlir.decorators": {"_get_schema": "which options of its jit are as usual (mlir.py)"},
}  # fmt: skip
"""Every private name of numba-cuda that this package asks for, by the module that has it, with the reason (see
tests/compiler/test_seam.py)."""
