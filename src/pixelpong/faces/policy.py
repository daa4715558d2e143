"""An agent that acts on an environment's observations: in your own loop, in other libraries.

    policy = pixelpong.Policy.load("package")
    env = pixelpong.make_env()
    observation, info = env.reset(seed=0)
    policy.reset()
    while not is_over:
        observation, reward, terminated, truncated, info = env.step(policy.act(observation))
        is_over = terminated or truncated

It sees the colour frames of `pixelpong.make_env` and of Gymnasium's ``ALE/…-v5``, and decides
exactly as in the rollouts of its training. It needs to know what it saw before and its last action:
`act` remembers both; `predict` takes and returns them.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pixelpong.agent.file import Agent
from pixelpong.atari.machine.cartridges import cartridge
from pixelpong.atari.machine.palette import PALETTES
from pixelpong.config.protocols import PONG
from pixelpong.errors import ConfigError, Interrupted, must_be
from pixelpong.evaluation import summarize
from pixelpong.faces.arguments import Length, Speed, checked
from pixelpong.play.networks import GREEDY
from pixelpong.pong.preprocess import BACKGROUND_REDS
from pixelpong.run.lines import Evaluation
from pixelpong.run.words import signed
from pixelpong.schema import Count
from pixelpong.seeding import make_rng

if TYPE_CHECKING:
    from pixelpong.faces.look.media import Media
    from pixelpong.run.record import Record


class Memory(NamedTuple):
    """An agent's memory of the previous step."""

    stream: NDArray[np.void]  # [1], what its network keeps between two steps; not changed
    action: int


class Policy:
    """An agent that acts on frames.

    Attributes:
        about: facts about the agent, such as update, steps and estimated return.
        actions: the actions it chooses from, in the numbers of its game, such as ``ALE/Pong-v5``.
        rng: generator for the actions of `predict` if it is not deterministic.
    """

    def __init__(self, agent: Agent, name: str = "an agent") -> None:
        """Wrap an agent; `load` loads one by name."""
        self._agent, self.name = agent, name
        self._network = agent.make_network()
        self.algorithm, self.protocol = agent.algorithm, agent.protocol
        self.params, self.about, self.scene = agent.params, agent.about, agent.scene
        self.actions = self._network.actions
        self.rng = make_rng(0, "play")
        self.reset()

    @classmethod
    @checked
    def load(cls, what: str | Path | Record = "package", checkpoint: int | str = "best") -> Policy:
        """Load an agent by name.

        Args:
            what: ``"package"``, or the name of an agent in it; a run, its directory, its name in
                the folder ``runs``, or ``"latest"``; or a file from a run's folders ``agents`` and
                ``checkpoints``, or a file written by `pixelpong export`.
            checkpoint: for a run, ``"best"``, ``"latest"`` or an update; for the package,
                ``"best"``, ``"strong"``, ``"club"`` or ``"beginner"``.

        Raises:
            RunError: there is no such run.
            CheckpointError: there is no such agent, or it is damaged.

        >>> policy = Policy.load("package")
        >>> policy.protocol.environment, policy.actions
        ('ALE/Pong-v5', (0, 2, 3))
        """
        from pixelpong.agent.choice import open_agent

        run, agent = open_agent(what, str(checkpoint))
        return cls(agent, str(what if run is None else run.path))

    def reset(self) -> None:
        """Start an episode by forgetting the previous frame."""
        self._memory: Memory | None = None

    def act(self, observation: NDArray[np.uint8], rng: np.random.Generator | None = None) -> int:
        """Observe the next frame and choose an action.

        Args:
            observation: [210, 160, 3] uint8, a frame as from `pixelpong.make_env`; not changed. In
                some games, a frame has more rows.
            rng: generator that samples the action; without it, the most probable one is taken.

        Returns:
            One of `actions`.

        Raises:
            ConfigError: the observation is not such a frame.

        >>> from pixelpong.envs import make_env
        >>> policy, (observation, info) = Policy.load("package"), make_env().reset(seed=0)
        >>> policy.act(observation) in policy.actions
        True
        """
        uniform = GREEDY if rng is None else rng.random()
        self._memory = self._look(observation, self._memory, uniform)
        return self._memory.action

    def probabilities(self, observation: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Return the probabilities of `actions`, [A], for the next frame; remember nothing."""
        return self._ask(observation)[0]

    def value(self, observation: NDArray[np.uint8]) -> float | None:
        """Return the expected outcome of the point, −1 … 1, or None without a value function.

        In other games than Pong, it is the expected discounted sum of the signs of the rewards.
        """
        return self._ask(observation)[1]

    def predict(
        self,
        observation: NDArray[np.uint8],
        state: Any = None,
        episode_start: NDArray[np.bool_] | None = None,
        deterministic: bool = True,
    ) -> tuple[NDArray[np.int64], Any]:
        """Decide with stable-baselines3's interface, for one episode or n episodes at once.

        Args:
            observation: [210, 160, 3] uint8, or [n, 210, 160, 3].
            state: the state from the previous call; None at the start.
            episode_start: [n], True for episodes that start here; by default none does.
            deterministic: take the most probable action instead of sampling one with `rng`.

        Returns:
            The actions, one or [n], and the state for the next call; `state` is not changed.

        Raises:
            ConfigError: the observations are not such frames.
        """
        frames = np.asarray(observation)
        frames = frames if frames.ndim == 4 else frames[None]
        before = [None] * len(frames) if state is None else state
        for name, given in ("state", before), ("episode_start", episode_start):
            if given is not None and len(given) != len(frames):
                needed = f"There are {len(frames)} frames, so {name} needs {len(frames)} entries"
                raise ConfigError(f"{needed}, not {len(given)}.")
        after = []
        for index, frame in enumerate(frames):
            begins = episode_start is not None and episode_start[index]
            uniform = GREEDY if deterministic else self.rng.random()
            after.append(self._look(frame, None if begins else before[index], uniform))
        actions = np.array([memory.action for memory in after], np.int64)
        return actions if np.ndim(observation) == 4 else actions[0], after

    def evaluate_in_gymnasium(
        self,
        seed: int,
        episodes: int,
        sampled: bool,
        should_stop: Callable[[], bool],
        tell: Callable[[int], None],
    ) -> Evaluation:
        """Evaluate like `pixelpong.evaluation`, but in Gymnasium's own ``ALE/…-v5``.

        This policy's own memory is not changed.
        """
        from pixelpong.atari.envs.gym import make_theirs

        player = Policy(self._agent)
        returns, steps = [0.0] * episodes, [0] * episodes
        with contextlib.closing(make_theirs(self.protocol.game)) as env:
            for number in range(episodes):
                rng = make_rng(seed, "evaluate", 0, number)
                frame, _ = env.reset(seed=int(rng.integers(2**31)))
                player.reset()
                is_over = False
                while not is_over:
                    action = player.act(frame, rng if sampled else None)
                    frame, reward, terminated, truncated, _ = env.step(action)
                    is_over = terminated or truncated
                    returns[number] += float(reward)
                    steps[number] += 1
                    if should_stop():
                        raise Interrupted
                tell(number + 1)
        return summarize(returns, steps, seed)

    @checked
    def replay(
        self,
        episode: Count = 0,
        *,
        seed: Count = 0,
        sampled: bool | None = None,
        overlay: bool = True,
        speed: Speed = 1.0,
        seconds: Length | None = 20.0,
    ) -> Media:
        """Film a game of an evaluation.

        Args:
            episode: number of the game.
            seed: seed of the evaluation.
            sampled: sample the actions, as in training, instead of taking the most probable ones;
                by default only in games other than Pong, as evaluations do.
            overlay: add the points, the probabilities, the value and what the network sees.
            speed: playback speed; 1 is the game's own speed.
            seconds: length of the film; None for the whole game, about 20 MB.
        """
        from pixelpong.agent.game import play_game
        from pixelpong.faces.look.film import encode_film, name_game
        from pixelpong.faces.look.media import Media

        agent, is_greedy = self._agent, None if sampled is None else not sampled
        play = functools.partial(play_game, agent, seed, episode, is_greedy=is_greedy)
        title = name_game(Path(self.name).name, agent, seed, episode, is_greedy=is_greedy)
        how = {"has_overlay": overlay, "scale": 2, "speed": speed, "seconds": seconds}
        return Media(encode_film(agent, play, title, **how), title)

    def __repr__(self) -> str:
        facts = [f"{self.algorithm} on {self.protocol}"]
        if "update" in self.about:
            facts.append(f"update {self.about['update']}")
        if self.about.get("estimated_return") is not None:
            facts.append(f"estimated return {signed(self.about['estimated_return'])}")
        return f"Policy({', '.join(facts)})"

    def _look(self, frame: NDArray[np.uint8], before: Memory | None, uniform: float) -> Memory:
        """Choose an action for a frame; return the memory for the next step."""
        screen = self._read(frame)
        self._network.reset()
        if before is not None:
            self._network.stream[:] = before.stream
        action = self._network.act(screen, uniform)
        return Memory(self._network.stream.copy(), action)

    def _ask(self, observation: NDArray[np.uint8]) -> tuple[NDArray[np.float64], float | None]:
        self._look(observation, self._memory, GREEDY)
        return self._network.answer()

    def _read(self, frame: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Convert a frame to palette indices, or refuse it."""
        is_array, game = isinstance(frame, np.ndarray), self.protocol.game
        num_rows = cartridge(game).rows
        if not is_array or frame.shape != (num_rows, 160, 3) or frame.dtype != np.uint8:
            got = f"{frame.dtype} {list(frame.shape)}" if is_array else type(frame).__name__
            allowed = f"a frame of {num_rows} rows, 160 columns and 3 colours, uint8"
            advice = "use make_env(observation='frame')"
            raise ConfigError(must_be("the observation", allowed, got, advice))
        if game == PONG:  # the network only distinguishes black and the colour of the ball
            return np.where(np.isin(frame[..., 0], BACKGROUND_REDS), 0, 14).astype(np.uint8)
        codes, indices = self._colours
        wanted = _encode(frame)
        nearest = np.searchsorted(codes, wanted).clip(max=len(codes) - 1)
        if (codes[nearest] != wanted).any():
            what = "The observation has colours that no Atari shows"
            raise ConfigError(f"{what}; use make_env(game='{game}', observation='frame').")
        return indices[nearest]

    @functools.cached_property
    def _colours(self) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """The colours of its game's frames, ascending, and the palette index of each.

        Some colours of European games have several indices; a frame does not tell which. The index
        of the background, or else that of the class that is seen most often, is taken.
        """
        assert self.scene.sight is not None, "an agent's file has it"
        indices = np.arange(256)
        codes = _encode(PALETTES[cartridge(self.protocol.game).palette])
        is_other = ~np.isin(indices, self.scene.sight.background)
        order = np.lexsort((indices, self.scene.sight.classes, is_other, codes))
        codes, first = np.unique(codes[order], return_index=True)
        return codes, indices[order][first].astype(np.uint8)


def _encode(colours: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Encode colours, [..., 3], as numbers."""
    codes: NDArray[np.int64] = colours @ np.array([1 << 16, 1 << 8, 1])
    return codes
