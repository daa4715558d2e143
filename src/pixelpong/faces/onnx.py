"""The policy as an ONNX file, which other programs run without pixelpong.

``pixelpong export RUN --onnx FILE``. One input, ``observation``: [N, inputs] of the type of the
parameters, dense. The outputs are ``probabilities`` [N, actions], in the order of the metadata's
``action_codes``, and with the gated network ``value`` [N]. The metadata says what was played, how
an observation is made, and whose parameters these are.

A frame goes through the same graph for no network: the gated one's pairs of cells are some
million products a frame where they are written as fixed operators, and the classic one alone
would have an input of its own. The recipe in the metadata takes a few lines of any language.

Covered: both graphs, the file, its check against `pixelpong.learn` on real play.
Not covered: making an observation (`pixelpong.env.preprocess`, `pixelpong.env.features`).
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pixelpong
from pixelpong.agent.file import Agent
from pixelpong.env import features
from pixelpong.env.preprocess import difference, make_is_active
from pixelpong.errors import ConfigError, RunError, expected
from pixelpong.items import ACTIONS, STAY, Params
from pixelpong.learn import gated, network
from pixelpong.run.checkpoints import fingerprint
from pixelpong.run.files import write_whole

OPSET = 17
"""Of the standard operators; ONNX 1.12 (2022) and all later ones know it."""

IR_VERSION = 8
"""Of the file's layout; from the same year."""

CHECKED_OBSERVATIONS = 1000
"""Of real play, on which the graph has to give what NumPy gives."""

TOLERANCE = 1e-3
"""Largest difference of a probability, or of a value per 1; it is some 1e-6 in float32, since the
sums are taken in another order. More means that the parameters are far out of all range."""

SIZE_LIMIT = (1 << 31) - (1 << 20)
"""Bytes of parameters; an ONNX file has 2 GiB at most."""

_CHECKED_AT_ONCE = 125

_RECIPE = {
    "reinforce": (
        "Of each frame [210, 160, 3] take rows 35 to 194 and all columns, every second of both, "
        "the red value alone: [80, 80]. Set 0 where it is 0, 109 or 144, else 1. The observation "
        "is this picture less that of the step before, row by row: [6400] of -1, 0 and 1; at the "
        "first step of an episode all 0. Defined in pixelpong.env.preprocess."
    ),
    "ppo": (
        "Of each frame [210, 160, 3] take rows 35 to 194 and all columns, every second of both, "
        "the red value alone: [80, 80]. Set 0 where it is 0, 109 or 144, else 1. The observation "
        "is pixelpong.env.features.observe_features(picture of the step before, this picture, "
        "place in action_codes of the action before): [inputs] of 0 and 1; at the first step of "
        "an episode the picture before is all 0 and the action before is 0."
    ),
}

Report = dict[str, Any]


def write_onnx(agent: Agent, path: Path) -> Report:
    """Write an agent's network, whole or not at all, after checking it on play of its own.

    Args:
        agent: whose.
        path: the file; one that is there is replaced.

    Returns:
        ``file``, ``bytes``, ``opset``, ``inputs``, ``outputs``, ``update``, ``params_sha256``,
        ``observations`` on which the graph was checked and ``largest_difference`` found there.

    Raises:
        ConfigError: onnx is not installed.
        RunError: the network is too large for the format, the graph gives something else than
            NumPy, or the file cannot be written.
        EmulatorError: there is nothing to play the check on.
    """
    _require_onnx()
    model = make_model(agent)
    x = collect_observations(agent, CHECKED_OBSERVATIONS)
    largest = _check(model, agent, x)
    content = model.SerializeToString(deterministic=True)
    write_whole(path, content)
    return {
        "file": str(path),
        "bytes": len(content),
        "opset": OPSET,
        "inputs": x.shape[1],
        "outputs": [each.name for each in model.graph.output],
        "update": agent.about["update"],
        "params_sha256": _hash_of(agent),
        "observations": len(x),
        "largest_difference": largest,
    }


def describe_onnx(report: Report) -> str:
    """What was written, in a few lines."""
    return (
        f"{report['file']}: {report['bytes'] / 1e6:.1f} MB, ONNX opset {report['opset']}, "
        f"agent of update {report['update']}\n"
        f"observation [N, {report['inputs']}] → {', '.join(report['outputs'])}\n"
        f"checked on {report['observations']:,} observations of its own play: largest difference "
        f"from NumPy {report['largest_difference']:.1g}\n"
        f"params {report['params_sha256']}"
    )


def make_model(agent: Agent) -> Any:
    """The graph, an ``onnx.ModelProto``, with its metadata; checked for being well formed.

    Raises:
        ConfigError: onnx is not installed.
        RunError: the network is too large for the format.
    """
    _require_onnx()
    import onnx

    size = sum(w.nbytes for w in agent.params.values())
    if size > SIZE_LIMIT:
        got = f"{size / 1e9:.1f} GB"
        what = f"a network of at most {SIZE_LIMIT / 1e9:.1f} GB for an ONNX file"
        raise RunError(expected(what, got, "train one with fewer --hidden"))
    make = _make_gated if agent.algorithm == "ppo" else _make_classic
    model = onnx.helper.make_model(
        make(agent.params),
        producer_name="pixelpong",
        producer_version=pixelpong.__version__,
        ir_version=IR_VERSION,
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
    )
    onnx.helper.set_model_props(model, _describe_agent(agent))
    onnx.checker.check_model(model, full_check=True)
    return model


def define(agent: Agent, x: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """What the graph has to give, by the definition in NumPy.

    Args:
        agent: whose network.
        x: [N, inputs].

    Returns:
        Output → array, as the graph names them.
    """
    if agent.algorithm != "ppo":
        p, _ = network.forward(agent.params, x)
        return {"probabilities": np.stack([p, 1 - p], axis=1)}
    y, _ = gated.forward(agent.params, x)
    logits = y[:, : len(ACTIONS)]
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return {"probabilities": e / e.sum(axis=1, keepdims=True), "value": y[:, -1]}


def collect_observations(agent: Agent, number: int) -> NDArray[Any]:
    """The first so many observations of the agent's own sampled play: [number, inputs].

    Raises:
        EmulatorError: the emulator or its game is not installed.
    """
    stream = _observe_play(agent)
    x = np.empty((number, len(agent.params["W1"])), agent.params["W1"].dtype)
    for row in x:
        row[:] = next(stream)
    return x


def _observe_play(agent: Agent) -> Iterator[NDArray[Any]]:
    is_active, is_gated = make_is_active(), agent.algorithm == "ppo"
    index = 0
    while True:
        replay = agent.play_episode(seed=0, index=index, is_greedy=False)
        before, last = None, STAY
        for moment in replay.watch():
            now = is_active[moment.screen[35:195:2, ::2]].astype(np.float32)
            if moment.action is None:
                break
            if is_gated:
                empty = np.zeros_like(now) if before is None else before
                yield features.observe_features(empty, now, ACTIONS.index(last))
            else:
                yield difference(before, now)
            before, last = now, moment.action
        index += 1


def _make_classic(params: Params) -> Any:
    from onnx import helper, numpy_helper

    W1, W2 = params["W1"], params["W2"]
    kind = helper.np_dtype_to_tensor_dtype(W1.dtype)
    nodes = [
        helper.make_node("MatMul", ["observation", "W1"], ["a"]),
        helper.make_node("Relu", ["a"], ["h"]),
        helper.make_node("MatMul", ["h", "W2"], ["z"]),
        helper.make_node("Neg", ["z"], ["minus_z"]),
        helper.make_node("Sigmoid", ["z"], ["up"]),
        helper.make_node("Sigmoid", ["minus_z"], ["down"]),
        helper.make_node("Concat", ["up", "down"], ["probabilities"], axis=1),
    ]
    return helper.make_graph(
        nodes,
        "classic",
        [helper.make_tensor_value_info("observation", kind, ["N", len(W1)])],
        [helper.make_tensor_value_info("probabilities", kind, ["N", 2])],
        [numpy_helper.from_array(W1, "W1"), numpy_helper.from_array(W2[:, None], "W2")],
    )


def _make_gated(params: Params) -> Any:
    from onnx import helper, numpy_helper

    W1, W2, b2 = params["W1"], params["W2"], params["b2"]
    kind = helper.np_dtype_to_tensor_dtype(W1.dtype)
    hidden = W1.shape[1]
    constants = {
        "W1": W1.reshape(len(W1), -1),
        "W2": W2.reshape(len(W2), -1),
        "b2": b2,
        "units": np.array([-1, hidden, 2]),
        "flat": np.array([-1, 2 * hidden]),
        "halves": np.array([1, 1]),
        "parts": np.array([len(ACTIONS), 1]),
        "last": np.array([1]),
    }
    nodes = [
        helper.make_node("MatMul", ["observation", "W1"], ["sums"]),
        helper.make_node("Reshape", ["sums", "units"], ["z"]),
        helper.make_node("Split", ["z", "halves"], ["a", "b"], axis=2),
        helper.make_node("Relu", ["a"], ["open"]),
        helper.make_node("Mul", ["open", "b"], ["gated"]),
        helper.make_node("Concat", ["open", "gated"], ["pairs"], axis=2),
        helper.make_node("Reshape", ["pairs", "flat"], ["h"]),
        helper.make_node("Gemm", ["h", "W2", "b2"], ["y"], transB=1),
        helper.make_node("Split", ["y", "parts"], ["logits", "values"], axis=1),
        helper.make_node("Softmax", ["logits"], ["probabilities"], axis=1),
        helper.make_node("Squeeze", ["values", "last"], ["value"]),
    ]
    return helper.make_graph(
        nodes,
        "gated",
        [helper.make_tensor_value_info("observation", kind, ["N", len(W1)])],
        [
            helper.make_tensor_value_info("probabilities", kind, ["N", len(ACTIONS)]),
            helper.make_tensor_value_info("value", kind, ["N"]),
        ],
        [numpy_helper.from_array(np.ascontiguousarray(w), name) for name, w in constants.items()],
    )


def _describe_agent(agent: Agent) -> dict[str, str]:
    protocol, about = agent.protocol, agent.about
    facts = {
        "environment": protocol.name,
        "frame_skips": list(protocol.frame_skips),
        "sticky": protocol.sticky,
        "action_codes": list(agent.make_network().actions),
        "algorithm": agent.algorithm,
        "update": about["update"],
        "params_sha256": _hash_of(agent),
        "is_rounded": bool(about.get("is_rounded")),
    }
    return {name: json.dumps(fact) for name, fact in facts.items()} | {
        "observation": _RECIPE[agent.algorithm],
        "action_meaning": "0 stay, 2 up (RIGHT), 3 down (LEFT), as Gymnasium numbers them",
    }


def _hash_of(agent: Agent) -> str:
    """Of the parameters as they were trained, where that is known."""
    return str(agent.about.get("params_sha256") or fingerprint(agent.params))


def _check(model: Any, agent: Agent, x: NDArray[Any]) -> float:
    """The largest difference between the graph and the definition.

    Raises:
        RunError: it is too large.
    """
    from onnx.reference import ReferenceEvaluator

    evaluator = ReferenceEvaluator(model)
    names = [each.name for each in model.graph.output]
    largest, scale = 0.0, 1.0
    for start in range(0, len(x), _CHECKED_AT_ONCE):
        some = x[start : start + _CHECKED_AT_ONCE]
        wanted = define(agent, some)
        for name, got in zip(names, evaluator.run(None, {"observation": some}), strict=True):
            assert got.shape == wanted[name].shape, (name, got.shape)
            largest = max(largest, float(np.abs(got - wanted[name]).max()))
            scale = max(scale, float(np.abs(wanted[name]).max()))
    if not largest <= TOLERANCE * scale:
        what = f"a graph within {TOLERANCE:g} of NumPy"
        advice = "use an earlier checkpoint, or dtype float64"
        raise RunError(expected(what, f"a difference of {largest:g}", advice))
    return largest


def _require_onnx() -> None:
    if importlib.util.find_spec("onnx") is None:
        advice = "install it with pip install 'pixelpong[onnx]'"
        raise ConfigError(expected("the package onnx for an ONNX file", "none", advice))
