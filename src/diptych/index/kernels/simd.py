"""The inner loop of the sparse engines, written for vector units: sums of 8-bit rows times 16-bit weights.

Numba vectorises a loop over documents but stores the sums after every term; here the sums of a group of documents stay
in registers while all terms of a query pass. The instructions are LLVM's own generic vectors of 32 numbers, which
it turns into AVX-512, AVX2, SSE or NEON.
"""

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from diptych.index.kernels import GROUP

# Terms after which it is checked whether a group of documents can still matter.
ROUND = 8

_LANES = 32
_PAIRS = GROUP // (2 * _LANES)  # loads of 64 bytes, each of them two vectors of 16-bit numbers

_I64, _I32, _I16 = ir.IntType(64), ir.IntType(32), ir.IntType(16)
_NARROW, _WIDE = ir.VectorType(_I16, _LANES), ir.VectorType(_I32, _LANES)


def _number(value: int) -> Any:
    return ir.Constant(_I64, value)


def _lanes(kind: Any, value: int) -> Any:
    return ir.Constant(kind, [value] * _LANES)


class _Emitter:
    """Writes vector instructions through an ``IRBuilder``."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder

    def address(self, start: Any, offset: Any, kind: Any) -> Any:
        return self.builder.inttoptr(self.builder.add(start, offset), kind.as_pointer())

    def load(self, start: Any, offset: Any, kind: Any, align: int) -> Any:
        return self.builder.load(self.address(start, offset, kind), align=align)

    def store(self, value: Any, start: Any, offset: Any, align: int) -> None:
        self.builder.store(value, self.address(start, offset, value.type), align=align)

    def splat(self, value: Any) -> Any:
        empty = ir.Constant(_NARROW, ir.Undefined)
        first = self.builder.insert_element(empty, value, ir.Constant(_I32, 0))
        return self.builder.shuffle_vector(first, empty, _lanes(_WIDE, 0))

    def scaled(self, values: Any, weight: Any) -> Any:
        """values · weight >> 16, a single instruction on most machines."""
        product = self.builder.mul(self.builder.zext(values, _WIDE), weight)
        return self.builder.trunc(self.builder.lshr(product, _lanes(_WIDE, 16)), _NARROW)


@intrinsic  # type: ignore[untyped-decorator]
def add_rows(
    context: Any,
    sums: Any,
    totals: Any,
    masks: Any,
    block: Any,
    rows: Any,
    weights: Any,
    rests: Any,
    stride: Any,
    terms: Any,
    threshold: Any,
    groups: Any,
) -> Any:
    """totals[d] = sums[d] + Σ_t (row_t[d] · weight_t >> 8) for one block of documents.

    A group in which no document can reach the threshold any more is left: its masks are 0 and its totals are not
    written. All arrays are given by their addresses. Totals must stay below 2^16.

    Args:
        block: uint8, the block's rows; in each 64 documents number 2i belongs to document i and number 2i + 1 to
            document 32 + i, so that the low and the high bytes of 16-bit numbers are documents in order.
        rows: int64, where each term's row begins in the block.
        rests: uint16, what the terms of each round and all later ones can add at most to a document of each group;
            rounds are ``stride`` bytes apart.
    """
    addresses = [types.intp] * 8
    signature = types.void(*addresses, types.intp, types.uint16, types.intp)

    def generate(target: Any, builder: Any, _: Any, arguments: Any) -> Any:
        emit = _Emitter(builder)
        names = "groups group rounds round terms term check look leave store done"
        blocks = {name: builder.append_basic_block(name) for name in names.split()}
        limit = emit.splat(arguments[9])
        before = builder.block
        builder.branch(blocks["groups"])
        builder.position_at_end(blocks["groups"])
        group = builder.phi(_I64)
        group.add_incoming(_number(0), before)
        more = builder.icmp_signed("<", group, arguments[10])
        builder.cbranch(more, blocks["group"], blocks["done"])
        _group(emit, blocks, group, arguments, limit)
        for name in ("store", "leave"):
            builder.position_at_end(blocks[name])
            group.add_incoming(builder.add(group, _number(1)), blocks[name])
            builder.branch(blocks["groups"])
        builder.position_at_end(blocks["done"])
        return target.get_dummy_value()

    return signature, generate


def _group(emit: _Emitter, blocks: dict[str, Any], group: Any, arguments: Any, limit: Any) -> None:
    """One group of documents: sums from memory into registers, the terms, totals and masks into memory."""
    builder = emit.builder
    sums, totals, masks, block, rows, weights, rests, stride, terms, threshold, _ = arguments
    builder.position_at_end(blocks["group"])
    place = builder.mul(group, _number(2 * GROUP))
    mask_place = builder.mul(group, _number(GROUP // 8))
    offsets = [builder.add(place, _number(2 * _LANES * part)) for part in range(2 * _PAIRS)]
    starts = [emit.load(sums, offset, _NARROW, 2) for offset in offsets]
    column = builder.add(block, builder.mul(group, _number(GROUP)))
    builder.branch(blocks["rounds"])

    builder.position_at_end(blocks["rounds"])
    begun = builder.phi(_I64)
    begun.add_incoming(_number(0), blocks["group"])
    so_far = [builder.phi(_NARROW) for _ in offsets]
    for value, start in zip(so_far, starts, strict=True):
        value.add_incoming(start, blocks["group"])
    builder.cbranch(builder.icmp_signed("<", begun, terms), blocks["check"], blocks["store"])

    # Can a document still get there? Not worth looking when even the sum 0 could.
    builder.position_at_end(blocks["check"])
    number = builder.lshr(begun, _number(ROUND.bit_length() - 1))
    rest = builder.add(builder.mul(number, stride), builder.mul(group, _number(2)))
    rest = emit.load(rests, rest, _I16, 2)
    builder.cbranch(builder.icmp_unsigned(">", threshold, rest), blocks["look"], blocks["round"])
    builder.position_at_end(blocks["look"])
    needed = emit.splat(builder.sub(threshold, rest))
    reached = [builder.icmp_unsigned(">=", value, needed) for value in so_far]
    while len(reached) > 1:
        reached = [builder.or_(one, other) for one, other in zip(reached[::2], reached[1::2], strict=True)]
    hope = builder.icmp_unsigned("!=", builder.bitcast(reached[0], _I32), ir.Constant(_I32, 0))
    builder.cbranch(hope, blocks["round"], blocks["leave"])

    builder.position_at_end(blocks["round"])
    end = builder.add(begun, _number(ROUND))
    end = builder.select(builder.icmp_signed("<", end, terms), end, terms)
    builder.branch(blocks["terms"])
    running = _terms(emit, blocks, begun, so_far, end, (column, rows, weights))
    begun.add_incoming(end, blocks["terms"])
    for value, after in zip(so_far, running, strict=True):
        value.add_incoming(after, blocks["terms"])

    builder.position_at_end(blocks["leave"])
    for part in range(len(offsets)):
        emit.store(ir.Constant(_I32, 0), masks, builder.add(mask_place, _number(4 * part)), 4)
    builder.position_at_end(blocks["store"])
    for part, (value, offset) in enumerate(zip(so_far, offsets, strict=True)):
        emit.store(value, totals, offset, 2)
        mask = builder.bitcast(builder.icmp_unsigned(">=", value, limit), _I32)
        emit.store(mask, masks, builder.add(mask_place, _number(4 * part)), 4)


def _terms(
    emit: _Emitter, blocks: dict[str, Any], begun: Any, so_far: list[Any], end: Any, arguments: Any
) -> list[Any]:
    """The terms of one round, from ``begun`` to ``end``; leaves for "rounds"."""
    builder = emit.builder
    column, rows, weights = arguments
    builder.position_at_end(blocks["terms"])
    term = builder.phi(_I64)
    term.add_incoming(begun, blocks["round"])
    running = [builder.phi(_NARROW) for _ in so_far]
    for value, start in zip(running, so_far, strict=True):
        value.add_incoming(start, blocks["round"])
    builder.cbranch(builder.icmp_signed("<", term, end), blocks["term"], blocks["rounds"])

    builder.position_at_end(blocks["term"])
    weight = emit.load(weights, builder.mul(term, _number(2)), _I16, 2)
    weight = builder.zext(emit.splat(weight), _WIDE)
    row = builder.add(column, emit.load(rows, builder.mul(term, _number(8)), _I64, 8))
    for pair in range(_PAIRS):
        codes = emit.load(row, _number(2 * _LANES * pair), _NARROW, 1)
        low = builder.shl(codes, _lanes(_NARROW, 8))
        high = builder.and_(codes, _lanes(_NARROW, 0xFF00))
        for value, half in ((running[2 * pair], low), (running[2 * pair + 1], high)):
            value.add_incoming(builder.add(value, emit.scaled(half, weight)), blocks["term"])
    term.add_incoming(builder.add(term, _number(1)), blocks["term"])
    builder.branch(blocks["terms"])
    return running


@intrinsic  # type: ignore[untyped-decorator]
def trailing_zeros(context: Any, mask: Any) -> Any:
    """Return how many zeros a uint32 that is not 0 ends with."""

    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint32(types.uint32), generate


@intrinsic  # type: ignore[untyped-decorator]
def prefetch(context: Any, address: Any) -> Any:
    """Ask for the 64 bytes around ``address``, which are read soon; an address that is none is no error."""

    def generate(target: Any, builder: Any, _: Any, arguments: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [byte, _I32, _I32, _I32])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        reading, soon, data = (ir.Constant(_I32, number) for number in (0, 3, 1))
        builder.call(function, [builder.inttoptr(arguments[0], byte), reading, soon, data])
        return target.get_dummy_value()

    return types.void(types.intp), generate
