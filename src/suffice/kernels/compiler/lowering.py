"""How kernels are written in LLVM's language: what numba does for any function, without what kernels do not need of it.

For each operation numba asks its rules three times whether one knows the constants in it, and looks up the implementation; it
takes an array apart for each number that is read, and clears each number that is not needed any more: a fifth of compiling.
"""

from __future__ import annotations

import operator
from typing import Any

from numba.core import cgutils, ir, types
from numba.core.cpu import CPUContext
from numba.core.errors import NumbaError
from numba.core.lowering import Lower
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
