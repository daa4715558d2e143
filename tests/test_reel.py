"""Reels: what the viewer gets is what the emulator showed and what the network saw and thought."""

from __future__ import annotations

import base64
import itertools
import json
import zlib

import numpy as np
import pytest

from pixelpong.agent.choice import Agents
from pixelpong.agent.file import load_shipped
from pixelpong.agent.game import play_game
from pixelpong.faces.look import reel as reels
from pixelpong.faces.look.reel import encode_difference, expect, make_reel
from pixelpong.run.directory import RunDirectory


def pictures_in(text, size, count):
    """The slow oracle of what a browser does: one picture after another, byte by byte."""
    data, place = zlib.decompress(base64.b64decode(text)), 0
    picture, pictures = [0] * size, []
    for _ in range(count):
        number = data[place] + 256 * data[place + 1]
        places, values = place + 2, place + 2 + 2 * number
        for k in range(number):
            where = data[places + 2 * k] + 256 * data[places + 2 * k + 1]
            picture[where] = data[values + k]
        place = values + number
        pictures.append(list(picture))
    assert place == len(data)
    return np.array(pictures, np.uint8)


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["fast", "classic"])
def test_a_reel_holds_the_frames_and_what_the_network_saw(preset, toy_runs, monkeypatch):
    agent = Agents.of_run(RunDirectory(toy_runs[preset])).load("latest")
    monkeypatch.setattr(reels, "MAX_STEPS", 300)
    reel = json.loads(json.dumps(make_reel(agent, 3)))
    moments = list(itertools.islice(play_game(agent, 3, explains_every=1), 300))
    count = reel["steps"]
    assert count == len(moments)
    screens = pictures_in(reel["screen"], 210 * 160, count)
    palette = np.array(reel["palette"], np.uint8)
    fields = pictures_in(reel["field"], 6400, count)
    shares = pictures_in(reel["saliency"], 6400, count).view(np.int8)
    for step, moment in enumerate(moments):
        explanation = moment.explanation
        np.testing.assert_array_equal(screens[step].reshape(210, 160), moment.screen)
        np.testing.assert_array_equal(palette[screens[step]].reshape(210, 160, 3), moment.frame)
        np.testing.assert_array_equal(fields[step].reshape(80, 80), explanation.field)
        largest = np.abs(explanation.saliency).max()
        rounded = shares[step].reshape(80, 80) / 127 * largest
        np.testing.assert_allclose(rounded, explanation.saliency, atol=largest / 200)
    assert reel["points"][-1] == list(moments[-1].points)
    assert reel["episode_return"] == sum(moment.reward for moment in moments)
    assert reel["steps_per_second"] == 15.0


@pytest.mark.slow
def test_each_time_the_ball_comes_the_reel_holds_what_the_network_answers(monkeypatch):
    monkeypatch.setattr(reels, "MAX_STEPS", 400)
    agent = load_shipped("club")
    reel = make_reel(agent, 0)
    moments = itertools.islice(play_game(agent, 0), 400)
    network, pairs = agent.make_network(), itertools.pairwise(moments)
    wanted = [found for pair in pairs if (found := expect(network, *pair))]
    assert reel["expectations"] == wanted
    assert len(wanted) >= 3


def test_a_difference_is_count_places_and_values():
    last, picture = np.zeros(300, np.uint8), np.zeros(300, np.uint8)
    picture[[3, 258]] = 7, 9
    assert encode_difference(last, picture) == bytes([2, 0, 3, 0, 2, 1, 7, 9])
    assert encode_difference(picture, picture) == bytes([0, 0])
