"""exp and log of doubles, from sums, products and quotients alone.

The C library's functions may differ from system to system in the last bit. These use only
operations that IEEE 754 defines to the last bit, so the same seed gives the same bits everywhere.
They are within one unit in the last place of the true value.

Source: Cody and Waite (1980), Software manual for the elementary functions, for splitting ln 2 so
that its multiples are exact; the rest is Taylor's series.
"""

from __future__ import annotations

from math import factorial

import numpy as np

from pixelpong.atari.steps.compiling import kernel_part

# ln 2 is the sum of these. The first has 42 bits, so its products with exponents are exact.
_LN2_HIGH, _LN2_LOW = 0.6931471805598903, 5.497923018708371e-14
_PER_LN2 = 1.4426950408889634

# The coefficients of eʳ from r² on, of even and odd degrees, the highest first.
_EVEN = tuple(1 / factorial(n) for n in range(12, 1, -2))
_ODD = tuple(1 / factorial(n) for n in range(13, 2, -2))

# The coefficients of 2 artanh(s) / s from s² on, the highest first.
_ARTANH = tuple(2 / n for n in range(21, 2, -2))

# A double is stored as its sign, its exponent plus a bias, and the bits of its fraction.
_BIAS, _FRACTION_BITS = 1023, 52
_ONE = _BIAS << _FRACTION_BITS  # the bits of 1.0
_SMALLEST = 2.0**-1022  # of full precision
_SQRT_2 = 1.4142135623730951


@kernel_part
def _power_of_two(k):  # type: ignore[no-untyped-def]
    """Return 2ᵏ for −1022 ≤ k ≤ 1023."""
    return np.int64((k + _BIAS) << _FRACTION_BITS).view(np.float64)


@kernel_part
def exp(x):  # type: ignore[no-untyped-def]
    """Return eˣ: with x = k ln 2 + r and |r| ≤ ½ ln 2, it is 2ᵏ eʳ."""
    if x != x:
        return x
    x = min(max(x, -746.0), 710.0)  # beyond, the result is 0 or infinity
    k = np.floor(x * _PER_LN2 + 0.5)
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    square, even, odd = r * r, 0.0, 0.0
    for n in range(len(_EVEN)):  # two short sums, because each addition waits for the last
        even = even * square + _EVEN[n]
        odd = odd * square + _ODD[n]
    power = 1.0 + (r + square * (even + r * odd))
    exponent = np.int64(k)
    half = exponent >> 1  # in two factors, because 2ᵏ itself may be too small or too large
    return power * _power_of_two(half) * _power_of_two(exponent - half)


@kernel_part
def log(x):  # type: ignore[no-untyped-def]
    """Return ln x: with x = 2ᵏ (1 + f) and 1 + f between √½ and √2, it is k ln 2 + ln(1 + f).

    ln(1 + f) = 2 artanh(s) for s = f / (2 + f). Because 2s = f − s f, it is also f − s (f − rest),
    in which f is exact.
    """
    if not 0.0 < x < np.inf:
        return x if x == np.inf else -np.inf if x == 0.0 else np.nan
    k = np.int64(0)
    if x < _SMALLEST:
        x, k = x * 2.0**54, np.int64(-54)
    bits = np.float64(x).view(np.int64)
    k += (bits >> _FRACTION_BITS) - _BIAS
    m = np.int64(_ONE + (bits & ((1 << _FRACTION_BITS) - 1))).view(np.float64)
    if m > _SQRT_2:
        m, k = m * 0.5, k + 1
    f = m - 1.0
    s = f / (2.0 + f)
    square, rest = s * s, 0.0
    for n in range(len(_ARTANH)):
        rest = (rest + _ARTANH[n]) * square
    return k * _LN2_HIGH + (f - (s * (f - rest) - k * _LN2_LOW))
