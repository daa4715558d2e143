"""What the kernels of short trainings were compiled to, as JSON; in a process without a cache.

NUMBA_CACHE_DIR=EMPTY python tests/support/compiled_code.py    # a line for each kernel
"""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path

from toys import TOY, toy_config

import pixelpong
from pixelpong.atari.steps import compiling

# Python's, numba's and LLVM's own functions, which compute nothing with fractions.
RUNTIME = re.compile(r"Py\w*_\w+|NRT_\w+|numba_\w+")
# LLVM's functions of fractions, by name and type, such as ``exp.f64``; others are of integers.
INTRINSIC = re.compile(r"llvm\.([a-z0-9.]+)\.(?:v\d+)?(f16|f32|f64)(?:\.\w+)*")
MOVES = ("masked.load", "masked.store", "masked.gather", "masked.scatter")
# What lets a compiler change a sum, or join a product and a sum without rounding between them.
FREEDOM = re.compile(r"\b(?:fast|contract|reassoc|afn|arcp)\b")
FUSED = re.compile(r"\b(?:v?fn?m(?:add|sub)(?:sub|add)?\d*[ps]?[sd]?|fml[as])\b")


def describe(ir: str, assembly: str) -> dict[str, list[str]]:
    """What it calls to compute with fractions, and the instructions that round less than asked."""
    called = set()
    for name in re.findall(r'^declare [^@\n]*@"?([\w.$]+)"?\(', ir, re.MULTILINE):
        if found := INTRINSIC.fullmatch(name):
            if found[1] not in MOVES:
                called.add(f"{found[1]}.{found[2]}")
        elif not name.startswith("llvm.") and not RUNTIME.fullmatch(name):
            called.add(name)
    lines = [line for line in ir.splitlines() if re.match(r"\s+(?:%\S+ = )?(?:tail )?\w", line)]
    free = [line.strip() for line in lines if FREEDOM.search(line.split("@")[0].split("!")[0])]
    return {"calls": sorted(called), "free": free, "fused": FUSED.findall(assembly)}


def main() -> None:
    """Train a little with each kind of network and sight, and print what was compiled for it."""
    with tempfile.TemporaryDirectory() as folder:
        for preset in TOY:
            pixelpong.train(toy_config(preset, updates=2), run=Path(folder) / preset, quiet=True)
    for kernel in compiling._kernels:
        for signature in kernel.signatures:
            found = describe(kernel.inspect_llvm(signature), kernel.inspect_asm(signature))
            name = f"{kernel.py_func.__module__}.{kernel.py_func.__name__}"
            print(json.dumps({"kernel": name, **found}))


if __name__ == "__main__":
    main()
