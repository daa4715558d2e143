"""A trained network that sees one screen after another, acts, and explains itself.

It decides with the kernels of the rollouts, to the same bits. The rest of an explanation (all
probabilities, which pixels moved the decision) is computed from the parameters on request.
Everything that shows an agent or plays with it uses this; training has its own, faster players.

Saliency is exact for these networks. With fixed gates, the logit of a classic decision is a sum
over pixels. That of a gated one is a sum over pixels and over products of two sums of pixels; each
factor of a product gets half of it (Shapley's division):

    classic  c_i = x_i Σ_h [h > 0] W1_ih W2_h
    gated    c_i = Σ_h [a_h > 0] (A_ih (u_h + v_h b_h / 2) + B_ih v_h a_h / 2)

with A, B the two columns of W1, and u, v the difference of W2's rows of UP and DOWN. The c_i and
the bias add up to the difference of the logits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from pixelpong.env import features
from pixelpong.env.preprocess import pack_field
from pixelpong.items import ACTIONS, DOWN, NUM_PIXELS, UP, Params
from pixelpong.learn import gated
from pixelpong.learn.network import sigmoid
from pixelpong.play.deciders import GREEDY, NETS, Decider

OFF, STAYED, APPEARED, VANISHED = range(4)  # the classic network does not see pixels that stayed


@dataclass(frozen=True)
class Explanation:
    """What the network saw at one step, and what it concluded."""

    field: NDArray[np.uint8]  # [80, 80], each pixel OFF, STAYED, APPEARED or VANISHED
    probabilities: NDArray[np.float64]  # [A], of the network's `actions`
    value: float | None  # the expected outcome of the point, −1 … 1; None if it has no value
    logit: float  # difference of the logits of UP and DOWN
    saliency: NDArray[np.float64]  # [80, 80], what each pixel adds to `logit`
    rest: float  # what the biases add to `logit`, and the last action if that is an input


class Network:
    """A network and what it remembers of the episode: the frame before, the last action.

    A screen has the palette indices [210, 160] uint8 and is not changed; actions are Gymnasium's.
    """

    actions: ClassVar[tuple[int, ...]]  # those it chooses from

    def __init__(self, params: Params, decider: Decider) -> None:
        """Start an episode; use `make_network` instead."""
        self._params, self._decider = params, decider
        self.reset = decider.start_episode

    def act(self, screen: NDArray[np.uint8], draw: float = GREEDY) -> int:
        """See the next screen and decide; `draw` in [0, 1) chooses, `GREEDY` the most probable."""
        return self._decider.decide(pack_field(screen), draw)

    def follow(self, screen: NDArray[np.uint8], action: int | None) -> None:
        """See the next screen of a replay, whose action is known; None if the episode is over."""
        self.act(screen)
        if action is not None:
            self._decider.stream["sides"]["last_action"] = ACTIONS.index(action)

    def inputs(self) -> NDArray[np.intp]:
        """The rows of the first layer that the last `act` added up: [K]."""
        return self._decider.last_inputs().astype(np.intp) % len(self._params["W1"])

    def answer(self) -> tuple[NDArray[np.float64], float | None]:
        """Probabilities and value of the last `act`, as in an `Explanation`."""
        found = self.explain()
        return found.probabilities, found.value

    def explain(self) -> Explanation:
        """What the network saw at the last `act`, with a share of the logit for each pixel."""
        raise NotImplementedError


def make_network(params: Params, algorithm: str) -> Network:
    """The network with these parameters, trained with ``"reinforce"`` or ``"ppo"``."""
    _require_fit(params, algorithm)
    kind = GatedNetwork if algorithm == "ppo" else PlainNetwork
    return kind(params, NETS[algorithm](params))


def shapes_of(algorithm: str, hidden: int) -> dict[str, tuple[int, ...]]:
    """The shape of each parameter."""
    if algorithm == "ppo":
        first, second = (features.NUM_INPUTS, hidden, 2), (gated.NUM_OUTPUTS, hidden, 2)
        return {"W1": first, "W2": second, "b2": second[:1]}
    return {"W1": (NUM_PIXELS, hidden), "W2": (hidden,)}


def _require_fit(params: Params, algorithm: str) -> None:
    """Refuse parameters of other shapes, on which the kernels rely, and numbers that are none."""
    shapes, types = (
        {name: w.shape for name, w in params.items()},
        {w.dtype for w in params.values()},
    )
    hidden = shapes.get("W2", (0, 0))[algorithm == "ppo"]
    if shapes != shapes_of(algorithm, hidden) or types not in ({np.dtype("f4")}, {np.dtype("f8")}):
        got = f"{shapes} of {', '.join(sorted(map(str, types)))}"
        raise ValueError(f"parameters that are not of the algorithm {algorithm}: {got}")
    for name, w in params.items():
        if not np.isfinite(w).all():
            raise ValueError(f"numbers in {name} that are not finite")


class PlainNetwork(Network):
    """The classic network."""

    actions = (UP, DOWN)

    def explain(self) -> Explanation:
        """What the network saw at the last `act`, with a share of the logit for each pixel."""
        pixels, is_gone = self.inputs(), self._decider.last_inputs() >= NUM_PIXELS
        field, saliency = np.zeros(NUM_PIXELS, np.uint8), np.zeros(NUM_PIXELS)
        field[pixels] = np.where(is_gone, VANISHED, APPEARED)
        rows = self._params["W1"][pixels].astype(np.float64) * np.where(is_gone, -1, 1)[:, None]
        is_on = rows.sum(axis=0) > 0
        shares = rows @ np.where(is_on, self._params["W2"], 0)
        saliency[pixels] = shares
        logit = float(shares.sum())
        p = float(sigmoid(np.array(logit)))
        return Explanation(
            field.reshape(80, 80),
            np.array([p, 1 - p]),
            value=None,
            logit=logit,
            saliency=saliency.reshape(80, 80),
            rest=0.0,
        )


class GatedNetwork(Network):
    """The fast network."""

    actions = ACTIONS

    def answer(self) -> tuple[NDArray[np.float64], float | None]:
        """Probabilities and value of the last `act`, as in an `Explanation`, but quicker."""
        y = self._read_out(self._rows().sum(axis=0))
        return _softmax(y[: len(ACTIONS)]), float(y[-1])

    def _rows(self) -> NDArray[np.float64]:
        return self._params["W1"][self.inputs()].astype(np.float64)

    def _read_out(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(gated.read_out(self._params, z[None])[0])

    def explain(self) -> Explanation:
        """What the network saw at the last `act`, with a share of the logit for each pixel."""
        inputs, rows = self.inputs(), self._rows()
        z = rows.sum(axis=0)
        y = self._read_out(z)
        up, down = ACTIONS.index(UP), ACTIONS.index(DOWN)
        u, v = (self._params["W2"][up].astype(np.float64) - self._params["W2"][down]).T
        a, b = z.T
        is_on, b2 = a > 0, self._params["b2"].astype(np.float64)
        shares = rows[..., 0] @ (is_on * (u + v * b / 2)) + rows[..., 1] @ (is_on * v * a / 2)
        before, now = self._decider.frames()
        field = np.zeros(NUM_PIXELS, np.uint8)
        field[before] = VANISHED
        field[now] = np.where(field[now] == VANISHED, STAYED, APPEARED)
        saliency = features.share_among_pixels(now, before, inputs, shares)
        logit = float(y[up] - y[down])
        return Explanation(
            field.reshape(80, 80),
            _softmax(y[: len(ACTIONS)]),
            value=float(y[-1]),
            logit=logit,
            saliency=saliency,
            rest=float(b2[up] - b2[down] + shares[inputs >= 3 * features.NUM_FEATURES].sum()),
        )


def _softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    shares = np.exp(logits - logits.max())
    return np.asarray(shares / shares.sum())
