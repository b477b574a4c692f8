"""LLVM instructions on vectors of numbers, for compiled passes (lanes.py)."""

from functools import cache
from typing import Any

_CONTRACT = ("contract",)  # a product and a sum may be rounded once


@cache
def lanes() -> int:
    """Single-precision numbers in a vector register."""
    from llvmlite.binding import get_host_cpu_features  # type: ignore[import-not-found,import-untyped,unused-ignore]

    features = get_host_cpu_features()
    return 16 if features.get("avx512f") else 8 if features.get("avx") else 4


def check_rows(*tables: Any) -> None:
    """Raise while a pass is compiled for tables that are not stored row by row: here places are computed."""
    if any(table.layout != "C" for table in tables):
        raise TypeError("tables must be stored row by row")


class Emitter:
    """LLVM instructions on vectors of numbers of one type."""

    def __init__(self, context: Any, builder: Any, number: Any, width: int) -> None:
        from llvmlite import ir  # type: ignore[import-not-found,import-untyped,unused-ignore]

        self.context, self.builder, self.ir = context, builder, ir
        self.number, self.index, self.width = number, ir.IntType(64), width
        self.vector = ir.VectorType(number, width)

    @classmethod
    def single(cls, context: Any, builder: Any) -> "Emitter":
        """For single precision."""
        from llvmlite.ir import FloatType  # type: ignore[import-not-found,import-untyped,unused-ignore]

        return cls(context, builder, FloatType(), lanes())

    @classmethod
    def double(cls, context: Any, builder: Any) -> "Emitter":
        """For double precision."""
        from llvmlite.ir import DoubleType  # type: ignore[import-not-found,import-untyped,unused-ignore]

        return cls(context, builder, DoubleType(), max(lanes() // 2, 2))

    def whole(self, value: int) -> Any:
        """A constant, as a place or a number of rows."""
        return self.ir.Constant(self.index, value)

    def array(self, kind: Any, value: Any) -> tuple[Any, list[Any]]:
        """Where its entries start, and its shape."""
        from numba.core import cgutils  # type: ignore[import-not-found,import-untyped,unused-ignore]

        found = self.context.make_array(kind)(self.context, self.builder, value)
        return found.data, cgutils.unpack_tuple(self.builder, found.shape, kind.ndim)

    def load(self, start: Any, at: Any) -> Any:
        """Entries from a place on, of the array's own type."""
        place = self.builder.gep(start, [at])
        entry = place.type.pointee
        vector = self.ir.VectorType(entry, self.width)
        return self.builder.load(self.builder.bitcast(place, vector.as_pointer()), align=self._bytes(entry))

    def store(self, values: Any, start: Any, at: Any) -> None:
        """Write a vector from a place on."""
        place = self.builder.bitcast(self.builder.gep(start, [at]), self.vector.as_pointer())
        self.builder.store(values, place, align=self._bytes(self.number))

    def _bytes(self, kind: Any) -> int:
        return int(self.context.get_abi_sizeof(kind))

    def spread(self, number: Any) -> Any:
        """The number in every lane."""
        ir, small = self.ir, self.ir.IntType(32)
        unknown = ir.Constant(self.vector, ir.Undefined)
        first = self.builder.insert_element(unknown, number, ir.Constant(small, 0))
        everywhere = ir.Constant(ir.VectorType(small, self.width), [0] * self.width)
        return self.builder.shuffle_vector(first, unknown, everywhere)

    def largest(self, values: Any) -> Any:
        """Of the lanes; none is NaN."""
        from numba.core import cgutils

        kind = self.ir.FunctionType(self.number, [self.vector])
        name = f"llvm.vector.reduce.fmax.v{self.width}f32"
        function = cgutils.get_or_insert_function(self.builder.module, kind, name)
        return self.builder.call(function, [values], fastmath=["nnan"])

    def fetch(self, start: Any, at: Any) -> None:
        """Have the entry brought into the cache; it may be beyond the end."""
        from numba.core import cgutils

        ir, small = self.ir, self.ir.IntType(32)
        byte = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [byte, small, small, small])
        function = cgutils.get_or_insert_function(self.builder.module, kind, "llvm.prefetch.p0i8")
        place = self.builder.bitcast(self.builder.gep(start, [at]), byte)
        self.builder.call(function, [place, *(ir.Constant(small, n) for n in (0, 3, 1))])

    def sum(self, values: Any) -> Any:
        """Of the lanes, in some order."""
        from numba.core import cgutils

        kind = self.ir.FunctionType(self.number, [self.number, self.vector])
        function = cgutils.get_or_insert_function(
            self.builder.module, kind, f"llvm.vector.reduce.fadd.v{self.width}f64"
        )
        return self.builder.call(function, [self.ir.Constant(self.number, 0.0), values], fastmath=["reassoc"])

    def cut(self, numbers: Any) -> Any:
        """One double or a vector of them, rounded toward zero."""
        from numba.core import cgutils

        name = "llvm.trunc.f64" if numbers.type is self.number else f"llvm.trunc.v{self.width}f64"
        function = cgutils.get_or_insert_function(
            self.builder.module, self.ir.FunctionType(numbers.type, [numbers.type]), name
        )
        return self.builder.call(function, [numbers])

    def variable(self, value: Any) -> Any:
        """A place for a value that changes; it becomes a register."""
        from numba.core import cgutils

        return cgutils.alloca_once_value(self.builder, value)

    def last_lanes(self, number: Any) -> Any:
        """Which lanes are the last so many ones."""
        lanes = self.ir.VectorType(self.index, self.width)
        from_end = self.ir.Constant(lanes, [self.width - i for i in range(self.width)])
        limit = self.builder.insert_element(
            self.ir.Constant(lanes, self.ir.Undefined), number, self.ir.Constant(self.ir.IntType(32), 0)
        )
        everywhere = self.ir.Constant(self.ir.VectorType(self.ir.IntType(32), self.width), [0] * self.width)
        limit = self.builder.shuffle_vector(limit, limit, everywhere)
        return self.builder.icmp_unsigned("<=", from_end, limit)

    def added_product(self, one: Any, other: Any, place: Any) -> None:
        """Add a product to what is stored at a place."""
        product = self.builder.fmul(one, other, flags=_CONTRACT)
        self.builder.store(self.builder.fadd(product, self.builder.load(place), flags=_CONTRACT), place)


def as_doubles(builder: Any, entry: Any, values: Any, doubles: Any) -> Any:
    """Numbers of a type of numba, in one lane or several, as doubles."""
    if getattr(entry, "bitwidth", 0) == 64 and not hasattr(entry, "signed"):
        return values
    if not hasattr(entry, "signed"):
        return builder.fpext(values, doubles)
    return (builder.sitofp if entry.signed else builder.uitofp)(values, doubles)
