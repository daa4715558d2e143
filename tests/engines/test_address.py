"""The address of a Ray cluster: what answers there, found out in seconds and without Ray."""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
from collections.abc import Iterator

import pytest
from waiting import join

from pixelpong.config import Config
from pixelpong.engines import address, started
from pixelpong.errors import ConfigError
from pixelpong.machine import is_installed

SETTINGS = b"\0\0\x06\x04\0\0\0\0\0\0\x05\0\0\x40\0"  # an HTTP/2 frame


@contextlib.contextmanager
def listener(says: bytes, *, closes: bool = False, host: str = "127.0.0.1") -> Iterator[int]:
    """A server that says something to each client; its port."""
    clients = []

    def serve() -> None:
        with contextlib.suppress(OSError):  # the test is over
            while True:
                client, _ = server.accept()
                clients.append(client)
                client.sendall(says)
                if closes:
                    client.close()

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as server:
        serving = threading.Thread(target=serve, daemon=True)
        serving.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        join(serving)  # it may have accepted a client a moment ago
    for client in clients:
        client.close()


@pytest.fixture(autouse=True)
def quick(monkeypatch, tmp_path):
    """Silence is short, and no cluster is known on this machine."""
    monkeypatch.setattr(address, "CONNECT_SECONDS", 0.5)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)


@pytest.mark.parametrize(
    ("says", "closes", "words"),
    [
        (b"", False, "timed out"),
        (b"\0\0\x06", False, "timed out"),
        (b"SSH-2.0-OpenSSH_9.2p1\r\n", False, "another program answers there, not Ray"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", True, "another program answers there, not Ray"),
        (b"abc", True, "the connection was closed"),
    ],
)
def test_a_server_that_is_not_rays_is_refused_with_one_line(says, closes, words):
    with listener(says, closes=closes) as port:
        where = f"127.0.0.1:{port}"
        with pytest.raises(ConfigError, match=f"a Ray cluster at {where}: {words}; start one"):
            address.find_cluster(where)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_server_that_speaks_as_ray_does_is_taken(host):
    with listener(SETTINGS, host=host) as port:
        shown = f"[::1]:{port}" if ":" in host else f"{host}:{port}"
        for spelling in (shown, f"{host}:{port}"):
            assert address.find_cluster(spelling) == shown


def test_with_tls_a_server_waits_for_the_client(monkeypatch):
    monkeypatch.setenv("RAY_USE_TLS", "1")
    with listener(b"") as port:
        assert address.find_cluster(f"127.0.0.1:{port}") == f"127.0.0.1:{port}"
    with pytest.raises(ConfigError, match="refused"):
        address.find_cluster(f"127.0.0.1:{port}")


@pytest.mark.parametrize(
    "spelling", ["nonsense", "host:", ":1", "[]:1", "host:99999", "host:0", "ray://h:1", "http://h"]
)
def test_a_spelling_that_is_none_is_refused(spelling):
    with pytest.raises(ConfigError, match="--ray-address must be auto or HOST:PORT, not"):
        address.find_cluster(spelling)


def test_the_variable_is_named_when_it_is_wrong(monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    for given in (None, "auto"):
        with pytest.raises(ConfigError, match="the value of RAY_ADDRESS: .*or unset RAY_ADDRESS"):
            address.find_cluster(given)
    monkeypatch.setenv("RAY_ADDRESS", "nonsense")
    with pytest.raises(ConfigError, match="RAY_ADDRESS must be auto"):
        address.find_cluster(None)
    with pytest.raises(ConfigError, match="127.0.0.1:2: .*or leave --ray-address out"):
        address.find_cluster("127.0.0.1:2")


def test_auto_is_the_cluster_that_was_last_started_here_if_it_still_answers(tmp_path):
    assert address.find_cluster("auto") == "auto", "Ray looks for it"
    (tmp_path / "ray").mkdir()
    with listener(SETTINGS) as port:
        (tmp_path / "ray/ray_current_cluster").write_text(f"127.0.0.1:{port}")
        assert address.find_cluster("auto") == f"127.0.0.1:{port}"
    with pytest.raises(ConfigError, match=f":{port}, which .*ray_current_cluster names: .*refused"):
        address.find_cluster("auto")


def test_without_an_address_ray_is_our_own():
    assert address.find_cluster(None) == address.find_cluster("local") == address.LOCAL


@pytest.mark.skipif(not is_installed("ray"), reason="Ray is not installed")
def test_an_address_is_checked_before_ray_is_loaded(monkeypatch):
    """Loading it takes seconds."""
    monkeypatch.setitem(sys.modules, "pixelpong.engines.ray", None)
    with pytest.raises(ConfigError, match="refused"):
        with started(Config(engine="ray", ray_address="127.0.0.1:1")):
            pass


def test_a_folder_with_the_name_of_a_library_is_no_library(tmp_path, monkeypatch):
    (tmp_path / "not_a_library").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    assert not is_installed("not_a_library")
    assert not is_installed("nothing_of_this_name")
    (tmp_path / "not_a_library/__init__.py").touch()
    assert is_installed("not_a_library")
