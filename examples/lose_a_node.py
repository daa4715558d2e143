"""A cluster on one machine that loses a node in the middle of an update, and what that changes.

It changes nothing, and the example shows it. Three nodes train, with one worker each. One node is
killed, its items run again elsewhere, and a new node joins. The parameters end up with the same
bits as those of a single process.

    python examples/lose_a_node.py          # extra [ray]; half a minute
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pixelpong.config import Config
from pixelpong.config.presets import load_preset
from pixelpong.engines.ray.connection import kept_here, local_folder
from pixelpong.interrupts import stop_on_signals
from pixelpong.loop import Event, Outcome, Updated, train
from pixelpong.run.directory import RunDirectory

NUM_NODES = 3

STORE_BYTES = 100 * 2**20
"""Object store of a node."""

LOST_AFTER, JOINED_AFTER = 3, 6
"""Updates: in the one after the first, a node is lost; after the second, a new one joins."""

Tell = Callable[[str], None]


class LocalCluster:
    """A head node without workers, and nodes with one worker each, all on this machine.

    Each node has processes of its own, as if it was a machine; they share cores and memory.
    """

    def __init__(self, num_nodes: int) -> None:
        """Start the head and the nodes; takes some seconds each."""
        from ray.cluster_utils import Cluster

        self._nodes: list[Any] = []
        with contextlib.ExitStack() as stack:  # ended again if a node does not start
            folder = stack.enter_context(local_folder())
            stack.enter_context(kept_here(folder))
            (folder / "ray").mkdir()  # Ray writes the head's address there
            head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": STORE_BYTES}
            self._cluster = Cluster(initialize_head=True, head_node_args=head)
            stack.callback(self._cluster.shutdown)
            for _ in range(num_nodes):
                self.add_node()
            self._exit = stack.pop_all()

    @property
    def address(self) -> str:
        """Where a driver connects to it."""
        return str(self._cluster.address)

    def add_node(self) -> None:
        """Start another node."""
        node = self._cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES)
        self._nodes.append(node)

    def lose_node(self) -> None:
        """End the newest node's processes without grace, as when a machine loses power."""
        self._cluster.remove_node(self._nodes.pop(), allow_graceful=False)

    def close(self) -> None:
        """End all nodes and leave nothing behind."""
        self._exit.close()


class _Watch:
    """Tells what happens, and makes it happen."""

    def __init__(self, cluster: Any, tell: Tell) -> None:
        self._cluster = cluster
        self._tell = tell

    def __call__(self, event: Event) -> None:
        """React to an event of the training."""
        if not isinstance(event, Updated):
            return
        progress, stats = event.progress, event.stats
        rate = stats.steps / stats.rollout_seconds
        self._tell(f"update {progress.update:2}: {rate:7,.0f} steps/s of rollouts")
        if progress.update == LOST_AFTER:
            threading.Timer(stats.rollout_seconds / 2, self._lose).start()
        if progress.update == JOINED_AFTER:
            self._tell("a new node joins")
            self._cluster.add_node()

    def _lose(self) -> None:
        self._tell("a node is killed, in the middle of this update")
        self._cluster.lose_node()


def show_cluster(config: Config, should_stop: Callable[[], bool], tell: Tell) -> dict[str, Any]:
    """Train once in this process and once on a cluster that loses a node, and compare the two.

    Args:
        config: what to train; its engine is replaced.
        should_stop: called several times a second.
        tell: called with a line for each thing that happens.

    Returns:
        Both hashes, whether they are equal, what was played again, and both rates of rollouts.
    """
    # On our own emulator an update is over before it can lose a node.
    config = config.updated({"emulator": "ale"}, "demo")
    with tempfile.TemporaryDirectory(prefix="pixelpong-demo-") as folder:
        tell("one process:")
        serial = config.updated({"engine": "serial"}, "demo")
        alone, rate_alone, _ = _train(Path(folder) / "serial", serial, None, should_stop)
        tell(f"  {rate_alone:,.0f} steps/s of rollouts, params {alone.params_sha256[:16]}")
        tell(f"{NUM_NODES} nodes on this machine, one worker each:")
        cluster = LocalCluster(NUM_NODES)
        try:
            changes = {"engine": "ray", "ray_address": cluster.address, "workers": None}
            path, watch = Path(folder) / "ray", _Watch(cluster, tell)
            config = config.updated(changes, "demo")
            together, rate, timings = _train(path, config, watch, should_stop)
        finally:
            cluster.close()
    return {
        "nodes": NUM_NODES,
        "serial_sha256": alone.params_sha256,
        "cluster_sha256": together.params_sha256,
        "is_same": alone.params_sha256 == together.params_sha256,
        "is_interrupted": "interrupted" in (alone.reason, together.reason),
        "workers_lost": timings[-1]["restarts"] if timings else 0,
        "items_played_again": sum(timing["items_again"] for timing in timings),
        "serial_steps_per_second": rate_alone,
        "cluster_steps_per_second": rate,
        "workers": [timing["workers"] for timing in timings],
    }


def _train(
    path: Path, config: Config, display: _Watch | None, should_stop: Callable[[], bool]
) -> tuple[Outcome, float, list[dict[str, Any]]]:
    """The outcome, the best rate of rollouts, and the timings of all updates."""
    run = RunDirectory.create(path, config)
    outcome = train(run, display, should_stop)
    lines = list(run.metrics.read())
    ends = [line["steps"] for line in lines]
    steps = [end - start for start, end in zip([0, *ends], ends, strict=False)]
    timings = [line["timing"] for line in lines]
    rates = [n / timing["rollout_seconds"] for n, timing in zip(steps, timings, strict=True)]
    return outcome, max(rates, default=0.0), timings


def describe(report: dict[str, Any]) -> str:
    """What the lost node changed."""
    word = "the same bits" if report["is_same"] else "DIFFERENT bits: that is a bug"
    ratio = report["cluster_steps_per_second"] / report["serial_steps_per_second"]
    return (
        f"{report['workers_lost']} workers lost, {report['items_played_again']} items played "
        f"again, workers by update: {' '.join(map(str, report['workers']))}\n"
        f"one process  {report['serial_sha256']}\n"
        f"the cluster  {report['cluster_sha256']}\n"
        f"{word}; {ratio:.2f} times as fast as one process"
    )


def main() -> int:
    """Run the example; 0 if the bits are the same."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=12, help="at least 8")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    changes = {"seed": options.seed, "updates": max(8, options.updates), "streams": 24}
    config = load_preset("fast").updated(changes, "the command line")
    with stop_on_signals() as should_stop:
        report = show_cluster(config, should_stop, lambda text: print(text, flush=True))
    if report["is_interrupted"]:
        return 130
    print(describe(report))
    return 0 if report["is_same"] else 1


if __name__ == "__main__":
    sys.exit(main())
