"""Whatever words stand on the command line: it is done, or refused in one line.

Every command is really run, on a run of the toy game. One that has found nothing wrong is sent a
Ctrl-C after a moment, as by a user, so that none trains or serves for long. Engines that start
processes are left out, and so are the measurements of `bench`: what these check before they begin
is real, then they count as interrupted.
"""

from __future__ import annotations

import contextlib
import gc
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest
from hostile import MAX_LINE, Worst, for_examples, quick_and_soak, within_limits
from hypothesis import strategies as st
from readers import make_trained
from toys import toy_config

from pixelpong.bench import solve, throughput
from pixelpong.config import OPTIONS
from pixelpong.faces.cli import main
from pixelpong.faces.cli.parser import list_commands
from pixelpong.sweep.sweep import Sweep

PATIENCE = 0.4
"""Seconds until the Ctrl-C."""

LONG = (
    (throughput, "measure_throughput"), (solve, "solve"), (solve, "predict"), (Sweep, "carry_out"),
)  # fmt: skip

COMMANDS = {
    "train": ("--engine", "serial", "--environment", "Catch-v0", "--hidden", "2", "--updates", "2"),
    "resume": ("run",),
    "sweep": ("mine.toml", "--engine", "serial", "--seeds", "0-1", "--out", "new"),
    "sweep resume": ("swept", "--engine", "serial"),
    "evaluate": ("run", "--engine", "serial", "--episodes", "2"),
    "tournament": ("follower-200", "builtin", "--games", "1", "--points", "1", "--workers", "1"),
    "inspect": ("run",),
    "verify": ("--engines", "serial", "--environment", "Catch-v0", "--updates", "1"),
    "record": ("run", "--out", "film.gif"),
    "plot": ("run", "--kind", "curve"),
    "dashboard": ("--port", "0"),
    "watch": ("run", "--port", "0"),
    "play": ("run", "--port", "0"),
    "export": ("run", "--html", "page.html"),
    "bench throughput": (), "bench solve": (), "bench predict": (),
}  # fmt: skip
"""Each command, and words with which it has something to do."""

ODD_WORDS = (
    "", "0", "-1", "1", "2", "3", "61", "1e999", "-1e999", "nan", "inf", "1e-9", "0.5", "9" * 400,
    "9" * 5000, "0x10", "1_000", "\u0661", "\u00b2", "\u00e9", "\u2028", "\U0001f3d3", "\0",
    "a\0b", "\n", "a\nb", "\x1b[31m", "\udcff", "a" * 300, "b" * 100_000, "-", "--", "---", "=",
    "--=", "-h", "run", "none", "runs", "best", "latest", "2,", ",", "1,1", "0-99999999999",
    "0-999", "all", "curve", "weights", "png", "svg", "png,svg", "pdf", "serial", "threads",
    "classic", "fast", "karpathy", "Catch-v0", "Pong-v0", "ppo", "float64", "true", "yes", "no",
    "film.gif", "film.webp", "film.xyz", "mine.toml", "bad.toml", "run/config.json", "fifo",
    "tensorboard", "{}", "%s", "$HOME", "*", "'", '"', "\\",
)  # fmt: skip
GOOD_WORDS = ("1", "2", "0.5", "run", "best", "latest", "classic", "new", "page.html", "film.gif")
ODD_HOSTS = ("127.0.0.1", "localhost", "", "\0", "a" * 300, "..", "\u00e9" * 80)


FLAGS = {
    name: [each.flag for each in (*command.options, *map(OPTIONS.get, command.training))]
    for name, command in list_commands().items()
}
"""The options of every command."""


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    """A command with odd words among good ones."""
    command = draw(st.sampled_from(sorted(COMMANDS)))
    words = [*command.split(), *COMMANDS[command]]
    for _ in range(draw(st.integers(0, 2))):
        flag = draw(st.sampled_from([*FLAGS[command], "--help", "--debug", "--none", "--no-json"]))
        odd = st.sampled_from(ODD_HOSTS if flag == "--host" else ODD_WORDS)
        if flag != "--host":
            odd |= st.sampled_from(GOOD_WORDS) | st.text(max_size=6) | st.floats().map(str)
        value = draw(odd)
        kind = draw(st.sampled_from(["pair", "pair", "pair", "equals", "flag", "word", "swap"]))
        at = draw(st.integers(len(command.split()), len(words)))
        if kind == "swap" and at < len(words) and words[at] not in ("--host",):
            words[at] = value
        elif kind == "word" and flag != "--host":
            words[at:at] = [value]
        elif kind == "equals":
            words[at:at] = [f"{flag}={value}"]
        elif kind == "flag" and flag != "--host":
            words[at:at] = [flag]
        else:
            words += [flag, value]
    return words


def is_safe(words: list[str]) -> bool:
    """Whether these words name nothing outside of the test's folder, nor start processes."""
    text = " ".join(words)
    leads_out = any(re.search(r"(^|=)[/~]|\.\.", word) for word in words)
    is_host = "--host" in text and not any(word in ODD_HOSTS for word in words)
    return not (leads_out or is_host or re.search(r"\b(processes|ray|auto|wandb)\b", text))


def _begin(*args, **kwargs):
    """What a measurement that is left out does."""
    raise KeyboardInterrupt


@contextlib.contextmanager
def ctrl_c_after(seconds: float):
    """Send this process SIGINT while inside, after so many seconds, and again until it is out."""
    is_inside, is_out = True, threading.Event()

    def interrupt(*_):
        if is_inside:
            raise KeyboardInterrupt

    def insist():
        pause = seconds
        while not is_out.wait(pause):
            os.kill(os.getpid(), signal.SIGINT)
            pause = 3.0  # it may have come where Python cannot raise anything

    before, callbacks = signal.signal(signal.SIGINT, interrupt), gc.callbacks[:]
    gc.callbacks.clear()  # hypothesis has one, in which the exception would be lost
    thread = threading.Thread(target=insist)
    thread.start()
    try:
        yield
    finally:
        try:
            is_inside = False
        finally:
            is_inside = False  # it may have come in the line before
            is_out.set()
            thread.join()
        signal.signal(signal.SIGINT, before)
        gc.callbacks[:] = callbacks


def call(capsys, words: list[str], patience: float = PATIENCE) -> tuple[int, str, str]:
    """Run a command line: exit code, standard output and error."""
    capsys.readouterr()
    code = 130
    with contextlib.suppress(KeyboardInterrupt), ctrl_c_after(patience):
        try:
            code = main(words)
        except SystemExit as end:
            code = end.code or 0
    return code, *capsys.readouterr()


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A folder with a trained run, files of options, and a pipe."""
    folder = tmp_path_factory.mktemp("template")
    make_trained(folder / "run", "classic")
    (folder / "mine.toml").write_text('hidden = 2\nenvironment = "Catch-v0"\n')
    (folder / "bad.toml").write_text("hidden = [")
    Sweep.create(folder / "swept", [toy_config("classic")]).__exit__()
    return folder


@pytest.fixture
def place(template, tmp_path, monkeypatch):
    """Make a fresh copy of it the current folder, as often as asked."""
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    for owner, name in LONG:
        monkeypatch.setattr(owner, name, _begin)
    folder = tmp_path / "place"

    def renew() -> None:
        monkeypatch.chdir(tmp_path)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(template, folder)
        monkeypatch.chdir(folder)

    return renew


def check_outcome(words: list[str], code: int, out: str, err: str) -> None:
    """An exit code of ours; if it is an error, one line that says so."""
    assert code in (0, 1, 2, 130), code
    assert "this is a bug" not in err, err
    if "--debug" not in words:
        assert "Traceback" not in out + err, err
    lines = [line for line in err.splitlines() if line.startswith("pixelpong: error: ")]
    assert len(lines) == (code in (1, 2)), err
    assert all(len(line) <= MAX_LINE for line in lines), len(lines[0])
    assert all(line.isprintable() for line in lines), lines


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@quick_and_soak(40, 1000)
def test_any_words_are_obeyed_or_refused_in_one_line(number, place, capsys):
    codes, worst = Counter(), Worst()

    def check(words):
        place()
        begun = Worst()
        with contextlib.suppress(AssertionError):  # what works may take longer
            with within_limits(begun, words):
                code, out, err = call(capsys, words)
        check_outcome(words, code, out, err)
        codes[code] += 1
        if code in (1, 2):
            assert begun.seconds <= 1.0, (begun.seconds, words)
            assert begun.megabytes <= 256, (begun.megabytes, words)
            worst.seconds = max(worst.seconds, begun.seconds)
            worst.megabytes = max(worst.megabytes, begun.megabytes)

    for_examples(number, command_lines().filter(is_safe), check)
    print(f"command line: {dict(codes)}, refused after at most {worst}")
    assert len(codes) >= 3


# --- what was found, and what a process is really given --------------------------------------

FOUND = [
    ("bench solve --seeds 0-99999999999", 2, "expected --seeds as 0-4 or 0,3,7"),
    ("train --config huge.toml", 2, "got more than 65536 bytes"),
    ("train --config many.toml", 2, "got a int of very many digits"),
    ("train --worker-timeout 1e300", 2, "--worker-timeout to be a number from 0.1 to 86400"),
    ("train --updates 9223372036854775808", 2, "expected --updates to be a whole number"),
]


@pytest.mark.parametrize(("line", "code", "words"), FOUND, ids=[line for line, *_ in FOUND])
def test_what_was_found_is_refused(place, capsys, line, code, words):
    place()
    Path("huge.toml").write_text("# " + "x" * 10_000_000)
    Path("many.toml").write_text("hidden = 0x" + "f" * 20_000)
    worst = Worst()
    with within_limits(worst, line):
        got, out, err = call(capsys, line.split(), patience=60.0)
    check_outcome(line.split(), got, out, err)
    assert got == code
    assert words in err


BYTES = [
    [b"inspect", b"\xff\xfe"], [b"train", b"--preset", "\u00e9".encode("latin-1")],
    [b"train", b"--seed", "\U0001f3d3".encode()], [b"resume", b"a\nb"],
    [b"train", b"--bath-size", b"x" * 100_000], [b"plot", b"\x1b[2J"],
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("words", BYTES, ids=lambda words: repr(words)[:60])
def test_a_process_that_is_given_any_bytes_says_one_line_in_ascii(place, words):
    """As a shell hands them over, where the terminal knows no letters but those of ASCII."""
    place()
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "pixelpong", *words],
        capture_output=True, env=environment, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode in (1, 2), done.stderr[-500:]
    assert done.stdout == b""
    assert done.stderr.startswith(b"pixelpong: error: "), done.stderr[:500]
    assert len(done.stderr.splitlines()) == 1
    assert len(done.stderr) <= MAX_LINE
    assert done.stderr.isascii()
    assert done.stderr.strip().decode().isprintable()
