"""`make_sb3` without stable-baselines3: the few lines of its ``VecEnv`` that ours needs.

With it installed, `make peers` tries the real one.
"""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import pixelpong.atari.envs.vector


class VecEnv:
    def __init__(self, num_envs, observation_space, action_space):
        self.num_envs = num_envs
        self.observation_space, self.action_space = observation_space, action_space
        self._options, self.reset_infos = [{}] * num_envs, [{}] * num_envs
        self._reset_seeds()

    def _reset_seeds(self):
        self._seeds = [None] * self.num_envs

    def _get_indices(self, indices):
        return range(self.num_envs) if indices is None else indices

    def seed(self, seed):
        self._seeds = [seed + i for i in range(self.num_envs)]

    def step(self, actions):
        self.step_async(actions)
        return self.step_wait()


def load(monkeypatch, **attributes):
    """Our module with a library that has these attributes, by default with the class above."""
    fakes = {"stable_baselines3": {}, "stable_baselines3.common": attributes}
    if not attributes:
        monitor, vec_env = ModuleType("monitor"), ModuleType("vec_env")
        monitor.Monitor, monitor.ResultsWriter, vec_env.VecEnv = object, object, VecEnv
        attributes |= {"monitor": monitor, "vec_env": vec_env}
    for name, values in fakes.items():
        module = ModuleType(name)
        module.__spec__ = importlib.util.spec_from_loader(name, None)
        module.__dict__.update(values)
        monkeypatch.setitem(sys.modules, name, module)
    path = pixelpong.atari.envs.vector.__file__.replace("vector.py", "stable_baselines.py")
    spec = importlib.util.spec_from_file_location("our_stable_baselines", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "require", lambda *_, **__: None)  # it asks what is installed
    games = type("Games", (module.StepsWithEpisodes, pixelpong.make_vec), {})
    module.make_sb3 = type("make_sb3", (module.StableBaselinesEnv,), {"vector_env": games})
    return module
