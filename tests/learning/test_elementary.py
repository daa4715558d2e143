"""exp and log of the kernels: near the true values, and the same bits everywhere."""

from __future__ import annotations

import hashlib
import math
from decimal import Decimal, localcontext

import numba
import numpy as np
import pytest

from pixelpong.kernels import elementary
from pixelpong.learn.optimizer import ADAM_DECAYS, adam_scales

INF, NAN = math.inf, math.nan


def compiled(function):
    """Compile a function of a number as a function of an array."""

    @numba.njit(error_model="numpy")
    def compute(x):
        out = np.empty_like(x)
        for i in range(len(x)):
            out[i] = function(x[i])
        return out

    return compute


exp_all, log_all = compiled(elementary.exp), compiled(elementary.log)
WRITTEN = {exp_all: elementary.exp, log_all: elementary.log}


def spread(seed, count):
    """Numbers in [0, 1) from integers alone, the same with every version of every library."""
    return np.array([(seed + n * 2654435761) % 2**32 / 2**32 for n in range(count)])


DRAWN = spread(1, 5000)


def count_units(found, true):
    """How far it is from the true value, in units of the last place of the true value."""
    return float(abs(Decimal(found) - true) / Decimal(math.ulp(float(true))))


@pytest.mark.parametrize(
    ("compute", "define", "numbers"),
    [
        (exp_all, Decimal.exp, DRAWN - 0.5),
        (exp_all, Decimal.exp, DRAWN * 60 - 50),
        (exp_all, Decimal.exp, DRAWN * 1400 - 700),
        (log_all, Decimal.ln, DRAWN[1:]),
        (log_all, Decimal.ln, DRAWN * 17 + 1),
        (log_all, Decimal.ln, 1 + (DRAWN - 0.5) / 1000),
        (log_all, Decimal.ln, 2.0 ** np.floor(DRAWN * 2000 - 1000) * (1 + DRAWN)),
    ],
)
def test_values_are_within_one_unit_in_the_last_place(compute, define, numbers):
    with localcontext() as context:
        context.prec = 40
        pairs = zip(compute(numbers).tolist(), numbers.tolist(), strict=True)
        units = [count_units(found, define(Decimal(number))) for found, number in pairs]
    assert 0.5 <= max(units) < 1


@pytest.mark.parametrize(
    ("compute", "number", "value"),
    [
        (exp_all, 0.0, 1.0), (exp_all, -0.0, 1.0), (exp_all, INF, INF), (exp_all, -INF, 0.0),
        (exp_all, 1e300, INF), (exp_all, -1e300, 0.0), (exp_all, NAN, NAN),
        (exp_all, 709.79, INF), (exp_all, 709.78, 1.7928227943945155e308),
        (exp_all, -745.0, 5e-324), (exp_all, -745.2, 0.0), (exp_all, -720.3, 1.5055136071e-313),
        (log_all, 1.0, 0.0), (log_all, 0.0, -INF), (log_all, -0.0, -INF), (log_all, INF, INF),
        (log_all, NAN, NAN), (log_all, -1.0, NAN), (log_all, -INF, NAN),
        (log_all, 5e-324, -744.4400719213812), (log_all, 1e-310, -713.8013788281542),
        (log_all, 2.0**-1022, -708.3964185322641), (log_all, 2.0**1023, 709.0895657128241),
    ],
)  # fmt: skip
def test_the_ends(compute, number, value):
    with np.errstate(over="ignore"):
        written = WRITTEN[compute](number)
    np.testing.assert_array_equal([*compute(np.array([number])), written], [value, value])


def test_the_bits_are_the_recorded_ones():
    """Recorded on x86-64, and the same on every processor, system and version of a library."""
    values = [exp_all(DRAWN * 60 - 50), log_all(DRAWN * 17 + 1), log_all(DRAWN[1:])]
    values += [np.array([adam_scales(1.0, n + 1) for n in range(3000)]).ravel()]
    digest = hashlib.sha256(np.concatenate(values).tobytes()).hexdigest()
    assert digest == "b0d5e9ada743041dd44acd3d333578db42bedf2396b903422f19d33d9d29686c"


def test_what_is_compiled_computes_what_is_written():
    for compute, numbers in ((exp_all, DRAWN[:500] * 60 - 50), (log_all, DRAWN[1:500] * 17)):
        written = [WRITTEN[compute](number) for number in numbers.tolist()]
        np.testing.assert_array_equal(compute(numbers), written)


def test_adams_powers_are_near_the_true_ones():
    for step in (1, 2, 3, 10, 1000, 100_000):
        true = [1 / (1 - float(Decimal(decay) ** step)) for decay in ADAM_DECAYS]
        np.testing.assert_allclose(adam_scales(1.0, step), true, rtol=1e-12)
    assert adam_scales(0.5, 10**9) == (0.5, 1.0)
