"""How a command hears Ctrl-C and SIGTERM, from the first line of its process to the end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

COMMAND = """
import atexit, os, sys, types
import pixelpong.faces
from pixelpong.interrupts import stop_on_signals

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


@pytest.fixture(params=[signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def run(request, tmp_path):
    """Run a command that does this, as ``python -m``; its exit code and output."""

    def go(*lines: str) -> tuple[int, str, str]:
        body = "\n".join("    " + line for line in lines)
        code = COMMAND.format(number=int(request.param), body=body)
        (tmp_path / "command.py").write_text(code)
        done = subprocess.run(
            [sys.executable, "-m", "command"], cwd=tmp_path, capture_output=True, text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL), timeout=60,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    return go


def test_before_the_command_begins_it_is_noted_and_then_heeded(run):
    """Not raised at once: it could come in an import, where Python may lose an exception."""
    assert run("send()", "print('reading words')", "begin()", "print('at work')") == (
        130, "reading words\n", "",
    )  # fmt: skip


def test_a_training_is_told_of_one_that_came_before_it(run):
    lines = ("send()", "with stop_on_signals() as should_stop:", "    print(should_stop())")
    assert run(*lines, "return 130") == (130, "True\n", "")


def test_at_work_it_is_an_exception(run):
    lines = ("begin()", "try:", "    send()", "    print('deaf')", "except KeyboardInterrupt:")
    assert run(*lines, "    return 7") == (7, "", "")


def test_only_the_first_is_an_exception(run):
    lines = ("begin()", "try:", "    send()", "except KeyboardInterrupt:", "    send()")
    assert run(*lines, "    return 7") == (7, "", "")


def test_after_a_stop_it_changes_nothing(run):
    lines = ("begin()", "with stop_on_signals() as should_stop:", "    send()", "send()")
    assert run(*lines, "return 7 + should_stop()") == (8, "", "")


def test_without_a_stop_it_is_heard_as_before(run):
    lines = ("begin()", "with stop_on_signals():", "    pass", "send()", "return 7")
    assert run(*lines) == (130, "", "")


def test_at_the_end_it_changes_nothing(run):
    assert run("begin()", "atexit.register(send)", "return 7") == (7, "", "")


def test_one_that_comes_out_of_an_exec_is_not_remembered(run):
    lines = ("begin()", "try:", "    exec('send()', globals())", "except KeyboardInterrupt:")
    assert run(*lines, "    return 7") == (7, "", "")


@pytest.mark.parametrize("stop", ["", "with stop_on_signals() as should_stop: "])
def test_one_that_comes_into_the_handler_of_another_is_not_waited_for(run, stop):
    """The handler of an Event has a lock, for which the second one would wait for ever."""
    lines = (
        "left = list(range(20))",
        "def work():",
        "    sys.settrace(send_another)",
        "    send()",
        "    sys.settrace(None)",
        "def send_another(*_):",  # wherever the handler calls something
        "    if left:",
        "        left.pop()",
        "        send()",
        f"{stop}work()",
    )
    assert run(*lines, "return 7") == (7, "", "")
