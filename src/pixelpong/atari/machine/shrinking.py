"""Reduces pictures, with LLVM IR for one size in which the columns' shares are constants.

Two pictures become one small picture: their maximum, averaged over areas. Rows of the large
pictures that differ from the row above are summed along the columns; other rows reuse the sums of
the row above. Then these sums are added, each with its row's weight. A small row is copied from its
twin if all rows that both are made of are the same.

Sums are float32, and a pixel's addends come in the order of its shares. Vector shuffles, which
every processor has, pick the columns.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.machine.native import NativeCode, Source
from pixelpong.atari.machine.record import WIDTH

LANES = 8  # number of small pixels computed at once
_ROUNDING = np.float32(1 << 23)  # adding it to a number in [0, 256) leaves no bits for a fraction
_PART = 32  # number of large pixels compared at once
_VECTOR, _INDICES, _BYTES = (f"<{LANES} x {kind}>" for kind in ("float", "i32", "i8"))
_BITS = f"i{8 * _PART}"


class Shares(NamedTuple):
    """The sources of a small line's N pixels: for each, K pixels of a large line with weights.

    If a pixel has fewer shares, its last one is repeated with weight 0.
    """

    sources: NDArray[np.int64]  # [K, N], increasing along both axes
    weights: NDArray[np.float32]  # [K, N]


class Shrinking:
    """The compiled function for one size; its address is valid as long as this object lives.

    Other compiled code calls it by its address::

        void shrink(const uint8 *first, const uint8 *second, uint8 *out, float *scratch)

    The first two are pictures of levels with rows of 160 bytes; they may be the same picture.
    `scratch` has room for `scratch_size` numbers.
    """

    def __init__(self, columns: Shares, rows: Shares, folder: Path | None = None) -> None:
        """Load the function from the cache or compile it."""
        parts = (*columns, *rows)
        form = b"".join(repr(part.shape).encode() + part.tobytes() for part in parts)
        key = hashlib.sha256(form + Path(__file__).read_bytes()).digest()
        self._code = NativeCode([Source(key, lambda: make_ir(columns, rows), level=1)], folder)
        self.address = self._code.address("shrink")
        self.scratch_size = (int(rows.sources.max()) + 1) * _stride(columns)


def make_ir(columns: Shares, rows: Shares) -> str:
    """Make the function `shrink` as IR."""
    twins = _find_twins(rows)
    starts = np.where(twins < 0, 0, rows.sources[0, twins])
    weights = np.array([_number(weight) for weight in rows.weights.T.ravel()])
    return f"""
@twins = private constant {_array("i32", twins)}
@starts = private constant {_array("i32", starts)}
@ends = private constant {_array("i32", rows.sources[-1])}
@sources = private constant {_array("i32", rows.sources.T)}
@weights = private constant {_array("float", weights)}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define void @shrink(ptr %first, ptr %second, ptr noalias %out, ptr noalias %scratch) nounwind {{
{_add_rows(columns, rows)}

{_make_small_rows(columns, rows)}

return:
  ret void
}}
"""


def _add_rows(columns: Shares, rows: Shares) -> str:
    """Sum each row's columns unless it equals the row above, and record where the sums are."""
    num_rows = int(rows.sources.max()) + 1
    return f"""  %sums = alloca [{num_rows} x ptr]
  br label %row

row:
  %y = phi i32 [0, %0], [%y.next, %row.end]
  %slot = phi ptr [%scratch, %0], [%slot.next, %row.end]
  %newest = phi ptr [%scratch, %0], [%newest.next, %row.end]
  %is_first = icmp eq i32 %y, 0
  %at = mul i32 %y, {WIDTH}
  %above = sub i32 %at, {WIDTH}
  %before = select i1 %is_first, i32 0, i32 %above
  %first.row = getelementptr i8, ptr %first, i32 %at
  %second.row = getelementptr i8, ptr %second, i32 %at
  %first.before = getelementptr i8, ptr %first, i32 %before
  %second.before = getelementptr i8, ptr %second, i32 %before
{_find_changes()}
  %is_other = xor i1 %is_same, true
  %is_new = or i1 %is_first, %is_other
  br i1 %is_new, label %add, label %row.end

add:
{_sum_columns(columns)}
  %slot.after = getelementptr float, ptr %slot, i64 {_stride(columns)}
  br label %row.end

row.end:
  %slot.next = phi ptr [%slot, %row], [%slot.after, %add]
  %newest.next = phi ptr [%newest, %row], [%slot, %add]
  %kept = getelementptr ptr, ptr %sums, i32 %y
  store ptr %newest.next, ptr %kept
  %y.next = add i32 %y, 1
  %is_last = icmp eq i32 %y.next, {num_rows}
  br i1 %is_last, label %small, label %row"""


def _make_small_rows(columns: Shares, rows: Shares) -> str:
    """Make each small row from the sums of the rows that it covers, or copy its twin."""
    (num_shares, height), width = rows.sources.shape, columns.sources.shape[1]
    return f"""small:
  %s = phi i32 [0, %row.end], [%s.next, %small.end]
  %s.at = mul i32 %s, {width}
  %to = getelementptr i8, ptr %out, i32 %s.at
  %twin.address = getelementptr i32, ptr @twins, i32 %s
  %twin = load i32, ptr %twin.address
  %has_twin = icmp sge i32 %twin, 0
  %start.address = getelementptr i32, ptr @starts, i32 %s
  %start = load i32, ptr %start.address
  %start.kept = getelementptr ptr, ptr %sums, i32 %start
  %start.sums = load ptr, ptr %start.kept
  %end.address = getelementptr i32, ptr @ends, i32 %s
  %end = load i32, ptr %end.address
  %end.kept = getelementptr ptr, ptr %sums, i32 %end
  %end.sums = load ptr, ptr %end.kept
  %is_equal = icmp eq ptr %start.sums, %end.sums
  %is_copy = and i1 %has_twin, %is_equal
  br i1 %is_copy, label %copy, label %share

copy:
  %twin.at = mul i32 %twin, {width}
  %from = getelementptr i8, ptr %out, i32 %twin.at
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 {width}, i1 false)
  br label %small.end

share:
{_sum_rows(width, num_shares)}

round:
{_round(width)}
  br label %small.end

small.end:
  %s.next = add i32 %s, 1
  %is_end = icmp eq i32 %s.next, {height}
  br i1 %is_end, label %return, label %small"""


def _find_twins(rows: Shares) -> NDArray[np.int64]:
    """Return for each small row the last earlier row with the same weights, or −1."""
    seen: dict[bytes, int] = {}
    twins = np.full(rows.weights.shape[1], -1)
    for y, weights in enumerate(rows.weights.T):
        key = weights.tobytes()
        twins[y] = seen.get(key, -1)
        seen[key] = y
    return twins


def _find_changes() -> str:
    """Test whether a row differs from the row above in either picture."""
    text, parts = "", []
    for begin in range(0, WIDTH, _PART):
        for name in ("first", "second"):
            text += f"""
  %{name}.address{begin} = getelementptr i8, ptr %{name}.row, i64 {begin}
  %{name}.part{begin} = load {_BITS}, ptr %{name}.address{begin}, align 1
  %{name}.above{begin} = getelementptr i8, ptr %{name}.before, i64 {begin}
  %{name}.old{begin} = load {_BITS}, ptr %{name}.above{begin}, align 1
  %{name}.change{begin} = xor {_BITS} %{name}.part{begin}, %{name}.old{begin}"""
            parts.append(f"%{name}.change{begin}")
    changes = parts[0]
    for part in parts[1:]:
        text += f"\n  {part}.or = or {_BITS} {changes}, {part}"
        changes = f"{part}.or"
    return f"{text}\n  %is_same = icmp eq {_BITS} {changes}, 0"


def _sum_columns(columns: Shares) -> str:
    """Sum the columns of one row of the two pictures' maximum into the slot."""
    text, width = "", columns.sources.shape[1]
    for begin in range(0, width, LANES):
        chosen = np.minimum(np.arange(begin, begin + LANES), width - 1)
        sources, weights = columns.sources[:, chosen], columns.weights[:, chosen]
        room = -(-int(sources.max() - sources.min() + 1) // LANES) * LANES
        low = min(int(sources.min()), WIDTH - room)
        levels, numbers = f"<{room} x i8>", f"<{room} x float>"
        text += f"""
  %p.address{begin} = getelementptr i8, ptr %first.row, i64 {low}
  %q.address{begin} = getelementptr i8, ptr %second.row, i64 {low}
  %p{begin} = load {levels}, ptr %p.address{begin}, align 1
  %q{begin} = load {levels}, ptr %q.address{begin}, align 1
  %is_more{begin} = icmp ugt {levels} %p{begin}, %q{begin}
  %most{begin} = select <{room} x i1> %is_more{begin}, {levels} %p{begin}, {levels} %q{begin}
  %window{begin} = uitofp {levels} %most{begin} to {numbers}"""
        total = ""
        for k in np.flatnonzero(weights.any(axis=1)):
            name, picked = f"{begin}.{k}", _listed("i32", sources[k] - low)
            text += f"""
  %lanes{name} = shufflevector {numbers} %window{begin}, {numbers} poison, {_INDICES} <{picked}>
  %share{name} = fmul {_VECTOR} %lanes{name}, <{_listed("float", map(_number, weights[k]))}>"""
            if total:
                text += f"\n  %total{name} = fadd {_VECTOR} {total}, %share{name}"
            total = f"%total{name}" if total else f"%share{name}"
        text += f"""
  %slot{begin} = getelementptr float, ptr %slot, i64 {begin}
  store {_VECTOR} {total}, ptr %slot{begin}, align 4"""
    return text


def _sum_rows(width: int, num_shares: int) -> str:
    """Make the loop that adds the `num_shares` shares of a small row."""
    text = """
  %share.k = phi i32 [0, %small], [%share.next, %share]"""
    for begin in range(0, width, LANES):
        text += f"""
  %sum{begin} = phi {_VECTOR} [zeroinitializer, %small], [%sum.next{begin}, %share]"""
    text += f"""
  %share.row = mul i32 %s, {num_shares}
  %share.at = add i32 %share.row, %share.k
  %source.address = getelementptr i32, ptr @sources, i32 %share.at
  %source = load i32, ptr %source.address
  %source.kept = getelementptr ptr, ptr %sums, i32 %source
  %source.sums = load ptr, ptr %source.kept
  %weight.address = getelementptr float, ptr @weights, i32 %share.at
  %weight = load float, ptr %weight.address
  %weight.one = insertelement {_VECTOR} poison, float %weight, i32 0
  %weight.all = shufflevector {_VECTOR} %weight.one, {_VECTOR} poison, {_INDICES} zeroinitializer"""
    for begin in range(0, width, LANES):
        text += f"""
  %row.at{begin} = getelementptr float, ptr %source.sums, i64 {begin}
  %row{begin} = load {_VECTOR}, ptr %row.at{begin}, align 4
  %row.share{begin} = fmul {_VECTOR} %row{begin}, %weight.all
  %sum.next{begin} = fadd {_VECTOR} %sum{begin}, %row.share{begin}"""
    return f"""{text}
  %share.next = add i32 %share.k, 1
  %is_summed = icmp eq i32 %share.next, {num_shares}
  br i1 %is_summed, label %round, label %share"""


def _round(width: int) -> str:
    """Round a small row to the nearest whole numbers; halves go to even.

    Adding `_ROUNDING` rounds, because a float32 of that size has no fraction bits; then the lowest
    byte is the number.
    """
    text = ""
    for begin in range(0, width, LANES):
        n = min(LANES, width - begin)
        bias, picked = _listed("float", [_number(_ROUNDING)] * LANES), _listed("i32", range(n))
        text += f"""
  %whole{begin} = fadd {_VECTOR} %sum.next{begin}, <{bias}>
  %bits{begin} = bitcast {_VECTOR} %whole{begin} to {_INDICES}
  %bytes{begin} = trunc {_INDICES} %bits{begin} to {_BYTES}
  %few{begin} = shufflevector {_BYTES} %bytes{begin}, {_BYTES} poison, <{n} x i32> <{picked}>
  %to{begin} = getelementptr i8, ptr %to, i64 {begin}
  store <{n} x i8> %few{begin}, ptr %to{begin}, align 1"""
    return text


def _stride(columns: Shares) -> int:
    """Return the number of floats in a row of sums, rounded up to whole vectors."""
    return -(-columns.sources.shape[1] // LANES) * LANES


def _listed(kind: str, values: Iterable[Any]) -> str:
    return ", ".join(f"{kind} {value}" for value in values)


def _array(kind: str, values: NDArray[Any]) -> str:
    return f"[{values.size} x {kind}] [{_listed(kind, values.ravel())}]"


def _number(value: np.float32) -> str:
    """Write a float in IR's form: the bits of the same number as a 64-bit float."""
    return f"0x{struct.pack('>d', float(value)).hex().upper()}"
