"""The game as an environment for other programs: one game, many games, or a game for two learners.

env = pixelpong.make_env()
env = gymnasium.make("pixelpong.envs:pixelpong/Pong-v0")                        the same
envs = pixelpong.make_vec(64)
envs = gymnasium.make_vec("pixelpong.envs:pixelpong/Pong-v0", num_envs=64)      the same
env = pixelpong.make_two()
"""

from pixelpong.envs.gym import ID as ID  # which registers the environments
from pixelpong.envs.single import SingleEnv
from pixelpong.envs.two import TwoPlayerEnv
from pixelpong.envs.vector import VectorEnv

make_env, make_vec, make_two = SingleEnv, VectorEnv, TwoPlayerEnv
