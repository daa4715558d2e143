"""A run's metrics and evaluations for TensorBoard, one step an update.

    pip install tensorboardX tensorboard
    python examples/to_tensorboard.py runs/fast-001 board
    tensorboard --logdir board

Each line of a run's files is one JSON object, so a few such lines can feed any other program.
The folder must not exist yet.
"""

import json
import sys
from pathlib import Path

from tensorboardX import SummaryWriter


def numbers(group: str, line: dict) -> dict[str, float]:
    """The numbers of a line, under ``group/name``; an inner object is a group of its own."""
    found = {}
    for name, value in line.items():
        if isinstance(value, dict):
            found |= numbers(name, value)
        elif isinstance(value, int | float) and name != "update":
            found[f"{group}/{name}"] = value
    return found


def convert(run: Path, folder: Path) -> None:
    if folder.exists() or not (run / "metrics.jsonl").is_file():
        sys.exit("Name a run and a folder that does not exist yet.")
    with SummaryWriter(str(folder)) as writer:
        for group, name in (("training", "metrics"), ("evaluation", "evaluations")):
            path = run / f"{name}.jsonl"
            for text in path.read_text("utf-8").splitlines() if path.exists() else ():
                line = json.loads(text)
                for tag, value in numbers(group, line).items():
                    writer.add_scalar(tag, value, line["update"])


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
