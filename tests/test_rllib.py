"""The example with RLlib, where that is installed: it wants an older Gymnasium than the others."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import pixelpong

EXAMPLE = Path(__file__).parent.parent / "examples" / "our_agent_in_rllib.py"


@pytest.mark.slow
def test_our_agent_reaches_in_rllib_what_it_reaches_in_our_evaluation():
    for library in ("tree", "torch", "ray.tune"):
        reason = "no RLlib: pip install 'ray[rllib]' torch"
        pytest.importorskip(library, reason=reason, exc_type=ImportError)
    words = ["--environment", "Catch-v0", "--episodes", "4", "--seed", "3"]
    done = subprocess.run([sys.executable, EXAMPLE, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    ours = pixelpong.evaluate("package", 4, seed=3, environment="Catch-v0", engine="serial")
    shown = re.search(r"returns \[(.*)\], mean", done.stdout)[1]
    assert [float(each) for each in shown.split(", ")] == list(ours.returns)
    assert len(set(ours.returns)) > 1
