"""PPO in PyTorch with the field's network, on `pixelpong.make_vec`, to be read and changed.

    pip install -c constraints.txt -e '.[peers]'
    python examples/ppo_torch.py    # with --bfloat16 on a processor made for it
    python examples/ppo_torch.py --game breakout

The agent is that of most papers on Atari: three convolutions on the last four pictures, 84 × 84 in
grey (Mnih et al. 2015), trained by PPO (Schulman et al. 2017) with the usual settings for Atari.
Each update plays 128 steps of 16 games, computes advantages (GAE), and learns from these 2,048
steps three times. The options have CleanRL's names. Our environment takes a hundredth of the
time, and the network nearly all the rest, so a GPU helps here.
"""

import argparse
import json
import time
from collections import deque

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

import pixelpong


class Agent(nn.Module):
    """A policy and a value function on shared features of [N, 4, 84, 84] uint8.

    In bfloat16 the features take half the time on processors made for it, and longer on others.
    """

    def __init__(self, num_actions, bfloat16=False):
        super().__init__()
        self.bfloat16 = bfloat16
        self.features = nn.Sequential(
            _init(nn.Conv2d(4, 32, 8, stride=4)), nn.ReLU(),
            _init(nn.Conv2d(32, 64, 4, stride=2)), nn.ReLU(),
            _init(nn.Conv2d(64, 64, 3, stride=1)), nn.ReLU(),
            nn.Flatten(), _init(nn.Linear(64 * 7 * 7, 512)), nn.ReLU(),
        )  # fmt: skip
        self.actor = _init(nn.Linear(512, num_actions), gain=0.01)
        self.critic = _init(nn.Linear(512, 1), gain=1.0)
        self.to(memory_format=torch.channels_last)  # convolutions are a third faster

    def forward(self, observations):
        """The distribution of the actions, and the values [N]."""
        with torch.autocast(observations.device.type, torch.bfloat16, enabled=self.bfloat16):
            features = self.features(observations.float() / 255).float()
        return Categorical(logits=self.actor(features)), self.critic(features).squeeze(-1)


def _init(layer, gain=2**0.5):
    """Orthogonal weights, no biases."""
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


class Rollouts:
    """Plays the games on, and keeps the last steps of them: all arrays are [T, N, …]."""

    def __init__(self, envs, num_steps, seed):
        self.envs, size = envs, (num_steps, envs.num_envs)
        self.next = torch.from_numpy(envs.reset(seed=seed)[0])
        self.observations = torch.zeros(*size, *self.next.shape[1:], dtype=torch.uint8)
        self.actions = torch.zeros(size, dtype=torch.long)
        self.log_probs, self.values, self.rewards, self.ends = (torch.zeros(size) for _ in range(4))
        self.returns, self._sums = deque(maxlen=100), np.zeros(envs.num_envs)
        self._lives = np.zeros(envs.num_envs)

    @torch.no_grad()
    def play(self, agent):
        """Play the next steps; return the values of the observations after them, [N]."""
        for t in range(len(self.actions)):
            policy, value = agent(self.next)
            action = policy.sample()
            self.observations[t], self.actions[t], self.values[t] = self.next, action, value
            self.log_probs[t] = policy.log_prob(action)
            after, rewards, over, cut, infos = self.envs.step(action.numpy())
            self.next = torch.from_numpy(after)
            # What follows a lost life does not count, nor what follows a point of Pong.
            lives, is_end = infos["lives"], over | cut
            is_end |= rewards != 0 if self.envs.game == "pong" else lives < self._lives
            self._lives = lives
            clipped = np.clip(rewards, -1, 1)
            self.rewards[t], self.ends[t] = torch.from_numpy(clipped), torch.from_numpy(is_end)
            self._sums += rewards
            for i in np.flatnonzero(over | cut):
                self.returns.append(self._sums[i])
                self._sums[i] = 0
        return agent(self.next)[1]


def compute_advantages(rewards, values, ends, last_value, it):
    """Generalized advantage estimates (Schulman et al. 2016), [T, N]."""
    advantages, ahead = torch.zeros_like(rewards), torch.zeros_like(last_value)
    for t in reversed(range(len(rewards))):
        goes_on = 1 - ends[t]
        delta = rewards[t] + it.gamma * last_value * goes_on - values[t]
        ahead = delta + it.gamma * it.gae_lambda * goes_on * ahead
        advantages[t], last_value = ahead, values[t]
    return advantages


def learn(agent, optimizer, batch, ent_coef, it):
    """Learn from the steps of an update, several times in a new order; return the last entropy."""
    observations, actions, log_probs, advantages, targets = batch
    for _ in range(it.update_epochs):
        for rows in torch.randperm(len(actions)).chunk(it.num_minibatches):
            policy, values = agent(observations[rows])
            ratio = (policy.log_prob(actions[rows]) - log_probs[rows]).exp()
            gain = advantages[rows]
            gain = (gain - gain.mean()) / (gain.std() + 1e-8)
            clipped = ratio.clamp(1 - it.clip_coef, 1 + it.clip_coef)
            policy_loss = -torch.min(ratio * gain, clipped * gain).mean()
            value_loss = 0.5 * (values - targets[rows]).square().mean()
            entropy = policy.entropy().mean()
            loss = policy_loss + it.vf_coef * value_loss - ent_coef * entropy
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), it.max_grad_norm)
            optimizer.step()
    return entropy.item()


def make_envs(game, size, **options):
    """The games under the protocol of Machado et al. (2018); in Pong, three actions are enough."""
    actions = "three" if game == "pong" else None
    return pixelpong.make_vec(
        size, game=game, actions=actions, repeat_action_probability=0.25, reward_clipping=False,
        **options,
    )  # fmt: skip


@torch.no_grad()
def evaluate(agent, game, size, seed):
    """The returns of a game of each of some environments; in Pong with the likeliest actions.

    In other games that may never end, because the likeliest action need not serve the ball.
    """
    envs = make_envs(game, size, noop_max=0)
    observations, _ = envs.reset(seed=seed)
    returns, is_on = np.zeros(size), np.ones(size, bool)
    while is_on.any():
        policy, _ = agent(torch.from_numpy(observations))
        actions = policy.probs.argmax(-1) if game == "pong" else policy.sample()
        observations, rewards, over, cut, _ = envs.step(actions.numpy())
        returns += rewards * is_on
        is_on &= ~(over | cut)
    envs.close()
    return returns


def train(it):
    """Train an agent, and return it; print a line of JSON now and then."""
    torch.manual_seed(it.seed)
    envs = make_envs(it.game, it.num_envs)
    agent = Agent(envs.single_action_space.n, it.bfloat16)
    optimizer = torch.optim.Adam(agent.parameters(), lr=it.learning_rate, eps=1e-5, fused=True)
    r, begin = Rollouts(envs, it.num_steps, it.seed), time.time()
    num_updates = it.total_timesteps // (it.num_envs * it.num_steps)
    for update in range(1, num_updates + 1):
        left = 1 - (update - 1) / num_updates
        optimizer.param_groups[0]["lr"] = it.learning_rate * left
        last_value = r.play(agent)
        advantages = compute_advantages(r.rewards, r.values, r.ends, last_value, it)
        batch = (r.observations, r.actions, r.log_probs, advantages, advantages + r.values)
        batch = [each.flatten(0, 1) for each in batch]
        entropy = learn(agent, optimizer, batch, it.ent_coef * left, it)
        if update % it.report_every == 0 or update == num_updates:
            print(json.dumps({
                "steps": update * it.num_envs * it.num_steps,
                "seconds": round(time.time() - begin, 1),
                "mean_return_100": round(float(np.mean(r.returns)), 2) if r.returns else None,
                "entropy": round(entropy, 3),
            }), flush=True)  # fmt: skip
    envs.close()
    return agent


def parse(words=None):
    """The options, with CleanRL's names and defaults for Atari."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in {
        "total_timesteps": 4_000_000, "num_envs": 16, "num_steps": 128, "learning_rate": 5e-4,
        "gamma": 0.99, "gae_lambda": 0.95, "update_epochs": 3, "num_minibatches": 8,
        "clip_coef": 0.1, "ent_coef": 0.01, "vf_coef": 0.5, "max_grad_norm": 0.5, "seed": 1,
        "report_every": 10, "games": 10,
    }.items():  # fmt: skip
        flag = "--" + name.replace("_", "-")
        parser.add_argument(flag, type=type(default), default=default, help="%(default)s")
    parser.add_argument("--game", default="pong", help="a game of pixelpong.make_vec, %(default)s")
    parser.add_argument("--bfloat16", action="store_true", help="compute features in it")
    return parser.parse_args(words)


if __name__ == "__main__":
    options = parse()
    trained = train(options)
    returns = evaluate(trained, options.game, options.games, seed=1000)
    kind = "greedy_returns" if options.game == "pong" else "sampled_returns"
    print(json.dumps({kind: returns.tolist(), "mean": returns.mean()}))
