"""The names that the tutorial uses: the game, the mathematics, workers and colours.

    from pixelpong import lab

    params = lab.init_params(lab.make_rng(0, "params"), 200)
    player = lab.Player(lab.find_protocol("ALE/Pong-v5"), "reinforce")
    (played,) = player.play(lab.Item("train", seed=0, update=1, index=0), params).sides

Most names come from other modules and are documented there. Only the names in `pixelpong` itself
are guaranteed to stay.
"""

from __future__ import annotations

from pixelpong.agent.file import load_shipped
from pixelpong.config import differences
from pixelpong.config.presets import load_preset
from pixelpong.config.protocols import find_protocol
from pixelpong.engines import make_engine
from pixelpong.errors import NumericsError, WorkerError
from pixelpong.evaluation import bootstrap_interval
from pixelpong.faces.palette import BLACK, BLUE, COLOURS, GREY, ORANGE, PURPLE, SKY, VERMILION
from pixelpong.items import Item
from pixelpong.learn.network import forward, init_params, sigmoid
from pixelpong.learn.optimizer import rmsprop
from pixelpong.learn.ppo import generalized_advantages
from pixelpong.learn.reinforce import advantages
from pixelpong.learn.returns import discounted_returns
from pixelpong.learners import make_learner
from pixelpong.machine import count_cores
from pixelpong.play.player import Player
from pixelpong.play.worker import make_worker
from pixelpong.pong.emulator import Emulator
from pixelpong.pong.preprocess import IS_ACTIVE, difference, preprocess
from pixelpong.run.arrays import fingerprint
from pixelpong.seeding import make_rng


def make_game(name: str = "ALE/Pong-v5") -> Emulator:
    """Return the emulator of a game, by the name of its protocol.

    >>> make_game("Pong-v0").frame().shape
    (210, 160, 3)
    """
    return Emulator(find_protocol(name))
