"""How a command hears Ctrl-C and SIGTERM, from the first line of its process to the end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from drivers import Driver
from promises import promise
from waiting import wait_until

pytestmark = promise("signals")

COMMAND = """
import atexit, os, sys, types
import pixelpong.faces
from pixelpong.faces.interrupts import stop_on_signals

def send():
    os.kill(os.getpid(), {number})

def main(begin):
{body}

pixelpong.faces.cli = sys.modules["pixelpong.faces.cli"] = types.SimpleNamespace(
    main=main
)
from pixelpong.__main__ import main
main()
"""


STOPPABLE = "with stop_on_signals() as should_stop: "

# What a command does; its exit code and what it prints.
COMMANDS = {
    # Not raised at once: it could come in an import, where Python may lose an exception.
    "before it begins, it is noted and then heeded": (
        ["send()", "print('reading')", "begin()", "print('at work')"], 130, "reading\n",
    ),
    "a training is told of one that came before it": (
        ["send()", STOPPABLE + "print(should_stop())", "return 130"], 130, "True\n",
    ),
    "at work the first is an exception": (
        ["begin()", "try:", "    send()", "except KeyboardInterrupt:", "    send()",
         "    return 7"], 7, "",
    ),
    "after a stop it changes nothing": (
        ["begin()", STOPPABLE + "send()", "send()", "return 7 + should_stop()"], 8, "",
    ),
    "without a stop it is heard as before": (
        ["begin()", STOPPABLE + "pass", "send()", "return 7"], 130, "",
    ),
    "at the end it changes nothing": (["begin()", "atexit.register(send)", "return 7"], 7, ""),
    "one that comes out of an exec is not remembered": (
        ["begin()", "try:", "    exec('send()', globals())", "except KeyboardInterrupt:",
         "    return 7"], 7, "",
    ),
}  # fmt: skip

# Another one, wherever the handler calls something: the handler of an Event has a lock, for which
# the second one would wait for ever.
INTO_THE_HANDLER = """
left = list(range(20))
def send_another(*_):
    if left:
        left.pop()
        send()
def work():
    sys.settrace(send_another)
    send()
    sys.settrace(None)
"""
for stop in ("", STOPPABLE):
    COMMANDS[f"one into the handler of another {stop}"] = (
        [*INTO_THE_HANDLER.split("\n"), stop + "work()", "return 7"], 7, "",
    )  # fmt: skip


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("what", COMMANDS)
def test_a_command_hears_a_signal_at_the_right_time(what, number, tmp_path):
    lines, code, said = COMMANDS[what]
    body = "\n".join("    " + line for line in lines)
    (tmp_path / "command.py").write_text(COMMAND.format(number=int(number), body=body))
    done = subprocess.run(
        [sys.executable, "-m", "command"], cwd=tmp_path, capture_output=True, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (code, said, "")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_tournaments_processes_end_with_it(tmp_path, number):
    """A terminal sends SIGINT to each of them; SIGKILL is for the command alone."""
    words = ["tournament", "perfect", "person", "--games", "1000", "--points", "3"]
    with Driver(tmp_path, *words, "--workers", "2") as driver:
        wait_until(lambda: len(driver.processes()) >= 4)  # with Python's resource tracker
        driver.send(number, to_all=number == signal.SIGINT)
        assert driver.wait() == (130 if number == signal.SIGINT else -signal.SIGKILL)
        wait_until(lambda: not driver.processes())
    assert driver.said() in ("", "pixelpong: interrupted\n") or number == signal.SIGKILL
