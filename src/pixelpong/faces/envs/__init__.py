"""The game as an environment for other programs: one game, many at once, a game of two learners.

env = pixelpong.make_env()
env = gymnasium.make("pixelpong.env.gym:pixelpong/Pong-v0")                        the same
envs = pixelpong.make_vec(64)
envs = gymnasium.make_vec("pixelpong.env.gym:pixelpong/Pong-v0", num_envs=64)      the same
env = pixelpong.make_two()
"""

from pixelpong.faces.envs.single import PongEnv
from pixelpong.faces.envs.two import TwoPlayerEnv
from pixelpong.faces.envs.vector import PongVectorEnv

make_env, make_vec, make_two = PongEnv, PongVectorEnv, TwoPlayerEnv
