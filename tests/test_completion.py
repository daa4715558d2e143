"""Completion: what a real shell offers after a tab."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("argcomplete")


@pytest.fixture
def complete(tmp_path):
    """What is offered after the words of a line, asked for as a shell asks."""
    for name in ("fast-001", "classic-001"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "config.json").touch()
    file = tmp_path / "offered"

    def go(line: str) -> set[str]:
        asked = {
            "_ARGCOMPLETE": "1", "_ARGCOMPLETE_STDOUT_FILENAME": str(file), "COMP_LINE": line,
            "_ARGCOMPLETE_IFS": "\n", "COMP_POINT": str(len(line)), "COMP_TYPE": "9",
        }  # fmt: skip
        subprocess.run(
            [sys.executable, "-m", "pixelpong"], cwd=tmp_path, env=os.environ | asked, check=True
        )
        return {word.strip() for word in file.read_text().split("\n")}

    return go


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("pixelpong re", {"resume", "record"}),
        ("pixelpong bench ", {"throughput", "solve", "predict"}),
        ("pixelpong train --learn", {"--learning-rate"}),
        ("pixelpong train --preset k", {"karpathy"}),
        ("pixelpong train --engine ", {"serial", "threads", "ray"}),
        ("pixelpong inspect ", {"latest", "fast-001", "classic-001"}),
        ("pixelpong inspect runs/f", {"runs/fast-001/"}),
        ("pixelpong play --checkpoint b", {"best", "beginner"}),
    ],
)
def test_a_tab_offers_what_may_come_next(complete, line, offered):
    assert offered <= complete(line)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_code_for_each_shell_is_code(call, shell):
    code, out, err = call("completion", shell)
    assert (code, err) == (0, "")
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=out, text=True, check=True)


@pytest.mark.slow
def test_bash_completes_the_program(call, tmp_path):
    """In a bash of its own, in which Tab has been pressed."""
    out = call("completion", "bash")[1]
    script = (
        out
        + """
COMP_LINE="pixelpong doc" COMP_POINT=13 COMP_WORDS=(pixelpong doc) COMP_CWORD=1 COMP_TYPE=9
_python_argcomplete pixelpong doc pixelpong
echo "${COMPREPLY[@]}"
"""
    )
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, env=os.environ | {"PATH": path}
    )
    assert done.stdout.split() == ["doctor"], done.stderr


def test_without_its_library_it_says_what_to_install(call, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    code, _, err = call("completion", "bash")
    assert code == 2
    assert "pip install 'pixelpong[completion]'" in err
