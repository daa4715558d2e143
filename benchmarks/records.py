"""How the records of this folder are written: a line for each seed, rung or row."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def made_by() -> dict[str, str]:
    """The first entry of a report: the command that makes it, as the pages show it."""
    script = Path(sys.argv[0]).resolve()
    place = script.relative_to(ROOT) if script.is_relative_to(ROOT) else script.name
    return {"command": shlex.join(["python", str(place), *sys.argv[1:]])}


def to_text(report: dict[str, Any]) -> str:
    """A report as JSON, in which what lies two levels deep takes one line.

    >>> print(to_text({"steps": 3, "seeds": [{"seed": 0}, {"seed": 1}]}), end="")
    {
     "steps": 3,
     "seeds": [
      {"seed": 0},
      {"seed": 1}
     ]
    }
    """
    entries = [f" {json.dumps(key)}: {_spread(value)}" for key, value in report.items()]
    return "{\n" + ",\n".join(entries) + "\n}\n"


def _spread(value: Any) -> str:
    if isinstance(value, dict) and any(isinstance(each, dict | list) for each in value.values()):
        lines = [f"{json.dumps(key)}: {json.dumps(each)}" for key, each in value.items()]
        return "{\n  " + ",\n  ".join(lines) + "\n }"
    if isinstance(value, list) and any(isinstance(each, dict | list) for each in value):
        return "[\n  " + ",\n  ".join(map(json.dumps, value)) + "\n ]"
    return json.dumps(value)
