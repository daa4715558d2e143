"""What cannot be done: one line, the same on the command line and from Python, and nothing made."""

from __future__ import annotations

import ast
import itertools
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from disks import contents
from promises import promise
from toys import toy_evaluation

import pixelpong
from pixelpong import Config, PixelpongError, Policy, Run, evaluate, make_env, train, training
from pixelpong.run.directory import RunDirectory
from pixelpong.sweeps.sweep import create_sweep


class Row(NamedTuple):
    """A command line and what the error tells, in pieces with … between them."""

    line: str
    says: str
    code: int = 2
    file: str = ""  # the content of ``given.toml``
    lacks: str = "none"  # a library that is not installed


WORDS = [
    Row("frobnicate", "unknown command 'frobnicate'; … train, resume"),
    Row("trian", "'trian'; did you mean train?"),
    Row("train fast", "unknown argument 'fast'; did you mean --preset fast?"),
    Row("train --batch-size", "--batch-size: expected one argument; see `pixelpong train --help`"),
    Row("resume", "required: RUN; see `pixelpong resume --help`"),
    *(  # as Python writes numbers
        Row(f"sweep --seeds {seeds}", f"--seeds must be numbers such as 0-4 or … not '{seeds}'")
        for seeds in ("1_0", "+1")
    ),
]
ROWS = [
    Row(
        "train --name 'fast-001 '",
        "A run cannot be called 'fast-001 '; choose a name such as",
    ),
    Row("train --learning-rate 0", "--learning-rate must be a number from 1e-12 to 10, not 0"),
    *(
        Row(f"sweep --seeds {seeds}", f"--seeds must be numbers such as 0-4 or … not '{seeds}'")
        for seeds in ("5-", "3-1", "3-1,5", "1,,2", "٣", "0-99999999999999999999")
    ),
    Row("train --bath-size 3", "unknown option '--bath-size'; did you mean --batch-size?"),
    Row(
        "train --engine therads",
        "must be serial, threads or ray, not 'therads'; did you mean threads?",
    ),
    Row("train --batch-size abc", "must be a whole number from 1 to 100000, not 'abc'"),
    Row("plot run --out curve.jpeg", "must end in .png, .svg or .pdf, not .jpeg"),
    Row("plot", "Name a run to plot"),
    Row("export run --out agent.onnx", "must end in .safetensors, not agent.onnx"),
    Row("play --port 65536", "--port must be a whole number from 0 to 65535, not 65536"),
    Row("play --port 0 --host 192.0.2.1", "cannot listen on 192.0.2.1:0: Cannot assign … --host"),
    Row(f"play --port 0 --host {300 * 'x'}", f"cannot listen on {60 * 'x'}:0: … --host"),
    Row("record run --out film.avi", "must end in .mp4 or .gif, not film.avi"),
    Row("train --name x --run y", "run … name, not both"),
    Row("train --batch-size 20", "batch_size is an option of REINFORCE"),
    Row("resume run --seed 4", "run was started with --seed 0, not 4"),
    Row("evaluate club --checkpoint 3", "club … checkpoint 3"),
    Row("tournament champion", "at least two players, not 1"),
    Row("tournament club builtin club", "club and club"),
    Row("sweep", "needs --seeds, such as 0-4, --games, or a file with a grid"),
    Row("sweep run", "run is a single run, not a sweep; `pixelpong resume run` continues it", 1),
    Row("sweep ''", "The name of the sweep is empty.", 1),
    Row("sweep gone", "All runs of the sweep … gone have been removed", 1),
    Row("sweep none.toml", "none.toml is neither a file of options nor a sweep; check its name", 1),
    Row("sweep --seeds 0-1 --engine serial --ray-address h:1", "--ray-address … --engine ray"),
    Row("resume run", "Nothing is left to train in run (budget spent at update 12; "),
    Row("resume run --updates 12", "Nothing is left to train in run (budget spent at update 12; "),
    Row("resume won --updates 99", "won (won … higher until_return, or until_return none"),
    Row("train --run runs/club", "A run cannot be called 'club'"),
    Row("train --run run", "run already exists; choose another name", 1),
    Row("train --opponent slef --run new", "did you mean self?", 1),
    Row("train --opponent run --run new", "PPO"),
    Row("train --opponent damaged.safetensors --run new", "cannot use the agent in damaged", 1),
    Row("train --opponent '' --run new", "The name of the run is empty.", 1),
    Row("resume none", "none is not a run; runs has fast-001", 1),
    Row("resume runs/", "runs is not a run; runs has fast-001", 1),
    Row("plot empty", "empty has no update to plot yet; train it first", 1),
    Row("play beginer --no-open", "did you mean beginner?", 1),
    Row("record run --checkpoint newest", "No agent … 'newest' … Saved: 0 … best, latest", 1),
    Row(
        "train --config none.toml",
        "cannot read none.toml: No such file … ; check its name",
    ),
    Row("evaluate given.toml", "agent in given.toml", 1),
    Row("tournament club perfect --out none/it.json", "the folder none does not exist", 1),
    Row("record run --out folder.mp4", "cannot write folder.mp4: it is a folder", 1),
    *(
        Row("train --config given.toml", says, file=text)
        for text, says in {
            "bach_size = 3": "given.toml: unknown option 'bach_size'; did you mean batch_size?",
            "num_envs = [1, 2]": "not [1, 2]; give one value, or use the list in a sweep",
            "# " + "x" * 10**7: "more than 65,536 bytes",
            "hidden = 0x" + "f" * 20_000: "more than 4,300 digits",
        }.items()
    ),
    *(
        Row("sweep given.toml --out new", says, code, file=text)
        for text, code, says in (
            ('learning_rat = 1\nseeds = "0"', 2, "'learning_rat'; did you mean learning_rate?"),
            (
                "learning_rate = [0.1, -1.0]",
                2,
                "learning_rate must be a number from 1e-12 to 10, not -1",
            ),
            ("rows = [1]", 2, "rows must be a list such as [{hidden = 32}, …], not [1]"),
            ("seed = [0, -5]", 2, "such as 0-4 or 0,3,7, at most 10,000 of them, not '0,-5'"),
            ('engine = "serial"', 2, "engine"),
            ('opponent = ["self", "haf"]', 1, "did you mean half?"),
            (
                'seeds = "0-999"\nhidden = [1,2,3,4,5,6,7,8,9,10,11]',
                2,
                "the grid has 11,000 runs, not 1 to 10,000",
            ),
        )
    ),
    Row("record run --out film.mp4", "pip install … -e '.[video]'", lacks="av"),
    Row("plot run", "pip install … -e '.[plot]'", lacks="matplotlib"),
    Row("dashboard --no-open", "pip install … -e '.[play]'", lacks="starlette"),
    Row("train --engine ray", "pip install … -e '.[ray]'", lacks="ray"),
]
PYTHON = [
    (lambda: train(updates="3"), "updates must be a whole number of at least 1 or none, not", 2),
    (lambda: train(Config()), "give updates, episodes, total_timesteps or until_return", 2),
    (lambda: train(run=5), "train: run must be text, a path or None, not 5", 2),
    (lambda: train(every=-1), "train: every must be a number of at least 0, not -1", 2),
    (lambda: Run("run").agent("newest"), "Saved: 0,  … 12, best, latest", 1),
    (
        lambda: evaluate(hidden=3),
        "evaluate does not take the option hidden. It takes environment",
        2,
    ),
    (lambda: Policy.load(None), "Policy.load: what must be text, a path or a Run, not None", 2),
    (lambda: evaluate(7), "evaluate: agent must be text, a path, a Run or a Policy, not 7", 2),
    (
        lambda: make_env("pixel"),
        "must be atari, … or field, not 'pixel'; did you mean pixels",
        2,
    ),
    (lambda: make_env(render_mode="human"), "render_mode must be rgb_array", 2),
    (lambda: train(config=""), "cannot read .: ", 2),
    (lambda: evaluate(Policy.load("package"), checkpoint="no"), "Policy … other checkpoints", 2),
    (lambda: training("fast", bogus=1), "training: unknown option 'bogus'; see", 2),
    (lambda: training(run="run"), "run already exists; choose another name", 1),
]


@pytest.fixture(scope="module")
def folder(toy_runs, tmp_path_factory) -> Path:
    """Runs and files to name; a refusal changes none of them."""
    folder = tmp_path_factory.mktemp("refusals")
    for name in ("run", "won"):
        shutil.copytree(toy_runs["classic"], folder / name)
    shutil.copytree(toy_runs["fast"], folder / "runs/fast-001")
    (folder / "damaged.safetensors").write_bytes(b"x" * 1000)
    (folder / "folder.mp4").mkdir()
    won = RunDirectory(folder / "won")
    RunDirectory.create(folder / "empty", won.config)
    shutil.rmtree(create_sweep(folder / "gone", [won.config]) / "seed-0")
    (folder / "gone/sweep.json").unlink()  # as an earlier version made it
    won.evaluations.append(toy_evaluation(12, 19.0, target=18.0, is_won=True))
    won.with_config(won.config.updated({"until_return": 18.0}, "test")).write_config(12)
    return folder


@pytest.fixture
def call_here(call, folder, monkeypatch):
    monkeypatch.chdir(folder)
    return call


def call_python(words: list[str]) -> Any:
    """The function that a command line names, with its words as Python's values."""
    places = list(itertools.takewhile(lambda word: not word.startswith("--"), words[1:]))
    options: dict[str, Any] = {}
    for word in words[1 + len(places) :]:
        if word.startswith("--"):
            name = word.removeprefix("--").replace("-", "_")
            options[name] = True  # unless a value follows
        else:
            options[name] = read(word)
    return getattr(pixelpong, words[0])(*places, **options)


def read(word: str) -> Any:
    try:
        return ast.literal_eval(word)
    except (SyntaxError, ValueError):
        return word


def check_error(error: str, says: str) -> None:
    """It is one line, and has each piece; an option's name may be as Python writes it."""
    assert error.isprintable()
    text, wanted = (each.replace("--", "").replace("_", "-") for each in (error, says))
    assert [piece for piece in wanted.split(" … ") if piece not in text] == [], error


@promise("any input")
@promise("refusals")
@pytest.mark.parametrize("row", WORDS + ROWS, ids=lambda row: f"{row.line[:60]} {row.file[:20]}")
def test_what_cannot_be_done_is_one_line_and_leaves_everything_as_it_was(
    row, call_here, folder, monkeypatch
):
    monkeypatch.setitem(sys.modules, row.lacks, None)
    (folder / "given.toml").write_text(row.file)
    before, words = contents(folder), shlex.split(row.line)
    code, out, err = call_here(*words)
    assert (code, out, len(err.splitlines())) == (row.code, "", 1), err
    assert err.startswith("pixelpong: error: ")
    check_error(err.strip(), row.says)
    if words[0] in pixelpong.__all__ and row in ROWS:
        with pytest.raises(PixelpongError) as caught:
            call_python(words)
        assert caught.value.exit_code == row.code
        check_error(str(caught.value), row.says)
    assert contents(folder) == before


@pytest.mark.parametrize(("python", "says", "code"), PYTHON, ids=[says for _, says, _ in PYTHON])
def test_what_only_python_can_ask_is_refused_as_well(python, says, code, call_here, folder):
    before = contents(folder)
    with pytest.raises(PixelpongError) as caught:
        python()
    assert caught.value.exit_code == code
    check_error(str(caught.value), says)
    assert contents(folder) == before


def test_what_is_no_frame_is_refused():
    policy, dark = Policy.load("package"), np.zeros((210, 160, 3))
    for observation in (None, "frame", [[[0]]], dark, dark[:80].astype("u1"), dark[..., 0]):
        for method in (policy.act, policy.predict):
            with pytest.raises(PixelpongError) as caught:
                method(observation)
            check_error(
                str(caught.value),
                "the observation must be a frame … make_env(observation=",
            )
