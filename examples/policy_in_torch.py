"""An agent of the package as a `torch.nn.Module`, which you can train on or export.

    pip install -c constraints.txt -e '.[peers]'
    python examples/policy_in_torch.py

Its inputs are those of `pixelpong.pong.features`: cells and pairs of cells of the last two fields,
and the last action; about 80 of 60,000 are 1. It plays a game and compares each decision with the
package's own.
"""

import numpy as np
import torch
from torch import nn

import pixelpong
from pixelpong.pong.features import observe_features


class GatedPolicy(nn.Module):
    """The fast network: each hidden unit is a sum that passes if it is positive, and its gate."""

    def __init__(self, params):
        super().__init__()
        self.W1, self.W2, self.b2 = (
            nn.Parameter(torch.from_numpy(params[name].copy())) for name in ("W1", "W2", "b2")
        )

    def forward(self, x):
        """Logits of stay, up and down, [N, 3], and values, [N], for inputs of 0 and 1, [N, D]."""
        a, b = torch.einsum("nd,dhk->knh", x, self.W1)
        a = torch.relu(a)
        outputs = a @ self.W2[..., 0].T + (a * b) @ self.W2[..., 1].T + self.b2
        return outputs[:, :3], outputs[:, 3]


@torch.no_grad()
def compare(max_frames=4000):
    """Play a game; return the number of decisions, and the largest difference of a probability."""
    policy = pixelpong.Policy.load("club")
    module, worst, steps = GatedPolicy(policy.params), 0.0, 0
    env, fields = (pixelpong.make_env(it, max_frames=max_frames) for it in ("frame", "field"))
    frame, now = env.reset(seed=0)[0], fields.reset(seed=0)[0]
    before, last_action, is_over = np.zeros_like(now), 0, False
    while not is_over:
        x = torch.from_numpy(observe_features(before, now, last_action))[None]
        ours = module(x)[0].softmax(-1)[0].numpy()
        worst = max(worst, float(np.abs(ours - policy.probabilities(frame)).max()))
        action = policy.act(frame)
        last_action, before, steps = policy.actions.index(action), now, steps + 1
        frame, _, terminated, truncated, _ = env.step(action)
        now, is_over = fields.step(action)[0], terminated or truncated
    return steps, worst


if __name__ == "__main__":
    steps, worst = compare()
    print(f"{steps} decisions, probabilities equal to {worst:.0e}")
