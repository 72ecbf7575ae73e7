"""numba's compiler with what kernels need of it, for half of compiling is spent on what they do not.

Functions that only kernels call, numba's own among them, are linked into them, and optimised and made into machine code there.
On its own each would have both done once more, and Python's objects unpacked for its arguments. A name has one kind of number in
a kernel (`KernelLower` refuses others), so names need not be told apart by where they are assigned.

Kernels are written in LLVM's language as numba does for any function, without what they do not need of it: for each operation
numba asks its rules three times whether one knows the constants in it, and looks up the implementation; it takes an array apart
for each number that is read, and clears each number that is not needed any more: a fifth of compiling.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, ClassVar

from llvmlite.binding import create_pass_builder, create_pipeline_tuning_options
from numba.core import cgutils, ir, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, Flags, PassManager
from numba.core.compiler_machinery import register_pass
from numba.core.cpu import CPUContext
from numba.core.errors import NumbaError
from numba.core.lowering import Lower
from numba.core.typed_passes import NativeLowering, NopythonRewrites, PreLowerStripPhis
from numba.core.types import Function
from numba.core.typing import Context
from numba.core.untyped_passes import FixupArgs, GenericRewrites, IRProcessing, TranslateByteCode
from numba.np.arrayobj import load_item, store_item


class KnownImplementations(CPUContext):  # type: ignore[misc]
    """numba's implementations, each found once."""

    def __init__(self, context: Any) -> None:
        self.__dict__ = {**context.__dict__, "found": {}}

    def get_function(self, fn: Any, sig: Any, _firstcall: bool = True) -> Any:
        if (fn, sig) not in self.found:
            if sig.args not in getattr(fn, "_impl_keys", (sig.args,)):  # known when the type of this call has been asked for
                fn.get_call_type(self.typing_context, sig.args, {})
            self.found[fn, sig] = super().get_function(fn, sig, _firstcall)
        return self.found[fn, sig]


class KernelLower(Lower):  # type: ignore[misc]
    """A kernel in LLVM's language."""

    def __init__(self, context: Any, *rest: Any, **options: Any) -> None:
        super().__init__(KnownImplementations(context), *rest, **options)

    def lower_block(self, block: Any) -> None:
        """Instructions that stand in a row, without words about each for an error."""
        self.pre_block(block)
        for inst in block.body:
            self.loc = inst.loc
            self.lower_inst(inst)
        self.post_block(block)

    def lower_assign(self, ty: Any, inst: Any) -> Any:
        """Refuse a name that stands for whole numbers here and for others there: all of them would be floats."""
        if isinstance(ty, types.Float) and isinstance(self._kind(inst.value), types.Integer):
            raise NumbaError(f"{inst.target.name} stands for whole numbers and for others in one kernel", loc=inst.loc)
        return super().lower_assign(ty, inst)

    def _kind(self, value: Any) -> Any:
        """The type of what is assigned, where it may be another than that of the name."""
        if isinstance(value, ir.Var):
            return self.typeof(value.name)
        if isinstance(value, ir.Arg):
            return self.typeof(f"arg.{value.name}")
        if isinstance(value, ir.Const | ir.Global | ir.FreeVar):
            return types.int64 if isinstance(value.value, int) else None
        signature = self.fndesc.calltypes.get(value)
        return signature and signature.return_type

    def lower_binop(self, resty: Any, expr: Any, op: Any) -> Any:
        """An operation on two numbers: numba looks for one that knows a constant first, of which there is only a power's."""
        signature = self.fndesc.calltypes[expr]
        if op is operator.pow or not all(isinstance(a, types.Number | types.Boolean) for a in signature.args):
            return super().lower_binop(resty, expr, op)
        sides = [
            self.context.cast(self.builder, self.loadvar(side.name), self.typeof(side.name), kind)
            for side, kind in zip((expr.lhs, expr.rhs), signature.args, strict=True)
        ]
        found = self.context.get_function(self.context.typing_context.resolve_value_type(op), signature)
        return self.context.cast(self.builder, found(self.builder, sides), signature.return_type, resty)

    def lower_getitem(self, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        place = self._place(value, index)
        if place is None:
            return super().lower_getitem(resty, expr, value, index, signature)
        array = self.typeof(value.name)
        return self.context.cast(self.builder, load_item(self.context, self.builder, array, place), array.dtype, resty)

    def lower_setitem(self, target_var: Any, index_var: Any, value_var: Any, signature: Any) -> Any:
        place = self._place(target_var, index_var)
        if place is None:
            return super().lower_setitem(target_var, index_var, value_var, signature)
        array, kind = self.typeof(target_var.name), self.typeof(value_var.name)
        value = self.context.cast(self.builder, self.loadvar(value_var.name), kind, array.dtype)
        store_item(self.context, self.builder, array, value, place)
        return None

    def _place(self, array: Any, index: Any) -> Any:
        """Where one number of an array without gaps is; None if it is another kind of array, or not one number is meant."""
        kind, at = self.typeof(array.name), self.typeof(index.name)
        several = isinstance(at, types.BaseTuple)  # type: ignore[attr-defined]
        axes = at.types if several else (at,)
        if not isinstance(kind, types.Array) or kind.layout != "C" or len(axes) != kind.ndim:
            return None
        if not all(isinstance(a, types.Integer) for a in axes):
            return None
        builder, value, places = self.builder, self.loadvar(array.name), self.loadvar(index.name)
        names = self.context.data_model_manager[kind]._fields
        shape, offset = names.index("shape"), None
        for axis, own in enumerate(axes):
            i = builder.extract_value(places, axis) if several else places
            i = self.context.cast(builder, i, own, types.intp if own.signed else types.uintp)
            if own.signed or axis or self.context.enable_boundscheck:
                size = builder.extract_value(value, [shape, axis])
            if own.signed:
                i = builder.select(builder.icmp_signed("<", i, i.type(0)), builder.add(i, size), i)
            if self.context.enable_boundscheck:
                cgutils.do_boundscheck(self.context, builder, i, size, axis)
            offset = i if offset is None else builder.add(builder.mul(offset, size), i)
        return builder.gep(builder.extract_value(value, names.index("data")), [offset])

    def storevar(self, value: Any, name: str, argidx: Any = None) -> None:
        if self._counts(name):
            super().storevar(value, name, argidx)
            return
        self._alloca_var(name, self.typeof(name))
        if name in self._singly_assigned_vars:
            self._blk_local_varmap[name] = value
        else:
            self.builder.store(value, self.getvar(name))

    def delvar(self, name: str) -> None:
        """Forget a variable: nothing to do where it holds no reference."""
        if self._counts(name):
            super().delvar(name)

    def _counts(self, name: str) -> bool:
        """Whether references to a variable are counted."""
        return self.context.enable_nrt and bool(self.context.data_model_manager[self.typeof(name)].contains_nrt_meminfo())


class SharedFlags(Flags):  # type: ignore[misc]
    """What numba's own functions inherit from the kernel that calls them: few kinds, so that each is compiled few times. numba
    looks for such functions by these flags, many thousand times, so flags are told apart by identity, not by all they say."""

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    def copy(self) -> SharedFlags:
        return _shared_flags(frozenset(self.fastmath.flags), self.boundscheck)


@cache
def _shared_flags(fastmath: frozenset[str], boundscheck: bool) -> SharedFlags:
    flags = SharedFlags()
    flags.nrt = flags.release_gil = True
    flags.fastmath, flags.boundscheck = set(fastmath), boundscheck
    return flags


_OPERATORS = frozenset(f for f in vars(operator).values() if callable(f))


class KnownTypes(Context):  # type: ignore[misc]
    """numba's types of results, those of operators found once for each kind of operands: each time ten rules are tried."""

    results: ClassVar[dict[Any, Any]] = {}

    def __init__(self, context: Any) -> None:
        self.__dict__ = context.__dict__

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        if not isinstance(func, Function) or kws or func.typing_key not in _OPERATORS:
            return super().resolve_function_type(func, args, kws)
        key = func.typing_key, tuple(args)
        if key not in self.results:
            self.results[key] = super().resolve_function_type(func, args, kws)
        return self.results[key]


class Whole(JITCodeLibrary):  # type: ignore[misc]
    """The code of a kernel: optimised when all that it calls is in it, and not before that each by itself, too."""

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        """Loops are not unrolled: those that matter are vectorised, and others run as fast, but take longer to compile."""
        if any(f.name.startswith("NRT_") for f in self._final_module.functions):
            # Counts of references that cancel are left out, as by numba: functions are inlined a first time for it.
            passes = self._codegen._module_pass_manager(loop_vectorize=False, slp_vectorize=False, opt=0, cost="cheap")
            passes, *own = passes if isinstance(passes, tuple) else (passes,)  # the second since numba 0.62
            passes.run(self._final_module, *own)
        options = create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization, options.slp_vectorization, options.loop_unrolling = True, False, False
        builder = create_pass_builder(self._codegen._tm, options)
        builder.getModulePassManager().run(self._final_module, builder)


class Linked(Whole):
    """The code of a function that others link; nothing of it is run from here."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True

    @property
    def codegen(self) -> Linked:
        return self

    def set_env(self, name: str, env: Any) -> None:
        """What its environment is need not be known where it is not run."""

    @classmethod
    def _unserialize(cls, codegen: Any, state: Any) -> Any:
        """What is on disk is run."""
        with _made_as(codegen, JITCodeLibrary):
            return JITCodeLibrary._unserialize(codegen, state)


@contextmanager
def _made_as(codegen: Any, kind: type) -> Iterator[None]:
    """numba's own functions, as long as this holds, as code of that kind."""
    before, codegen._library_class = codegen._library_class, kind
    try:
        yield
    finally:
        codegen._library_class = before


@register_pass(mutates_CFG=True, analysis_only=False)
class KernelLowering(NativeLowering):  # type: ignore[misc]
    """A function as code that others link, unless it has a library of its own."""

    _name, lowering_class = "kernel_lowering", KernelLower


@register_pass(mutates_CFG=True, analysis_only=False)
class WholeLowering(KernelLowering):
    """A function as code that Python calls, kept on disk."""

    _name = "whole_lowering"

    def run_pass(self, state: Any) -> bool:
        state.library = Whole(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return bool(super().run_pass(state))


@cache
def compiler(linked: bool, apart: bool, allocates: bool) -> type:
    """numba's compiler for kernels: to be linked into others, or called; `apart` if their arguments do not overlap. References to
    arrays are counted only by what allocates some: all others belong to who calls."""

    class KernelCompiler(CompilerBase):  # type: ignore[misc]
        def __init__(self, typing: Any, target: Any, library: Any, args: Any, result: Any, flags: Any, given: Any) -> None:
            own = SharedFlags(flags)
            own.noalias, own.nrt = apart, allocates
            own.no_cfunc_wrapper, own.no_cpython_wrapper = True, linked
            super().__init__(KnownTypes(typing), target, library, args, result, own, given)

        def compile_extra(self, func: Any) -> Any:
            """The compiled function; numba's own functions that are compiled on the way are linked into it."""
            with _made_as(self.state.targetctx.codegen(), Linked):
                return super().compile_extra(func)

        def define_pipelines(self) -> list[Any]:
            passes = PassManager("kernel")
            for each in (TranslateByteCode, FixupArgs, IRProcessing, GenericRewrites):
                passes.add_pass(each, "untyped")
            passes.passes.extend(DefaultPassBuilder.define_typed_pipeline(self.state).passes)
            passes.passes.extend(DefaultPassBuilder.define_nopython_lowering_pipeline(self.state).passes)
            lowering = KernelLowering if linked else WholeLowering
            unneeded = NopythonRewrites, PreLowerStripPhis  # of expressions of arrays; of names told apart
            kept = [(p, why) for p, why in passes.passes if p not in unneeded]
            passes.passes = [(lowering if p is NativeLowering else p, why) for p, why in kept]
            passes.finalize()
            return [passes]

    return KernelCompiler
