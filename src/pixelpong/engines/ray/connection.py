"""Being connected to a Ray cluster, or having one of our own for a while."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ray

from pixelpong.errors import ConfigError, WorkerError, expected
from pixelpong.machine import count_cores

CONNECT_TIMEOUT = 5.0
"""Seconds until somebody at the cluster's address takes the connection."""

STORE_BYTES = 256 * 2**20
"""Object store of a Ray of our own: room for the parameters of several updates."""

# How HTTP/2, and so gRPC, begins: either side sends its settings (RFC 9113, 3.4).
_FRAME_BYTES, _SETTINGS = 9, 4
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, _SETTINGS, 0, 0, 0, 0, 0])

_FOLDER = "pixelpong-ray"
_MORTAL = str(Path(__file__).with_name("mortal.py"))


@contextlib.contextmanager
def connected(address: str | None, num_workers: int | None) -> Iterator[None]:
    """Be connected to a cluster, and where one is started for it, end it.

    Args:
        address: as in `RayEngine`. Where this process is connected already, it stays so.
        num_workers: cores of a Ray of our own; by default this machine's.

    Raises:
        ConfigError: nobody answers at the address.
        WorkerError: Ray does not start.
    """
    if ray.is_initialized():  # in a notebook, or in a program that uses Ray itself
        yield
        return
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    advice = "see it with 'ray status' on its head node"
    with contextlib.ExitStack() as stack:
        if address == "local":
            advice = "see Ray's message with --debug, or use --engine threads"
            options |= {
                "num_cpus": num_workers or count_cores(),
                "include_dashboard": False,
                "object_store_memory": STORE_BYTES,
                "_system_config": {"preallocate_plasma_memory": True},
                "_temp_dir": str(stack.enter_context(local_folder())),
            }
        else:
            _refuse_silence(address)
        stack.callback(ray.shutdown)
        try:
            with _own_signals():
                ray.init(address=address, **options)
            # Else Ray prints a page of advice for every worker that dies, log_to_driver or not.
            ray._private.worker._worker_logs_enabled = False
        except Exception as error:
            got = in_one_line(error)
            raise WorkerError(expected(f"a Ray cluster at {address}", got, advice)) from error
        yield


def _refuse_silence(address: str) -> None:
    """Ray would wait minutes for a cluster that is not there."""
    if address == "auto" or os.environ.get("RAY_USE_TLS"):
        return  # it looks for one on this machine, and says at once when there is none
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ConfigError(expected("--ray-address auto or HOST:PORT", address, "see --help"))
    try:
        with socket.create_connection((host, int(port)), CONNECT_TIMEOUT) as end:
            end.sendall(_GREETING)
            answer = end.recv(_FRAME_BYTES)
        if len(answer) < _FRAME_BYTES or answer[3] != _SETTINGS:
            raise OSError("something that does not speak gRPC")
    except OSError as error:
        advice = "start one with 'ray start --head', or leave --ray-address out"
        raise ConfigError(expected(f"a Ray cluster at {address}", error, advice)) from error


@contextlib.contextmanager
def _own_signals() -> Iterator[None]:
    """Ray takes SIGTERM for itself; the driver has its own way to stop."""
    try:
        before = signal.getsignal(signal.SIGTERM)
        yield
        signal.signal(signal.SIGTERM, before)
    except ValueError:  # not in the main thread, where nobody can take it
        pass


@contextlib.contextmanager
def local_folder() -> Iterator[Path]:
    """A folder for the files of our own Ray, gone afterwards; meanwhile, Ray is `_kept_here`.

    A driver that is killed leaves its folder behind; the next one removes it.
    """
    above = Path(tempfile.gettempdir())
    if len(str(above)) > 20:  # a socket's path has room for 107 letters, and Ray adds 70
        above = Path("/tmp")
    for left in above.glob(f"{_FOLDER}-*"):
        pid = left.name.split("-")[2]
        if pid.isdecimal() and not Path(f"/proc/{pid}").exists():
            shutil.rmtree(left, ignore_errors=True)
    # The secret of our own processes would else be written to the home folder.
    os.environ.setdefault("RAY_AUTH_TOKEN", os.urandom(32).hex())
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    folder = Path(tempfile.mkdtemp(prefix=f"{_FOLDER}-{os.getpid()}-", dir=above))
    try:
        with _kept_here():
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _kept_here() -> Iterator[None]:
    """Let a Ray that is started meanwhile talk to nobody, and be reached by nobody, elsewhere.

    It listens at the loopback address, as it does of itself on systems that are no servers. And
    it does without the process for usage statistics: with these switched off, that one still
    looks for the cloud it runs in (two addresses and a name, asked over the network), and for a
    cluster of several nodes it reports that they are switched off. Its other helpers end with the
    daemon that starts them, and that with the driver.
    """
    constants, services = ray._private.ray_constants, ray._private.services
    name = constants.ENABLE_RAY_CLUSTERS_ENV_VAR  # for its daemons, which read it as they start
    changes: list[tuple[Any, str, Any]] = [
        (constants, "ENABLE_RAY_CLUSTER", False),
        (services, "start_api_server", lambda *_, **__: (None, None)),
        (
            services,
            "_build_python_executable_command_memory_profileable",
            lambda *_, **__: [sys.executable, "-u", _MORTAL],
        ),
    ]
    with contextlib.ExitStack() as stack:
        for owner, attribute, value in changes:
            stack.callback(setattr, owner, attribute, getattr(owner, attribute))
            setattr(owner, attribute, value)
        stack.enter_context(environment(name, "0"))
        yield


@contextlib.contextmanager
def environment(name: str, value: str) -> Iterator[None]:
    """Set an environment variable for a while."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        os.environ.pop(name)
        if before is not None:
            os.environ[name] = before


def in_one_line(error: BaseException) -> str:
    """What Ray says, without its pages of advice."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}"
