"""Whatever words stand on the command line: they are understood, or refused in one line."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hostile import MAX_LINE, REFUSED, for_examples, quick_and_soak, refuse_or_read
from hypothesis import strategies as st
from promises import promise

from pixelpong.config import OPTIONS
from pixelpong.config.presets import combine, read_toml
from pixelpong.faces.cli import COMMANDS, flags_of, parse

pytestmark = promise("any input")

ODD_WORDS = (
    "", "0", "-1", "1", "2", "61", "1e999", "-1e999", "nan", "inf", "1e-9", "0.5", "9" * 400,
    "9" * 5000, "0x10", "1_000", "\u0661", "\u00b2", "\u00e9", "\u2028", "\U0001f3d3", "\0",
    "a\0b", "\n", "a\nb", "\x1b[31m", "\udcff", "a" * 300, "b" * 100_000, "-", "--", "---", "=",
    "--=", "run", "none", "latest", "2,", ",", "1,1", "0-99999999999", "all", "curve", "svg",
    "serial", "classic", "fast", "Pong-v0", "ppo", "true", "no", "film.gif", "mine.toml",
    "bad.toml", "{}", "%s", "$HOME", "*", "'", '"', "\\",
)  # fmt: skip

FLAGS = {name: [each.flag for each in flags_of(name)] for name in COMMANDS}
"""The options of every command."""


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    """A command with odd words, some of them behind options that it has."""
    command = draw(st.sampled_from(sorted(FLAGS)))
    words = command.split()
    for _ in range(draw(st.integers(0, 4))):
        value = draw(st.sampled_from(ODD_WORDS) | st.text(max_size=6) | st.floats().map(str))
        flag = draw(st.sampled_from([*FLAGS[command], "--debug", "--none", "--no-json"]))
        kind = draw(st.sampled_from(["pair", "pair", "equals", "flag", "word"]))
        words += {
            "pair": [flag, value], "equals": [f"{flag}={value}"], "flag": [flag], "word": [value],
        }[kind]  # fmt: skip
    return words


@pytest.mark.slow
@quick_and_soak(200, 100_000)
def test_any_words_are_understood_or_refused_in_one_line(number, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text('hidden = 2\nenvironment = "Pong-v0"\n')
    Path("bad.toml").write_text("hidden = [")
    found = Counter()

    def understand(words):
        try:
            *_, options = parse(words)
        except SystemExit as end:
            return end.code
        if words[0] == "train":
            file = options.get("config")
            given = {name: value for name, value in options.items() if name in OPTIONS}
            combine(None, read_toml(Path(file)) if file else {}, given, (str(file), "train"))
        return 0

    def check(words):
        found[refuse_or_read(lambda: understand(words), words) is REFUSED] += 1

    for_examples(number, command_lines(), check)
    assert min(found[True], found[False]) > 0.05 * number


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [[b"evaluate", b"\xff\xfe"], [b"train", b"a\nb", b"\x1b" * 100_000]], ids=len
)
def test_a_process_that_is_given_any_bytes_says_one_line_in_ascii(tmp_path, words):
    """As a shell hands them over, where the terminal knows no letters but those of ASCII."""
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "pixelpong", *words],
        cwd=tmp_path, capture_output=True, env=environment, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode in (1, 2), done.stdout) == (True, b""), done.stderr[-500:]
    assert done.stderr.startswith(b"pixelpong: error: "), done.stderr[:500]
    (line,) = done.stderr.decode("ascii").splitlines()
    assert len(line) <= MAX_LINE
    assert line.isprintable()
