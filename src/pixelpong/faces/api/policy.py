"""An agent that acts on what an environment shows: in a loop of one's own, in other libraries.

    policy = pixelpong.Policy.load("package")
    env = pixelpong.make_env()
    observation, info = env.reset(seed=0)
    policy.reset()
    while not is_over:
        observation, reward, terminated, truncated, info = env.step(policy.act(observation))
        is_over = terminated or truncated

It sees the frames in colour that `pixelpong.make_env` and ``ALE/Pong-v5`` give, and decides bit for
bit as the rollouts of a training do. Of an episode it has to know the frame before and what it
asked for last: `act` remembers both, `predict` takes and gives them.

Covered: loading, acting, probabilities and value, stable-baselines3's `predict`, films.
Not covered: which pixels moved it (`pixelpong.agent.network`).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.agent.file import Agent, read_agent
from pixelpong.agent.network import GREEDY, Explanation
from pixelpong.env.preprocess import FIELD_ROWS, preprocess
from pixelpong.errors import ConfigError, expected
from pixelpong.faces.api.training import path_of
from pixelpong.seeding import make_rng

if TYPE_CHECKING:
    from pixelpong.faces.notebook import Film, Run

Memory = tuple[NDArray[np.bool_], NDArray[np.int8]]
"""Of n episodes: [n, 80, 80] what was drawn in the frame before, [n] what was asked for at it;
`_NOTHING` if the episode begins."""

_NOTHING = -1

_BACKGROUND, _DRAWN = 0, 14
"""Palette indices of black and of the ball: the network tells no more apart."""


class Policy:
    """An agent that acts on frames.

    Attributes:
        algorithm: that trained it, ``"reinforce"`` or ``"ppo"``.
        protocol: what it was trained to play.
        params: its parameters, not to be changed.
        about: what else is known of it: update, steps, estimated return and so on.
        actions: between which it decides, as ``ALE/Pong-v5`` numbers them.
        rng: draws the actions of `predict` if it is not deterministic.
    """

    def __init__(self, agent: Agent) -> None:
        """See `load`."""
        self._agent = agent
        self._network = agent.make_network()
        self._screen = np.full((210, 160), _BACKGROUND, np.uint8)
        self.algorithm, self.protocol = agent.algorithm, agent.protocol
        self.params, self.about = agent.params, agent.about
        self.actions = self._network.actions
        self.rng = make_rng(0, "play")
        self.reset()

    @classmethod
    def load(cls, what: str | Path | Run = "package", which: int | str = "best") -> Policy:
        """An agent by name.

        Args:
            what: ``"package"`` for those that come with it, a run or its directory, or a file
                of an agent: a milestone, or ``params.safetensors`` of a checkpoint.
            which: of a run's agents: ``"best"``, ``"latest"`` or an update; of the package's:
                ``"best"``, ``"strong"``, ``"club"`` or ``"beginner"``.

        Raises:
            RunError: there is no such run.
            CheckpointError: there is no such agent, or it is damaged.

        >>> policy = Policy.load("package")
        >>> policy.protocol.name, policy.actions
        ('ALE/Pong-v5', (0, 2, 3))
        """
        from pixelpong.agent.choice import load_agent
        from pixelpong.run.directory import RunDirectory

        if what == "package":
            return cls(load_agent(None, str(which)))
        path = path_of(what)
        if path.suffix == ".safetensors":
            return cls(read_agent(path))
        return cls(load_agent(RunDirectory.open(path), str(which)))

    def reset(self) -> None:
        """An episode begins: forget the frame before."""
        self._memory = _empty_memory(1)

    def act(self, observation: NDArray[np.uint8], rng: np.random.Generator | None = None) -> int:
        """Look at the next frame and decide.

        Args:
            observation: [210, 160, 3] uint8, a frame as `pixelpong.make_env` gives it; not changed.
            rng: draws the action; by default the most probable one is taken.

        Returns:
            One of `actions`.

        Raises:
            ConfigError: it is no such frame.

        >>> from pixelpong.env.gym import make_env
        >>> policy, (observation, info) = Policy.load("package"), make_env().reset(seed=0)
        >>> policy.act(observation) in policy.actions
        True
        """
        return self._step(observation, self._memory, 0, GREEDY if rng is None else rng.random())

    def probabilities(self, observation: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Those of `actions`, [A], if this were the next frame; it is not remembered.

        Args:
            observation: as for `act`.

        Raises:
            ConfigError: it is no such frame.
        """
        return self._explain(observation).probabilities

    def value(self, observation: NDArray[np.uint8]) -> float | None:
        """What the point is worth to it, −1 … 1; None if its network does not say.

        Args:
            observation: as for `act`; it is not remembered.

        Raises:
            ConfigError: it is no such frame.
        """
        return self._explain(observation).value

    def predict(
        self,
        observation: NDArray[np.uint8],
        state: Any = None,
        episode_start: NDArray[np.bool_] | None = None,
        deterministic: bool = True,
    ) -> tuple[NDArray[np.int64], Any]:
        """Decide as stable-baselines3 asks its own agents: for one episode, or for n at once.

        Args:
            observation: [210, 160, 3] uint8, or [n, 210, 160, 3].
            state: what the call before gave; None at the start.
            episode_start: [n], where an episode begins; by default none does.
            deterministic: take the most probable action instead of drawing one from `rng`.

        Returns:
            The actions, one or [n], and the state for the next call; `state` is not changed.

        Raises:
            ConfigError: these are no such frames.
        """
        observation = np.asarray(observation)
        frames = observation[None] if observation.ndim == 3 else observation
        fields, asked = _empty_memory(len(frames)) if state is None else map(np.copy, state)
        if episode_start is not None:
            asked[np.asarray(episode_start, bool)] = _NOTHING
        draws = [GREEDY if deterministic else self.rng.random() for _ in frames]
        steps = enumerate(zip(frames, draws, strict=True))
        chosen = [self._step(frame, (fields, asked), i, draw) for i, (frame, draw) in steps]
        actions = np.array(chosen, np.int64)
        return actions if observation.ndim == 4 else actions[0], (fields, asked)

    def replay(
        self,
        episode: int = 0,
        *,
        seed: int = 0,
        overlay: bool = True,
        speed: float = 1.0,
        seconds: float | None = None,
    ) -> Film:
        """A game of it as a film: the very one that an evaluation plays, greedily.

        Args:
            episode: its place in the evaluation.
            seed: of the evaluation.
            overlay: points, probabilities, value and what the network sees beside the picture.
            speed: 1 is the game's own.
            seconds: of film, after which it ends; by default the whole game.

        Raises:
            ConfigError: what makes films is not installed.
            EmulatorError: the emulator or its game is not installed.
        """
        from pixelpong.agent.choice import ChosenReplay
        from pixelpong.faces.notebook import film_of

        played = self._agent.play_episode(seed, episode)
        title = f"{self!r}, greedy episode {episode}, return {played.episode_return:+.0f}"
        chosen = ChosenReplay(played, self._agent, is_own=True, title=title)
        return film_of(chosen, overlay=overlay, speed=speed, seconds=seconds)

    def __repr__(self) -> str:
        words = [f"{self.algorithm} on {self.protocol.name}"]
        if "update" in self.about:
            words.append(f"update {self.about['update']}")
        if self.about.get("estimated_return") is not None:
            words.append(f"estimated return {self.about['estimated_return']:+.1f}")
        return f"Policy({', '.join(words)})"

    def _look(self, frame: NDArray[np.uint8], memory: Memory, index: int, draw: float) -> int:
        """Decide at a frame, which is made the screen, with what is remembered of its episode."""
        if frame.shape != (210, 160, 3) or frame.dtype != np.uint8:
            got = f"{frame.dtype} {list(frame.shape)}"
            what = "frames of 210 rows, 160 columns and 3 colours, uint8"
            raise ConfigError(expected(what, got, "use make_env(observation='frame')"))
        fields, asked = memory
        self._network.reset()
        if asked[index] != _NOTHING:
            self._draw(fields[index])
            self._network.follow(self._screen, int(asked[index]))
        self._draw(preprocess(frame) > 0)
        return self._network.act(self._screen, draw)

    def _step(self, frame: NDArray[np.uint8], memory: Memory, index: int, draw: float) -> int:
        """Decide, and remember the frame and the decision."""
        fields, asked = memory
        asked[index] = self._look(frame, memory, index, draw)
        fields[index] = self._screen[FIELD_ROWS][::2, ::2] == _DRAWN
        return int(asked[index])

    def _explain(self, observation: NDArray[np.uint8]) -> Explanation:
        self._look(observation, self._memory, 0, GREEDY)
        return self._network.explain()

    def _draw(self, field: NDArray[np.bool_]) -> None:
        """A screen on which the network sees just this."""
        self._screen[FIELD_ROWS][::2, ::2] = np.where(field, _DRAWN, _BACKGROUND)


def _empty_memory(count: int) -> Memory:
    return np.zeros((count, 80, 80), np.bool_), np.full(count, _NOTHING, np.int8)
