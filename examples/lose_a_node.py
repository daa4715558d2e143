"""A cluster on one machine that loses a node while it trains, and what that changes.

It changes nothing, and the example shows it. Three nodes train, with one worker each. One node is
killed, its items run again elsewhere, and a new node joins. The parameters end up with the same
bits as those of a single process.

    python examples/lose_a_node.py          # extra [ray]; half a minute
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from pathlib import Path
from typing import Any

from pixelpong.config.presets import load_preset
from pixelpong.engines.ray.connection import kept_local, local_folder
from pixelpong.loop import Event, Updated, train
from pixelpong.run.directory import RunDirectory

STORE_BYTES = 100 * 2**20
"""Object store of a node."""


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
            stack.enter_context(kept_local(folder))
            (folder / "ray").mkdir()  # Ray writes the head's address there
            head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": STORE_BYTES}
            self._cluster = Cluster(initialize_head=True, head_node_args=head)
            stack.callback(self._cluster.shutdown)
            for _ in range(num_nodes):
                self.add_node()
            self.close = stack.pop_all().close

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


def main() -> int:
    """Run the example; 0 if the bits are the same."""
    config = load_preset("fast").updated({"updates": 40, "until_return": None}, "the example")
    with tempfile.TemporaryDirectory() as folder:
        alone = train(RunDirectory.create(Path(folder) / "alone", config))
        cluster = LocalCluster(3)

        def watch(event: Event) -> None:
            if not isinstance(event, Updated):
                return
            update, engine = event.progress.update, event.engine
            print(f"update {update:2}: {engine.workers} workers, {engine.items_again} items again")
            if update == 10:
                print("a node is killed")
                cluster.lose_node()
            if update == 20:
                print("a new node joins")
                cluster.add_node()

        with contextlib.closing(cluster):
            changes = {"engine": "ray", "ray_address": cluster.address}
            config = config.updated(changes, "the example")
            together = train(RunDirectory.create(Path(folder) / "together", config), watch)
    is_same = alone.params_sha256 == together.params_sha256
    print(f"one process  {alone.params_sha256}\nthe cluster  {together.params_sha256}")
    print("the same bits" if is_same else "DIFFERENT bits: that is a bug")
    return 0 if is_same else 1


if __name__ == "__main__":
    sys.exit(main())
