"""Why one seed gives the same parameters on several systems: what the kernels are compiled to.

Additions, products, quotients and roots are rounded as IEEE 754 says, in the order in which they
stand; so they are the same on every processor that has them. Nothing else computes parameters: exp
and log are made of them (`pixelpong.kernels.elementary`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest
from compiled_code import describe

SUPPORT = Path(__file__).parents[1] / "support"

EXACT = {"fabs.f64", "floor.f64", "is.fpclass.f64", "sqrt.f32", "sqrtf"}
"""Exact, or rounded correctly, everywhere."""


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path_factory.mktemp("no cache"))}
    command = [sys.executable, str(SUPPORT / "compiled_code.py")]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.slow
def test_kernels_round_after_every_operation_and_in_the_written_order(kernels):
    assert {each["kernel"] for each in kernels} >= {
        "pixelpong.kernels.playing.play_streams", "pixelpong.kernels.ppo.differentiate",
        "pixelpong.kernels.optimizer.adam_rows", "pixelpong.kernels.optimizer.rmsprop",
        "pixelpong.kernels.reinforce._add_gradient",
    }  # fmt: skip
    assert [each for each in kernels if each["free"] or each["fused"]] == []


@pytest.mark.slow
def test_kernels_call_nothing_that_systems_round_as_they_like(kernels):
    assert {name for each in kernels for name in each["calls"]} <= EXACT


@pytest.mark.parametrize(
    ("options", "is_free", "is_called"),
    [({}, False, ["cos.f64"]), ({"fastmath": True}, True, ["cos.f64"])],
)
def test_code_that_may_be_changed_is_found(options, is_free, is_called):
    import math

    @numba.njit(**options)
    def compute(x, y):
        return math.cos(x) * y + x

    compute(1.0, 2.0)
    (signature,) = compute.signatures
    found = describe(compute.inspect_llvm(signature), compute.inspect_asm(signature))
    assert (bool(found["free"]), found["calls"]) == (is_free, is_called)
    assert describe("", "\tvfmadd213sd\t%xmm1, %xmm0, %xmm2\n\tfmadd d0, d1, d2\n")["fused"]
