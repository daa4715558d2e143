"""Addresses of Ray clusters that are not there."""

from __future__ import annotations

import socket

import pytest
from fakes import EchoWorker

from pixelpong.engines.ray import RayEngine
from pixelpong.errors import ConfigError, WorkerError

pytestmark = pytest.mark.ray


@pytest.mark.parametrize(
    "address", ["nonsense", "host:", ":1", "host:0", "host:99999", "ray://h:1"]
)
def test_an_address_that_is_none_is_one_line(address):
    with pytest.raises(ConfigError, match="expected --ray-address auto or HOST:PORT, got"):
        RayEngine(EchoWorker, 1, 30.0, address=address)


def test_an_address_where_nobody_answers_is_one_line():
    """Ray itself waits for minutes, or for ever where the connection is taken."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(ConfigError, match=f"a Ray cluster at {address}, got timed out"):
            RayEngine(EchoWorker, 1, 30.0, address=address)
    with pytest.raises(ConfigError, match=f"a Ray cluster at {address}, got .*refused"):
        RayEngine(EchoWorker, 1, 30.0, address=address)


@pytest.mark.alone  # no cluster runs beside it
def test_no_cluster_on_this_machine_is_one_line():
    with pytest.raises(WorkerError, match="expected a Ray cluster at auto, got ConnectionError"):
        RayEngine(EchoWorker, 1, 30.0, address="auto")
