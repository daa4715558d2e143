"""The name that somebody most likely meant who gave another one: an option's, a command's."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

MIN_BEGINNING = 3
"""Letters of the shortest beginning of a name that is taken for it."""

CUTOFF = 0.65
"""How alike two names are at least, 0 … 1, as `difflib` counts."""

_MEANINGS = {
    # options
    "learning_rate": ("lr", "lr_rate", "learn_rate", "rate", "step_size", "eta"),
    "discount": ("gamma", "discount_factor", "discount_rate"),
    "decay_rate": ("decay", "rho", "rmsprop_decay"),
    "batch_size": ("batch", "bs", "minibatch_size", "num_rollouts", "rollouts"),
    "streams": ("envs", "num_envs", "n_envs", "nenvs", "environments", "games", "parallel"),
    "horizon": ("n_steps", "rollout_length", "rollout_steps", "unroll", "segment"),
    "epochs": ("n_epochs", "num_epochs", "update_epochs", "ppo_epochs", "passes"),
    "minibatches": ("num_minibatches", "n_minibatches", "mini_batches"),
    "clip_ratio": ("clip", "clip_range", "clip_coef", "epsilon", "clip_eps"),
    "gae_lambda": ("lambda", "lam", "gae"),
    "entropy_bonus": ("ent_coef", "entropy", "entropy_coef", "beta"),
    "value_weight": ("vf_coef", "value_coef", "value_loss"),
    "hidden": ("units", "hidden_size", "hidden_units", "neurons", "width", "hidden_dim"),
    "environment": ("env", "env_id", "env_name", "game", "rom", "protocol"),
    "algorithm": ("algo", "method"),
    "until_return": ("goal", "reward", "score", "until", "target_return"),
    "updates": ("iterations", "iters", "num_updates", "max_updates", "n_updates"),
    "steps": ("timesteps", "total_timesteps", "max_steps", "num_steps", "budget"),
    "episodes": ("num_episodes", "n_episodes", "max_episodes", "n_eval_episodes", "rounds"),
    "save_every": ("checkpoint_every", "save_freq", "save_interval", "checkpoint_freq"),
    "evaluate_every": ("eval_every", "eval_freq", "eval_interval"),
    "evaluate_episodes": ("eval_episodes",),
    "workers": ("threads", "jobs", "cores", "cpus", "num_workers", "n_jobs", "j", "processes"),
    "engine": ("backend", "executor"),
    "dtype": ("precision", "float", "float_type"),
    "seed": ("random_seed", "random_state", "rng"),
    "preset": ("mode", "recipe", "profile"),
    "checkpoint": ("model", "weights", "agent", "which", "update"),
    "run": ("path", "dir", "output", "out", "logdir", "log_dir", "folder", "run_dir"),
    "out": ("output", "file", "path", "dir", "o", "filename", "to"),
    "config": ("file", "toml", "cfg", "options", "settings"),
    "quiet": ("silent", "no_progress", "q"),
    "verbose": ("v",),
    "no_open": ("no_browser", "headless", "no_display"),
    "host": ("address", "bind", "ip", "listen"),
    "token": ("password", "secret", "auth"),
    "formats": ("format", "type"),
    "kind": ("what", "plots"),
    "overlay": ("explain", "annotate"),
    "scale": ("zoom", "size", "resolution"),
    "seconds": ("duration", "length", "time", "minutes"),
    # commands
    "train": ("learn", "fit", "start", "new", "run", "go"),
    "resume": ("continue", "restart", "load"),
    "evaluate": ("eval", "test", "score", "enjoy"),
    "runs": ("list", "ls", "dir", "rm", "delete", "prune"),
    "inspect": ("info", "show", "status", "describe", "stat", "cat", "hash", "list", "ls"),
    "doctor": ("check", "diagnose", "env", "info"),
    "verify": ("reproduce", "selftest"),
    "record": ("film", "video", "movie", "gif", "render", "mp4", "replay"),
    "plot": ("compare", "curve", "curves", "graph", "chart", "draw", "figure", "diff"),
    "dashboard": ("page", "web", "ui", "serve", "server", "board", "gui", "monitor"),
    "watch": ("view", "see", "demo"),
    "play": ("against", "human", "pong"),
    "export": ("save", "onnx", "html", "share", "convert"),
    "track": ("tensorboard", "wandb", "log", "logger", "mlflow"),
    "bench": ("benchmark", "speed", "measure", "profile", "perf", "time"),
    "throughput": ("speed", "fps", "sps"),
    "solve": ("win", "seeds"),
    "predict": ("eta", "forecast", "estimate"),
    "completion": ("complete", "completions", "autocomplete", "tab"),
    "sweep": ("grid", "search", "tune", "hyperparameters"),
}
"""By name, what other programs and people call it; a name on both sides is itself first."""


def suggest(word: str, known: Iterable[str]) -> str | None:
    """The name among `known` that is most likely meant: by meaning, then by spelling.

    Args:
        word: what was given, hyphens or underscores in it.
        known: the names that there are; hyphens and underscores are the same here too.

    >>> suggest("lr", ["run", "learning_rate"]), suggest("upd", ["updates"])
    ('learning_rate', 'updates')
    >>> suggest("trian", ["train", "track"]), suggest("frobnicate", ["train"])
    ('train', None)
    """
    plain = word.strip("-").replace("-", "_").lower()
    names = {name.strip("-").replace("-", "_"): name for name in known}
    for name, others in _MEANINGS.items():
        if name in names and (plain == name or plain in others):
            return names[name]
    begun = [name for name in names if len(plain) >= MIN_BEGINNING and name.startswith(plain)]
    if len(begun) == 1:
        return names[begun[0]]
    near = difflib.get_close_matches(plain[:100], names, n=1, cutoff=CUTOFF)
    return names[near[0]] if near else None
