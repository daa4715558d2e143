"""What an agent expects: each height of the picture is an answer of the network itself."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pixelpong.agent.file import load_shipped
from pixelpong.agent.game import Moment, play_game
from pixelpong.env import features
from pixelpong.faces.look.reel import ARRIVING, BALL, HEIGHTS, PADDLE, expect, find, place_paddle
from pixelpong.items import DOWN, STAY, UP
from pixelpong.learn import gated
from pixelpong.learn.network import init_params
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


@pytest.fixture(params=["reinforce", "ppo"])
def make(request):
    """Makes networks with the same random parameters; the last layer is not 0."""
    rng = np.random.default_rng(3)
    params = init_params(rng, 12)
    if request.param == "ppo":
        params = gated.init_params(rng, features.NUM_INPUTS, 12)
        params["W2"] = rng.normal(size=params["W2"].shape).astype(np.float32)
    return lambda: NETS[request.param](params)


def test_the_paddle_is_found_and_put_elsewhere_and_nothing_else_changes():
    assert (find(NOW.screen, BALL), find(NOW.screen, PADDLE)) == ((36, 134), (64, 140))
    np.testing.assert_array_equal(place_paddle(NOW.screen, 142), draw_screen((36, 134), 142))
    assert find(NOW.screen, PADDLE) == (64, 140), "the screen itself is as it was"
    cut_off = place_paddle(NOW.screen, 150)
    assert find(cut_off, PADDLE) is None


def test_each_height_is_what_a_network_says_that_is_asked_there(make):
    found = expect(make(), BEFORE, NOW)
    assert (found["step"], found["ball"], found["paddle"]) == (7, (36, 134), 64)
    assert len(found["probabilities"]) == len(HEIGHTS)
    for place in (0, 17, 40, 71):
        network = make()
        network.follow(draw_screen((30, 130), HEIGHTS[place]), UP)
        network.act(draw_screen((36, 134), HEIGHTS[place]))
        asked = network.explain()
        np.testing.assert_allclose(found["probabilities"][place], asked.probabilities, atol=1e-3)
        if asked.value is None:
            assert found["values"] is None
        else:
            assert found["values"][place] == pytest.approx(asked.value, abs=1e-3)


def test_the_frame_before_and_the_last_action_are_seen_too(make):
    found = expect(make(), BEFORE, NOW)
    other = expect(make(), make_moment((42, 130), 60), NOW)
    assert found["probabilities"] != other["probabilities"]
    if found["values"] is not None:
        assert found["values"] != expect(make(), make_moment((30, 130), 60, STAY), NOW)["values"]


def test_nothing_is_expected_of_a_ball_that_does_not_arrive(make):
    for before, now in (
        (NOW, BEFORE), (make_moment((36, 120), 64), make_moment((36, 124), 64)),
        (make_moment((36, 150), 64), NOW), (BEFORE, make_moment((36, 134), 150)),
    ):  # fmt: skip
        assert expect(make(), before, now) is None


@pytest.mark.slow
def test_the_packages_agent_goes_to_the_ball_and_expects_to_win_only_where_it_meets_it():
    """The picture is true of a game: the agent is one that wins."""
    agent = load_shipped()
    pairs = itertools.pairwise(play_game(agent, 0))
    network = agent.make_network()
    found = next(filter(None, (expect(network, *pair) for pair in pairs)))
    row, column = found["ball"]
    assert column in ARRIVING
    heights, actions, values = (
        np.array(HEIGHTS),
        np.array(network.actions),
        np.array(found["values"]),
    )
    chosen_actions = actions[np.argmax(found["probabilities"], axis=1)]
    is_above, is_below = heights + 16 < row, heights > row + 40
    print(row, "".join({UP: "^", DOWN: "v", STAY: "."}[a] for a in chosen_actions.tolist()))
    print(values.round(1))
    # More than half of the field above a ball that close it has never been: there it may stay.
    is_near = is_above & (heights > row - 80)
    assert (chosen_actions[is_near] == DOWN).mean() > 0.9
    assert not (chosen_actions[is_above] == UP).any()
    meets = (heights <= row + 8) & (heights + 16 >= row)
    assert values[meets].mean() > values[is_above | is_below].mean() + 0.1
