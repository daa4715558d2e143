"""Making pictures smaller: LLVM IR for one size, in which the columns' shares are constants.

Two pictures become one small one: their maximum, in levels such as grey, averaged over areas. First
every row of the large pictures is compared with the row above. If it differs, its words that do are
looked up in the tables of levels, and its columns are summed into a row of the scratch memory.
Otherwise the sums of the row above serve again. Then these rows are summed, each with its weight. A
small row whose large rows are all the same is a copy of its twin.

Sums are float32, and a pixel's addends come in the order of its shares. The columns that a vector of
eight pixels covers are picked by shuffles, so that no processor needs an instruction of its own.
"""

from __future__ import annotations

import ctypes
import hashlib
import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.machine import WIDTH
from pixelpong.atari.native import NativeCode

LANES = 8  # pixels of the small picture that are computed at once
_WORD = 8  # pixels of the large picture that are compared, and looked up, at once


class Shares(NamedTuple):
    """What the N pixels of a small line are made of: K pixels of a large one, and their weights.

    If a pixel has fewer shares, its last one is repeated with weight 0.
    """

    sources: NDArray[np.int64]  # [K, N], growing along both axes
    weights: NDArray[np.float32]  # [K, N]


class Shrinking:
    """The compiled function for one size; its address is valid as long as this object lives.

    Other compiled code can call it by its address, with six pointers::

        void shrink(const uint8 *first, const uint8 *second, const float *levels_of_first,
                    const float *levels_of_second, uint8 *out, float *scratch)

    The pictures have rows of 160 bytes; the two tables have 256 levels, from 0 to 255, by byte. No
    two may overlap what is written: `out`, and `scratch`, of `scratch_size` floats.
    """

    def __init__(
        self, columns: Shares, rows: Shares, twins: NDArray[np.int64], folder: Path | None = None
    ) -> None:
        """Take the function from the cache, or compile it; `twins` as in `make_ir`."""
        parts = (*columns, *rows, twins)
        form = b"".join(repr(each.shape).encode() + each.tobytes() for each in parts)
        key = hashlib.sha256(form + Path(__file__).read_bytes()).digest()
        self._code = NativeCode(key, lambda: make_ir(columns, rows, twins), folder)
        self.address = self._code.address("shrink")
        self.function: Callable[..., Any] = self._code.function(
            "shrink", None, *[ctypes.c_void_p] * 6
        )
        num_rows = int(rows.sources.max()) + 1
        self.scratch_size = WIDTH + num_rows * _stride(columns)


def make_ir(columns: Shares, rows: Shares, twins: NDArray[np.int64]) -> str:
    """Make the function `shrink` as IR.

    A row's twin, or −1, is an earlier row with the same weights.
    """
    num_shares, height = rows.sources.shape
    width, num_rows = columns.sources.shape[1], int(rows.sources.max()) + 1
    starts = np.where(twins < 0, 0, rows.sources[0, twins])
    return f"""
@twins = private constant {_array("i32", twins)}
@starts = private constant {_array("i32", starts)}
@ends = private constant {_array("i32", rows.sources[-1])}
@sources = private constant {_array("i32", rows.sources.T.ravel())}
@weights = private constant {_array("float", map(_number, rows.weights.T.ravel()))}
declare i32 @llvm.cttz.i32(i32, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define void @shrink(ptr noalias %first, ptr noalias %second, ptr %of_first, ptr %of_second,
                    ptr noalias %out, ptr noalias %scratch) nounwind {{
  %sums = alloca [{num_rows} x ptr]
  %slots = getelementptr float, ptr %scratch, i64 {WIDTH}
  br label %row

row:
  %y = phi i32 [0, %0], [%y.next, %row.end]
  %slot = phi ptr [%slots, %0], [%slot.next, %row.end]
  %newest = phi ptr [%slots, %0], [%newest.next, %row.end]
  %is_first = icmp eq i32 %y, 0
  %at = mul i32 %y, {WIDTH}
  %above = sub i32 %at, {WIDTH}
  %before = select i1 %is_first, i32 0, i32 %above
  %p = getelementptr i8, ptr %first, i32 %at
  %q = getelementptr i8, ptr %second, i32 %at
  %p.before = getelementptr i8, ptr %first, i32 %before
  %q.before = getelementptr i8, ptr %second, i32 %before
{_find_changes()}
  %mask = select i1 %is_first, i32 {(1 << WIDTH // _WORD) - 1}, i32 %changes
  %is_same = icmp eq i32 %mask, 0
  br i1 %is_same, label %row.end, label %word

word:
  %left = phi i32 [%mask, %row], [%rest, %word]
  %k = call i32 @llvm.cttz.i32(i32 %left, i1 true)
  %less = sub i32 %left, 1
  %rest = and i32 %left, %less
  %x = mul i32 %k, {_WORD}
{_look_up()}
  %is_done = icmp eq i32 %rest, 0
  br i1 %is_done, label %add, label %word

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
  br i1 %is_last, label %small, label %row

small:
  %s = phi i32 [0, %row.end], [%s.next, %small.end]
  %s.at = mul i32 %s, {width}
  %to = getelementptr i8, ptr %out, i32 %s.at
  %twin.place = getelementptr i32, ptr @twins, i32 %s
  %twin = load i32, ptr %twin.place
  %has_twin = icmp sge i32 %twin, 0
  %start.place = getelementptr i32, ptr @starts, i32 %s
  %start = load i32, ptr %start.place
  %start.kept = getelementptr ptr, ptr %sums, i32 %start
  %start.sums = load ptr, ptr %start.kept
  %end.place = getelementptr i32, ptr @ends, i32 %s
  %end = load i32, ptr %end.place
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
  br i1 %is_end, label %return, label %small

return:
  ret void
}}
"""


def _find_changes() -> str:
    """A bit for each word of a row that differs from the row above in one of the pictures."""
    text, changes = "", "0"
    for begin in range(0, WIDTH // _WORD, 8):
        n = min(8, WIDTH // _WORD - begin)
        kind, v = f"<{n} x i64>", f"{begin}"
        for name in ("p", "p.before", "q", "q.before"):
            text += f"""
  %{name}.a{v} = getelementptr i8, ptr %{name}, i64 {begin * _WORD}
  %{name}.{v} = load {kind}, ptr %{name}.a{v}, align 1"""
        text += f"""
  %p.xor{v} = xor {kind} %p.{v}, %p.before.{v}
  %q.xor{v} = xor {kind} %q.{v}, %q.before.{v}
  %or{v} = or {kind} %p.xor{v}, %q.xor{v}
  %differ{v} = icmp ne {kind} %or{v}, zeroinitializer
  %bits{v} = bitcast <{n} x i1> %differ{v} to i{n}
  %long{v} = zext i{n} %bits{v} to i32
  %moved{v} = shl i32 %long{v}, {begin}
  %all{v} = or i32 {changes}, %moved{v}"""
        changes = f"%all{v}"
    return f"{text}\n  %changes = or i32 {changes}, 0"


def _look_up() -> str:
    """The maximum of two words' levels, to the line."""
    text = f"""
  %line.at = getelementptr float, ptr %scratch, i32 %x
  %p.at = getelementptr i8, ptr %p, i32 %x
  %q.at = getelementptr i8, ptr %q, i32 %x"""
    for j in range(_WORD):
        for name, table in (("p", "of_first"), ("q", "of_second")):
            text += f"""
  %{name}.place{j} = getelementptr i8, ptr %{name}.at, i64 {j}
  %{name}.byte{j} = load i8, ptr %{name}.place{j}
  %{name}.index{j} = zext i8 %{name}.byte{j} to i64
  %{name}.entry{j} = getelementptr float, ptr %{table}, i64 %{name}.index{j}
  %{name}.level{j} = load float, ptr %{name}.entry{j}"""
        text += f"""
  %is_more{j} = fcmp ogt float %p.level{j}, %q.level{j}
  %level{j} = select i1 %is_more{j}, float %p.level{j}, float %q.level{j}
  %line{j} = getelementptr float, ptr %line.at, i64 {j}
  store float %level{j}, ptr %line{j}"""
    return text


def _sum_columns(columns: Shares) -> str:
    """The sums of a line's columns, to the slot."""
    text, width = "", columns.sources.shape[1]
    for begin in range(0, width, LANES):
        which = np.minimum(np.arange(begin, begin + LANES), width - 1)
        total = ""
        for k, (sources, weights) in enumerate(
            zip(columns.sources[:, which], columns.weights[:, which], strict=True)
        ):
            if not weights.any():
                continue
            span = int(sources.max() - sources.min()) + 1
            room = -(-span // LANES) * LANES
            low = min(int(sources.min()), WIDTH - room)
            name, kind = f"{begin}.{k}", f"<{room} x float>"
            picked = ", ".join(f"i32 {source - low}" for source in sources)
            text += f"""
  %from{name} = getelementptr float, ptr %scratch, i64 {low}
  %window{name} = load {kind}, ptr %from{name}, align 4
  %lanes{name} = shufflevector {kind} %window{name}, {kind} poison, <{LANES} x i32> <{picked}>
  %share{name} = fmul {_VECTOR} %lanes{name}, {_vector(weights)}"""
            if total:
                text += f"\n  %total{name} = fadd {_VECTOR} {total}, %share{name}"
            total = f"%total{name}" if total else f"%share{name}"
        text += f"""
  %slot{begin} = getelementptr float, ptr %slot, i64 {begin}
  store {_VECTOR} {total}, ptr %slot{begin}, align 4"""
    return text


def _sum_rows(width: int, num_shares: int) -> str:
    """The block in which a small row's shares are added: `num_shares` rounds."""
    text = f"""
  %share.k = phi i32 [0, %small], [%share.next, %share]"""
    for begin in range(0, width, LANES):
        text += f"""
  %sum{begin} = phi {_VECTOR} [zeroinitializer, %small], [%sum.next{begin}, %share]"""
    text += f"""
  %share.row = mul i32 %s, {num_shares}
  %share.at = add i32 %share.row, %share.k
  %source.place = getelementptr i32, ptr @sources, i32 %share.at
  %source = load i32, ptr %source.place
  %source.kept = getelementptr ptr, ptr %sums, i32 %source
  %source.sums = load ptr, ptr %source.kept
  %weight.place = getelementptr float, ptr @weights, i32 %share.at
  %weight = load float, ptr %weight.place
  %weight.one = insertelement {_VECTOR} poison, float %weight, i32 0
  %weight.all = shufflevector {_VECTOR} %weight.one, {_VECTOR} poison, <{LANES} x i32> zeroinitializer"""
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
    """A small row: the nearest whole numbers, of two the even one.

    A float32 from 2^23 on has no bits behind the point, so the addition rounds, and the lowest byte
    is the number.
    """
    text = ""
    for begin in range(0, width, LANES):
        n = min(LANES, width - begin)
        bias = ", ".join([f"float {_number(np.float32(1 << 23))}"] * LANES)
        picked = ", ".join(f"i32 {lane}" for lane in range(n))
        text += f"""
  %whole{begin} = fadd {_VECTOR} %sum.next{begin}, <{bias}>
  %bits.of{begin} = bitcast {_VECTOR} %whole{begin} to <{LANES} x i32>
  %bytes{begin} = trunc <{LANES} x i32> %bits.of{begin} to <{LANES} x i8>
  %few{begin} = shufflevector <{LANES} x i8> %bytes{begin}, <{LANES} x i8> poison, <{n} x i32> <{picked}>
  %to{begin} = getelementptr i8, ptr %to, i64 {begin}
  store <{n} x i8> %few{begin}, ptr %to{begin}, align 1"""
    return text


_VECTOR = f"<{LANES} x float>"


def _stride(columns: Shares) -> int:
    """The floats of a row of sums: whole vectors."""
    return -(-columns.sources.shape[1] // LANES) * LANES


def _array(kind: str, values: Iterable[Any]) -> str:
    listed = [f"{kind} {value}" for value in values]
    return f"[{len(listed)} x {kind}] [{', '.join(listed)}]"


def _vector(values: Iterable[np.float32]) -> str:
    return "<" + ", ".join(f"float {_number(value)}" for value in values) + ">"


def _number(value: np.float32) -> str:
    """A float as IR has it: the bits of the same number in 64 bits."""
    return f"0x{struct.pack('>d', float(value)).hex().upper()}"
