"""Eight numbers at a time, in registers: what the loops of hidden chains are made of.

A compiler that is to find such eights by itself makes several versions of each loop, with checks which of them will do, and
these take as long as a short loop's work; here the eights are said. A processor takes them in one, two or four parts. In Python
they are arrays of eight, so that a kernel can be run without compiling it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, config, types
from numba.extending import lower_builtin, models, register_model, type_callable

WIDTH = 8


def load(a: Any, at: Any) -> Any:
    """a[at], …, a[at + 7].

    >>> load(np.arange(10.0), 2)
    array([2., 3., 4., 5., 6., 7., 8., 9.])
    """
    return a[at : at + WIDTH].copy()


def store(a: Any, at: Any, x: Any) -> None:
    """a[at + i] = x[i]."""
    a[at : at + WIDTH] = x


def eight(x: float) -> Any:
    """A number eight times."""
    return np.full(WIDTH, x)


def product(x: Any, y: Any) -> Any:
    """x y."""
    return x * y


def add_product(total: Any, x: Any, y: Any) -> Any:
    """total + x y, rounded once where the processor can."""
    return total + x * y


def total(x: Any) -> float:
    """Σ x, by halves."""
    while len(x) > 1:
        x = x[: len(x) // 2] + x[len(x) // 2 :]
    return float(x[0])


def top(x: Any) -> float:
    """The largest."""
    return float(x.max())


def reach(x: Any, y: float) -> int:
    """Which are y at least, as the bits of a number."""
    return sum(1 << i for i in range(WIDTH) if x[i] >= y)


def lowest(bits: int) -> int:
    """The place of the lowest bit of a number that is not 0."""
    return (int(bits) & -int(bits)).bit_length() - 1


def quotient(x: Any, y: Any) -> Any:
    """x / y, and 0 where y is 0."""
    return np.divide(x, y, out=np.zeros(WIDTH), where=y != 0.0)


def largest_sum(top: Any, x: Any, y: Any) -> Any:
    """The larger of top and x + y."""
    return np.maximum(top, x + y)


class Eight(types.Type):
    """The type of eight numbers in compiled code."""

    def __init__(self) -> None:
        super().__init__("Eight")


_eight, _vector = Eight(), ir.VectorType(ir.DoubleType(), WIDTH)
_FUSE = ("contract",)


@register_model(Eight)
class _Vector(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _vector)


_TYPES: dict[Any, Any] = {
    **dict.fromkeys((total, top), lambda x: types.float64),
    **dict.fromkeys((load, product, quotient), lambda x, y: _eight),
    **dict.fromkeys((add_product, largest_sum), lambda x, y, z: _eight),
    eight: lambda x: _eight,
    lowest: lambda bits: types.int64,
    reach: lambda x, y: types.int64,
    store: lambda a, at, x: types.void,
}
"""The types of what functions make, by those of their arguments."""
for _function, _typer in _TYPES.items():
    type_callable(_function)(lambda context, typer=_typer: typer)


def _place(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Where eight numbers of an array begin."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    at = context.cast(builder, arguments[1], signature.args[1], types.intp)
    if config.BOUNDSCHECK:
        last = builder.add(at, ir.Constant(at.type, WIDTH - 1))
        for index in (at, last):
            cgutils.do_boundscheck(context, builder, index, builder.extract_value(array.shape, 0), 0)
    return builder.bitcast(builder.gep(array.data, [at]), _vector.as_pointer())


@lower_builtin(load, types.Array, types.Integer)
def _load(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.load(_place(context, builder, signature, arguments), align=8)


@lower_builtin(store, types.Array, types.Integer, Eight)
def _store(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    builder.store(arguments[2], _place(context, builder, signature, arguments), align=8)
    return context.get_dummy_value()


@lower_builtin(eight, types.Float)
def _eight_of(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    none, index = ir.Constant(_vector, ir.Undefined), ir.IntType(32)
    one = builder.insert_element(none, arguments[0], ir.Constant(index, 0))
    return builder.shuffle_vector(one, none, ir.Constant(ir.VectorType(index, WIDTH), [0] * WIDTH))


@lower_builtin(product, Eight, Eight)
def _product(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.fmul(*arguments)


@lower_builtin(add_product, Eight, Eight, Eight)
def _add_product(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.fadd(arguments[0], builder.fmul(*arguments[1:], flags=_FUSE), flags=_FUSE)


def _by_halves(builder: Any, x: Any, join: Any) -> Any:
    index = ir.IntType(32)
    for n in (4, 2, 1):
        low, high = (ir.Constant(ir.VectorType(index, n), list(range(i, i + n))) for i in (0, n))
        x = join(builder.shuffle_vector(x, x, low), builder.shuffle_vector(x, x, high))
    return builder.extract_element(x, ir.Constant(index, 0))


@lower_builtin(total, Eight)
def _total(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return _by_halves(builder, arguments[0], builder.fadd)


@lower_builtin(top, Eight)
def _top(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return _by_halves(builder, arguments[0], lambda x, y: builder.select(builder.fcmp_ordered(">", x, y), x, y))


@lower_builtin(reach, Eight, types.Float)
def _reach(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    found = builder.fcmp_ordered(">=", arguments[0], _eight_of(context, builder, signature, arguments[1:]))
    return builder.zext(builder.bitcast(found, ir.IntType(WIDTH)), ir.IntType(64))


@lower_builtin(lowest, types.Integer)
def _lowest(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))


@lower_builtin(quotient, Eight, Eight)
def _quotient(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    zeros = ir.Constant(_vector, [0.0] * WIDTH)
    return builder.select(builder.fcmp_unordered("!=", arguments[1], zeros), builder.fdiv(*arguments), zeros)


@lower_builtin(largest_sum, Eight, Eight, Eight)
def _largest_sum(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    total = builder.fadd(*arguments[1:])
    return builder.select(builder.fcmp_ordered(">", total, arguments[0]), total, arguments[0])
