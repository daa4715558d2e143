"""Steps that are sent and received, for all games or a batch of them at a time."""

from __future__ import annotations

import numpy as np
import pytest

import pixelpong
from pixelpong.atari.envs.errors import EnvError, EnvOrderError, EnvValueError

SHORT = {"max_num_frames_per_episode": 60, "repeat_action_probability": 0.25, "num_threads": 2}


def make(size, **options):
    return pixelpong.make_vec(size, game="breakout", img_height=22, img_width=20, **SHORT | options)


def action_of(game, step):
    return (game + step // 3) % 4


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize(("size", "batch_size"), [(6, 3), (7, 3), (4, 4), (3, 2)])
def test_each_game_goes_on_as_without_batches(mode, size, batch_size):
    whole, parts = (
        make(size, autoreset_mode=mode),
        make(size, autoreset_mode=mode, batch_size=batch_size),
    )
    whole.reset(seed=3)
    wanted = [whole.step(np.array([action_of(i, t) for i in range(size)])) for t in range(50)]
    (seen, infos), steps, ends = parts.reset(seed=3), np.zeros(size, int), 0
    assert len(seen) == len(infos["env_id"]) == batch_size
    while steps.max() < 50:
        which = infos["env_id"]
        actions = np.array([action_of(i, steps[i]) for i in which])
        steps[which] += 1
        *results, infos = parts.step(actions)
        for k, i in enumerate(infos["env_id"]):
            if steps[i] == 0:
                continue  # the result of the reset
            *theirs, their_infos = wanted[steps[i] - 1]
            for ours, each in zip(results, theirs, strict=True):
                np.testing.assert_array_equal(ours[k], each[i])
            for name in ("lives", "frame_number", "episode_frame_number"):
                assert infos[name][k] == their_infos[name][i]
            if results[2][k] | results[3][k]:
                ends += 1
                if mode == "SameStep":
                    np.testing.assert_array_equal(
                        infos["final_obs"][k], their_infos["final_obs"][i]
                    )
    assert ends > 5
    assert steps.min() > 50 * (size - batch_size) // size - 5, "no game waits for ever"


def test_what_is_sent_is_what_a_step_plays():
    several, (sent, stepped) = [2, 3, 0, 1], (make(4), make(4))
    for envs in (sent, stepped):
        envs.reset(seed=0)
    for t in range(40):
        actions = np.roll(several, t)
        sent.send(actions)
        for ours, theirs in zip(sent.recv()[:4], stepped.step(actions)[:4], strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_a_call_between_finishes_what_was_sent():
    sent, stepped = make(3), make(3)
    for envs in (sent, stepped):
        envs.reset(seed=0)
    actions = np.array([1, 2, 3])
    sent.send(actions)
    stepped.step(actions)
    for ours, theirs in zip(sent.clone_state(), stepped.clone_state(), strict=True):
        assert ours.tobytes() == theirs.tobytes()


def test_calls_in_the_wrong_order_are_refused_in_a_sentence():
    envs = make(2)
    with pytest.raises(EnvOrderError, match="call reset"):
        envs.send(np.zeros(2, int))
    envs.reset(seed=0)
    with pytest.raises(EnvOrderError, match="call send"):
        envs.recv()
    parts = make(4, batch_size=2)
    parts.reset(seed=0)
    with pytest.raises(EnvOrderError, match=r"call send\(\) before recv"):
        parts.recv()
    parts.send(np.zeros(2, int))
    for again in (parts.send, parts.step):
        with pytest.raises(EnvOrderError, match=r"call recv\(\) before the next step"):
            again(np.zeros(2, int))
    parts.recv()
    with pytest.raises(EnvValueError, match="reset\\(\\) starts all games"):
        parts.reset(options={"reset_mask": np.array([True, False, True, True])})
    with pytest.raises(EnvOrderError, match="no states"):
        parts.clone_state()
    with pytest.raises(EnvError, match="batch_size must be at most num_envs, 4"):
        make(4, batch_size=5)


def test_games_that_do_not_play_end_nothing(monkeypatch):
    """New arrays hold rubbish, of which nothing may be left."""
    parts = make(5, batch_size=2, autoreset_mode="SameStep")
    whole = make(5, autoreset_mode="SameStep")
    real = np.empty

    def full_of_rubbish(*args, **kwargs):
        made = real(*args, **kwargs)
        made.view(np.uint8)[...] = 0xA5
        return made

    monkeypatch.setattr(np, "empty", full_of_rubbish)
    whole.reset(seed=0)
    _, infos = whole.reset(options={"reset_mask": np.array([True, False, True, False, False])})
    assert "final_obs" not in infos
    parts.reset(seed=0)
    for _ in range(5):
        *_, over, cut, infos = parts.step(np.zeros(2, int))
        assert not over.any()
        assert not cut.any()
        assert "final_obs" not in infos


@pytest.mark.parametrize(
    "options",
    [{}, {"copy": False}, {"autoreset_mode": "SameStep", "max_num_frames_per_episode": 4}],
    ids=str,
)
def test_several_steps_may_be_sent_before_their_results_are_received(options):
    """`recv` gives them one after another, and `step` the first of them, as in ale-py."""
    sent, stepped = make(3, **options), make(3, **options)
    for envs in (sent, stepped):
        envs.reset(seed=0)
    ended = 0
    for t in range(60):
        wanted = []
        for k in range(3):
            actions = np.full(3, (t + k) % 4)
            if k < 2:
                sent.send(actions)
            *arrays, infos = stepped.step(actions)
            wanted.append([np.array(it) for it in (*arrays, infos.get("final_obs", 0))])
        for k, theirs in enumerate(wanted):
            ours = sent.step(actions) if k == 0 else sent.recv()
            for a, b in zip((*ours[:4], ours[4].get("final_obs", 0)), theirs, strict=True):
                np.testing.assert_array_equal(a, b)
            ended += int((ours[2] | ours[3]).any())
        with pytest.raises(EnvOrderError, match="call send"):
            sent.recv()
    assert ended > 3


def test_results_that_wait_are_in_the_way_of_a_reset_of_some_games():
    envs = make(2)
    envs.reset(seed=0)
    envs.send(np.zeros(2, int))
    with pytest.raises(EnvOrderError, match=r"call recv\(\)"):
        envs.reset(options={"reset_mask": np.array([True, False])})
    envs.recv()
    envs.reset(options={"reset_mask": np.array([True, False])})


def test_all_threads_have_games_to_play_in_a_batch():
    for size, batch_size, num_threads in ((8, 4, 2), (64, 32, 8)):
        options = {"batch_size": batch_size, "num_threads": num_threads}
        envs = pixelpong.make_vec(size, "field", **options)
        _, infos = envs.reset(seed=0)
        shares = [np.concatenate([it.which for it in parts]) for parts in envs._games._parts]
        assert len(shares) == num_threads
        for _ in range(5):
            assert all(np.isin(share, infos["env_id"]).any() for share in shares)
            *_, infos = envs.step(np.zeros(batch_size, int))
