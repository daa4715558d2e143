"""The network as an ONNX file, which other programs can run without pixelpong.

``pixelpong export RUN --onnx FILE``. The input is ``observation``, [N, inputs], dense, of the
parameters' type. The outputs are ``probabilities`` [N, actions], in the order of the metadata's
``action_codes``, and for the gated network ``value`` [N]. The metadata describes the game, how to
make an observation, and the origin of the parameters.

Not covered: making an observation (`pixelpong.env.preprocess`, `pixelpong.env.features`).
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np

import pixelpong
from pixelpong.agent.file import Agent
from pixelpong.errors import ConfigError, RunError, expected
from pixelpong.items import ACTIONS
from pixelpong.run.checkpoints import fingerprint
from pixelpong.run.files import write_whole

OPSET = 17
"""Version of the standard operators; ONNX 1.12 (2022) and all later ones know it."""

IR_VERSION = 8
"""Version of the file's layout, from the same year."""

SIZE_LIMIT = (1 << 31) - (1 << 20)
"""Bytes of parameters; an ONNX file has 2 GiB at most."""

_CLASSIC = """
classic ({type}[N, {inputs}] observation) => ({type}[N, 2] probabilities) {{
    a = MatMul (observation, W1)
    h = Relu (a)
    z = MatMul (h, W2)
    minus_z = Neg (z)
    up = Sigmoid (z)
    down = Sigmoid (minus_z)
    probabilities = Concat <axis = 1> (up, down)
}}
"""

_GATED = """
gated ({type}[N, {inputs}] observation) => ({type}[N, 3] probabilities, {type}[N] value) {{
    sums = MatMul (observation, W1)
    z = Reshape (sums, units)
    a, b = Split <axis = 2> (z, halves)
    open = Relu (a)
    gated = Mul (open, b)
    pairs = Concat <axis = 2> (open, gated)
    h = Reshape (pairs, flat)
    y = Gemm <transB = 1> (h, W2, b2)
    logits, values = Split <axis = 1> (y, parts)
    probabilities = Softmax <axis = 1> (logits)
    value = Squeeze (values, last)
}}
"""

_FIELD = (
    "Of each frame [210, 160, 3] take rows 35 to 194 and all columns, every second of both, the "
    "red value alone: [80, 80]. Set 0 where it is 0, 109 or 144, else 1. The observation is "
)
RECIPES = {
    "reinforce": _FIELD + "this picture less that of the step before, row by row: [6400] of -1, 0 "
    "and 1; at the first step of an episode all 0. Defined in pixelpong.env.preprocess.",
    "ppo": _FIELD + "pixelpong.env.features.observe_features(picture of the step before, this "
    "picture, place in action_codes of the action before): [inputs] of 0 and 1; at the first step "
    "of an episode the picture before is all 0 and the action before is 0.",
}
"""How to make an observation, by algorithm; part of the metadata."""

Report = dict[str, Any]


def write_onnx(agent: Agent, path: Path) -> Report:
    """Write an agent's network, completely or not at all.

    Args:
        agent: the agent.
        path: the file; an existing one is replaced.

    Returns:
        ``file``, ``bytes``, ``opset``, ``inputs``, ``outputs``, ``update``, ``params_sha256``.

    Raises:
        ConfigError: onnx is not installed.
        RunError: the network is too large for the format, or the file cannot be written.
    """
    if importlib.util.find_spec("onnx") is None:
        advice = "install it with pip install 'pixelpong[onnx]'"
        raise ConfigError(expected("the package onnx for an ONNX file", "none", advice))
    size = sum(w.nbytes for w in agent.params.values())
    if size > SIZE_LIMIT:
        what = f"a network of at most {SIZE_LIMIT / 1e9:.1f} GB for an ONNX file"
        advice = "train one with fewer --hidden"
        raise RunError(expected(what, f"{size / 1e9:.1f} GB", advice))
    model = _make_model(agent)
    content = model.SerializeToString(deterministic=True)
    write_whole(path, content)
    return {
        "file": str(path),
        "bytes": len(content),
        "opset": OPSET,
        "inputs": len(agent.params["W1"]),
        "outputs": [each.name for each in model.graph.output],
        "update": agent.about["update"],
        "params_sha256": _hash_of(agent),
    }


def describe_onnx(report: Report) -> str:
    """The report of `write_onnx` in a few lines."""
    return (
        f"{report['file']}: {report['bytes'] / 1e6:.1f} MB, ONNX opset {report['opset']}, "
        f"agent of update {report['update']}\n"
        f"observation [N, {report['inputs']}] → {', '.join(report['outputs'])}\n"
        f"params {report['params_sha256']}"
    )


def _make_model(agent: Agent) -> Any:
    """The graph with its metadata, checked for being well formed."""
    import onnx

    W1, W2 = agent.params["W1"], agent.params["W2"]
    if agent.algorithm == "ppo":
        text, hidden = _GATED, W1.shape[1]
        constants = {
            "W1": W1.reshape(len(W1), -1), "W2": W2.reshape(len(W2), -1), "b2": agent.params["b2"],
            "units": np.array([-1, hidden, 2]), "flat": np.array([-1, 2 * hidden]),
            "halves": np.array([1, 1]), "parts": np.array([len(ACTIONS), 1]), "last": np.array([1]),
        }  # fmt: skip
    else:
        text, constants = _CLASSIC, {"W1": W1, "W2": W2[:, None]}
    kind = {"float32": "float", "float64": "double"}[str(W1.dtype)]
    graph = onnx.parser.parse_graph(text.format(type=kind, inputs=len(W1)))
    graph.initializer.extend(
        onnx.numpy_helper.from_array(np.ascontiguousarray(w), name) for name, w in constants.items()
    )
    model = onnx.helper.make_model(
        graph,
        producer_name="pixelpong",
        producer_version=pixelpong.__version__,
        ir_version=IR_VERSION,
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
    )
    onnx.helper.set_model_props(model, _describe_agent(agent))
    onnx.checker.check_model(model, full_check=True)
    return model


def _describe_agent(agent: Agent) -> dict[str, str]:
    facts = {
        "environment": agent.protocol.name,
        "frame_skips": list(agent.protocol.frame_skips),
        "sticky": agent.protocol.sticky,
        "action_codes": list(agent.make_network().actions),
        "algorithm": agent.algorithm,
        "update": agent.about["update"],
        "params_sha256": _hash_of(agent),
        "is_rounded": bool(agent.about.get("is_rounded")),
    }
    return {name: json.dumps(fact) for name, fact in facts.items()} | {
        "observation": RECIPES[agent.algorithm],
        "action_meaning": "0 stay, 2 up (RIGHT), 3 down (LEFT), as Gymnasium numbers them",
    }


def _hash_of(agent: Agent) -> str:
    """The hash of the trained parameters, if it is known."""
    return str(agent.about.get("params_sha256") or fingerprint(agent.params))
