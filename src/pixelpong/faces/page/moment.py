"""One moment of an agent's game, explained: for a page, as one JSON object.

The ball is about to reach the agent's paddle. ``screen``, ``field`` and ``saliency`` are coded as
in a reel of one step (`pixelpong.faces.page.reel`).

Covered: making one. Not covered: showing it (``static/moment.js``).
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.agent.choice import ChosenReplay
from pixelpong.agent.expect import (
    HEIGHTS,
    PADDLE_ROWS,
    expect,
    find_arrival,
    find_ball,
    find_paddle,
)
from pixelpong.agent.explain import explain
from pixelpong.agent.legend import ACTION_NAMES
from pixelpong.errors import RunError, expected
from pixelpong.faces.page.reel import encode_picture, scale_saliency

MAX_STEPS = 3000
"""Steps of an episode that are searched; the ball comes to the agent about every 60."""


def make_moment(chosen: ChosenReplay) -> dict[str, Any]:
    """Explain the first moment of an episode at which the ball is about to reach the paddle.

    Args:
        chosen: the episode and the agent.

    Raises:
        RunError: there is no such moment, as in another game than Pong.
        EmulatorError: the emulator or its game is not installed.
    """
    steps = itertools.islice(explain(chosen.replay, chosen.agent), MAX_STEPS)
    found = find_arrival(steps)
    if found is None:
        got = "an episode in which it never does"
        advice = "choose another agent"
        raise RunError(expected("a moment when the ball reaches the paddle", got, advice))
    before, moment, explanation = found
    assert before.action is not None
    assert moment.action is not None
    network = chosen.agent.make_network()
    answers = expect(network, before.screen, moment.screen, before.action)
    palette = np.zeros((256, 3), np.uint8)
    palette[moment.screen] = moment.frame
    largest, saliency = scale_saliency(explanation)
    return {
        "agent_update": chosen.agent.about["update"],
        "step": moment.step,
        "action": ACTION_NAMES[moment.action],
        "action_names": [ACTION_NAMES[action] for action in network.actions],
        "probabilities": _round(explanation.probabilities),
        "value": None if explanation.value is None else round(explanation.value, 4),
        "logit": round(explanation.logit, 3),
        "saliency_max": largest,
        "palette": palette.tolist(),
        "screen": encode_picture(moment.screen),
        "field": encode_picture(explanation.field),
        "saliency": encode_picture(saliency),
        "ball": find_ball(moment.screen),
        "paddle": {"height": find_paddle(moment.screen), "rows": PADDLE_ROWS},
        "heights": list(HEIGHTS),
        "height_probabilities": _round(answers.probabilities),
        "height_values": None if answers.values is None else _round(answers.values),
    }


def _round(numbers: NDArray[np.float64]) -> Any:
    return np.round(numbers, 4).tolist()
