"""How the records of this folder are written: a line for each seed, rung or row."""

from __future__ import annotations

import json
from typing import Any


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
