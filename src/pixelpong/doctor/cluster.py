"""Ray: whether it is there, and whether a cluster answers; nothing here waits without end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from pixelpong.doctor import pages
from pixelpong.doctor.packages import version_of
from pixelpong.doctor.records import FAILURE, NOTE, OK, WARNING, Case, Check, trouble

SECONDS = 12.0
"""Until a cluster must have said who it is; importing Ray takes one or two of them."""

PAGE = pages.CLUSTER

_PROBE = """
import json, sys
from pixelpong.engines.ray.connection import describe_cluster
from pixelpong.errors import PixelpongError
try:
    print(json.dumps(describe_cluster(sys.argv[1])))
except PixelpongError as error:
    print(json.dumps({"problem": str(error)}))
"""


def check_ray(case: Case) -> Iterator[Check]:
    """Ray's version; where there is an address, who answers there."""
    version = version_of("ray", "ray")
    address = case.config.engine.ray_address or os.environ.get("RAY_ADDRESS")
    facts: dict[str, Any] = {"version": version, "address": address}
    is_wanted = case.is_cluster_asked or case.config.engine.engine == "ray"
    if version is None:
        level = FAILURE if is_wanted else NOTE
        advice = "for clusters: pip install 'pixelpong[ray]'"
        yield trouble(level, "ray", "Ray, for --engine ray", "none", advice, facts=facts)
        return
    if not address or address == "local":
        text = f"Ray {version}; no address given, so --engine ray starts one of its own here"
        yield Check("ray", OK, text, facts)
        return
    answer = ask_cluster(address, min(SECONDS, max(3.0, case.seconds_left())))
    if problem := answer.get("problem"):
        level = FAILURE if is_wanted else WARNING
        yield Check("ray", level, problem, facts, PAGE)
        return
    text = f"Ray {version}; {address} answers: {answer['nodes']} nodes, {answer['cores']:g} cores"
    yield Check("ray", OK, text, facts | answer)


def ask_cluster(address: str, seconds: float) -> dict[str, Any]:
    """What a cluster says of itself, asked by another process that can be ended.

    Looking up a name, connecting and Ray itself can each wait for minutes.

    Args:
        address: as of ``--ray-address``.
        seconds: after which nobody answers.

    Returns:
        ``nodes`` and ``cores``, or a ``problem``, one line.
    """
    what, advice = f"a Ray cluster at {address}", "see it with 'ray status' on its head node"
    command = [sys.executable, "-c", _PROBE, address]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        got = f"no answer within {seconds:.0f} seconds"
        return {"problem": trouble(FAILURE, "ray", what, got, advice).text}
    except (OSError, ValueError, IndexError):
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return {"problem": trouble(FAILURE, "ray", what, last, advice).text}
    return answer
