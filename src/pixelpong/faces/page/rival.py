"""Any game but Pong in the browser: a person and an agent play it side by side, with one seed.

Each has a console of their own, and both games open alike. The agent plays the evaluation game of
the seed (`pixelpong.agent.frames`). The person decides at every frame and nothing sticks; the frame
limit is that of the agent's rules. When the person's game has ended, the agent's goes on faster.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.agent.file import Agent
from pixelpong.agent.frames import AgentFrames
from pixelpong.atari.action import ACTION_NAMES, Action
from pixelpong.atari.machine.cartridges import cartridge
from pixelpong.errors import ConfigError
from pixelpong.faces.page.clocked import AGENT_ONLY, OVER, PLAYING, ClockedGame, Message

HURRY = 8  # frames of the agent for one of the clock, when it plays alone
MAX_SEED = 10**16  # as in the addresses of the agents' games
_MAX_HELD = 10  # most keys that a person can hold

_OPPOSITE = {"up": "down", "down": "up", "left": "right", "right": "left"}


def choose_action(held: list[str], actions: tuple[int, ...]) -> int:
    """Return the action for what is held, the newest last, in ALE's numbers.

    Of opposite directions the newer one counts. If the game lacks an action, the oldest key is
    ignored, and so on.

    >>> choose_action(["up", "left", "fire"], tuple(range(18)))
    15
    >>> choose_action(["right", "fire"], (0, 1, 3, 4)), choose_action(["left", "right"], (0, 3, 4))
    (1, 3)
    """
    kept = [key for k, key in enumerate(held) if _OPPOSITE.get(key) not in held[k + 1 :]]
    for first in range(len(kept)):
        keys = kept[first:]
        parts = [key for key in ("up", "down", "left", "right", "fire") if key in keys]
        action = Action["".join(parts).upper()]
        if action in actions:
            return int(action)
    return int(Action.NOOP)


class RivalGame(ClockedGame):
    """A game for each of the two, at the same time."""

    def __init__(self, agent: Agent, seed: int) -> None:
        """Set up the games with this seed; loading may compile the cartridge.

        Raises:
            ConfigError: the points of this game are not known.
        """
        facts = cartridge(agent.protocol.game)
        if facts.scoring is None:
            raise ConfigError(f"The points of {facts.name} are not known, so nobody can win it.")
        super().__init__()
        self._seed, self._held, self.palette = seed, list[str](), facts.palette
        self._game, self._actions = agent.protocol.game, agent.scene.actions
        self._agent = AgentFrames(agent, seed)
        self._person = self._agent.other

    def _advance(self) -> None:
        is_alone = self._person.is_over
        if not is_alone:
            self._person.play(choose_action(self._held, self._actions))
        for _ in range(HURRY if is_alone else 1):
            self._agent.advance()

    def obey(self, message: Message) -> None:
        """Carry out a message from the person; raise `ValueError` if no hands hold so much."""
        super().obey(message)
        if message.held is not None:
            if len(message.held) > _MAX_HELD:
                raise ValueError(f"At most {_MAX_HELD} keys can be held.")
            self._held = list(message.held)

    def introduce(self) -> dict[str, Any]:
        """Describe what never changes, as JSON."""
        names = [ACTION_NAMES[action].lower() for action in self._actions]
        about = {"rows": len(self._person.screen), "game": self._game, "seed": self._seed}
        return super().introduce() | about | {"actions": names}

    @property
    def phase(self) -> str:
        """READY, PLAYING, PAUSED, AGENT_ONLY or OVER."""
        if self.is_over:
            return OVER
        return AGENT_ONLY if self._state == PLAYING and self._person.is_over else self._state

    @property
    def points(self) -> tuple[int, int]:
        """The scores of the person and of the agent."""
        return self._person.score, self._agent.game.score

    @property
    def is_over(self) -> bool:
        """Whether both games have ended."""
        return self._person.is_over and self._agent.game.is_over

    @property
    def screens(self) -> tuple[NDArray[np.uint8], ...]:
        """The newest frames of the person and of the agent, each [rows, 160] palette indices."""
        return self._person.screen, self._agent.game.screen
