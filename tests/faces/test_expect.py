"""What an agent expects: each height of the picture is an answer of the network itself."""

from __future__ import annotations

import numpy as np
import pytest
from dense import PONG, make_params

from pixelpong.agent.game import Moment
from pixelpong.faces.look.reel import HEIGHTS, expect
from pixelpong.items import STAY, UP
from pixelpong.play.networks import NETS


def draw_screen(ball, height) -> np.ndarray:
    """A screen of Pong, pixel by pixel."""
    screen = np.zeros((210, 160), np.uint8)
    screen[35:195] = 34
    screen[194] = 14  # the border
    screen[75:91, 16:20] = 56
    screen[35 + height : 51 + height, 140:144] = 200
    screen[35 + ball[0] : 39 + ball[0], ball[1] : ball[1] + 2] = 14
    return screen


def make_moment(ball, height, action=UP) -> Moment:
    return Moment(7, draw_screen(ball, height), action, 0.0, (0, 0), None)


BEFORE, NOW = make_moment((30, 130), 60), make_moment((36, 134), 64)


@pytest.mark.parametrize("algorithm", ["reinforce", "ppo"])
def test_each_height_is_what_a_network_says_that_is_asked_there(algorithm):
    network = NETS[algorithm](PONG, make_params(algorithm, 12, "float32"))
    found = expect(network, BEFORE, NOW)
    assert (found["step"], found["ball"], found["paddle"]) == (7, (36, 134), 64)
    assert len(found["probabilities"]) == len(HEIGHTS)
    for place in (0, 17, 40, 71):
        network.reset()
        network.follow(draw_screen((30, 130), HEIGHTS[place]), UP)
        network.act(draw_screen((36, 134), HEIGHTS[place]))
        asked = network.explain()
        np.testing.assert_allclose(found["probabilities"][place], asked.probabilities, atol=1e-3)
        if asked.value is not None:
            assert found["values"][place] == pytest.approx(asked.value, abs=1e-3)
    assert (found["values"] is None) == (algorithm == "reinforce")
    other = expect(network, make_moment((42, 130), 60), NOW)
    assert found["probabilities"] != other["probabilities"], "the frame before is seen too"
    if algorithm == "ppo":
        other = expect(network, make_moment((30, 130), 60, STAY), NOW)
        assert found["values"] != other["values"], "so is the last action"
    for before, now in (
        (NOW, BEFORE), (make_moment((36, 120), 64), make_moment((36, 124), 64)),
        (make_moment((36, 150), 64), NOW), (BEFORE, make_moment((36, 134), 150)),
    ):  # fmt: skip
        assert expect(network, before, now) is None, "the ball does not arrive"
