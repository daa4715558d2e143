"""Prints facts that should be the same on every platform, one a line.

    python tests/platforms/check.py --out here.txt         measure, and keep the lines in a file
    python tests/platforms/check.py --out here.txt fast    one part; --help lists them
    python tests/platforms/check.py --compare here.txt there.txt

Lines that begin with ``#`` have versions and times, and are not compared. Those that begin with
``?`` are of another program, ale-py: a difference is shown, and is no failure. Everything else must
be equal. It needs pixelpong with the extra [play]. It writes to the cache, a temporary folder and
the file ``--out``. To start Python, it runs the words of CHECK_PYTHON, separated by ``|``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

GAMES = ("pong", "breakout")
SEED = 1
PAGE_SECONDS = 600  # until the page must answer; an emulated machine is slow

Facts = Iterator[tuple[str, Any]]


def sha(arrays: list[Any]) -> str:
    """The SHA-256 of the bytes of arrays."""
    import numpy as np  # only if something is measured: --compare needs no package

    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


# --- parts: each yields names and facts --------------------------------------------------------


def check_ale(given: argparse.Namespace) -> Facts:
    """Each console against ALE: memory, rewards and every picture, in three styles of play."""
    from pixelpong.atari.games.rules import open_cartridge
    from pixelpong.atari.machine.compiled import load_game
    from pixelpong.pong.native import PONG
    from pixelpong.verification import compare_with_ale

    for name in GAMES:
        game = open_cartridge(PONG) if name == "pong" else load_game(name)
        found = compare_with_ale(game, 0, given.frames)
        yield f"{name} against ALE", json.dumps(vars(found))


def check_vectors(given: argparse.Namespace) -> Facts:
    """The bytes of `make_vec` and of ale-py's AtariVectorEnv, with the same actions."""
    import ale_py
    import numpy as np
    from ale_py.vector_env import AtariVectorEnv

    import pixelpong

    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    for name in GAMES:
        made = {
            "make_vec": pixelpong.make_vec(2, game=name, num_threads=1),
            "AtariVectorEnv": AtariVectorEnv(name, 2, num_threads=1),
        }
        hashes = {}
        for kind, envs in made.items():
            rng, (begun, facts) = np.random.default_rng(0), envs.reset(seed=0)
            kept = [begun]
            for _ in range(given.steps):
                kept += envs.step(rng.integers(envs.single_action_space.n, size=2))[:4]
            hashes[kind] = sha(kept)
            mark = "" if kind == "make_vec" else "? "
            yield f"{mark}{name}, {kind}, frames at reset", facts["episode_frame_number"].tolist()
            yield f"{mark}{name}, {kind}, {given.steps} steps", hashes[kind]
            envs.close()
        yield f"? {name}, make_vec equals AtariVectorEnv", len({*hashes.values()}) == 1


def check_game(given: argparse.Namespace) -> Facts:
    """One game of `make_vec` to its end, with random actions."""
    import numpy as np

    import pixelpong

    envs = pixelpong.make_vec(1, game="pong", num_threads=1)
    rng, total, digest, num_steps = np.random.default_rng(SEED), 0.0, hashlib.sha256(), 0
    envs.reset(seed=SEED)
    is_over = False
    while not is_over:
        pictures, rewards, ended, cut, _ = envs.step(rng.integers(6, size=1))
        digest.update(sha([pictures, rewards]).encode())
        total, num_steps = total + float(rewards[0]), num_steps + 1
        is_over = bool(ended[0] or cut[0])
    yield "pong, a game of make_vec", f"{num_steps} steps, {total:+.0f}, {digest.hexdigest()}"


def train_in_parts(preset: str, first: int, **options: Any) -> Facts:
    """Train, then resume for one update with threads; the hashes of the parameters."""
    import pixelpong

    with tempfile.TemporaryDirectory() as folder:
        path, options = Path(folder) / "run", {"seed": SEED, "engine": "serial"} | options
        trained = pixelpong.train(preset, run=path, quiet=True, updates=first, **options).outcome
        words = "".join(f", {name} {value}" for name, value in options.items())
        yield f"{preset}{words}, updates {first}", trained.params_sha256
        more = {"updates": first + 1, "engine": "threads", "workers": 2}
        resumed = pixelpong.resume(path, quiet=True, **more).outcome
        yield f"{preset}, resumed to {first + 1} with two threads", resumed.params_sha256


def check_fast(given: argparse.Namespace) -> Facts:
    """The preset fast."""
    return train_in_parts("fast", given.updates)


def check_classic(given: argparse.Namespace) -> Facts:
    """The preset classic, with small batches."""
    return train_in_parts("classic", given.updates, batch_size=2)


def check_atari(given: argparse.Namespace) -> Facts:
    """The preset atari, with what is found out about Breakout from random play."""
    return train_in_parts("atari", given.updates, game="breakout", final_episodes=0)


def check_agent(given: argparse.Namespace) -> Facts:
    """Greedy games of the agent that comes with the package."""
    import pixelpong

    yield (
        "two greedy games of the package's agent",
        str(pixelpong.evaluate("package", episodes=2, engine="serial")).splitlines()[-1],
    )


def check_page(given: argparse.Namespace) -> Facts:
    """The page, over a real connection: three of its addresses."""
    from pixelpong.faces.page.serving import ServedPage

    with tempfile.TemporaryDirectory() as folder:
        with ServedPage(Path(folder), "127.0.0.1", 0, tell=lambda line: None) as page:
            for path in ("/", "/static/app.js", "/api/runs"):
                url = urllib.parse.urljoin(page.url, path)
                with urllib.request.urlopen(url, timeout=PAGE_SECONDS) as answer:
                    content = answer.read().replace(b"\r\n", b"\n")  # as Git may check it out
                    kind, digest = answer.headers["content-type"], sha([bytearray(content)])
                    yield f"the page, {path}", f"{answer.status}, {kind}, {digest}"


ANOTHER = """
import sys
from pathlib import Path
from pixelpong.errors import RunError
from pixelpong.run.locks import is_live, lock_folder
folder = Path(sys.argv[1])
print(is_live(folder), is_live(folder))
try:
    with lock_folder(folder):
        print("let in")
except RunError as error:
    print(str(error).replace(sys.argv[1], "RUN").replace(sys.argv[2], "PID"))
"""


def check_files(given: argparse.Namespace) -> Facts:
    """Locks, files that somebody has open, and what a pipe gets."""
    from pixelpong.errors import RunError
    from pixelpong.run.files import write_whole
    from pixelpong.run.locks import is_live, lock_folder

    python = os.environ.get("CHECK_PYTHON", sys.executable).split("|")

    def ask(*words: str) -> str:
        done = subprocess.run([*python, *words], stdout=subprocess.PIPE, timeout=PAGE_SECONDS)
        return " / ".join(done.stdout.decode("utf-8").splitlines())

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with lock_folder(folder) as lock:
            yield (
                "a run that is being trained, in another process",
                ask("-c", ANOTHER, name, str(os.getpid())),
            )
            lock.require_held()
        yield "a run that was trained, in another process", ask("-c", ANOTHER, name, "")
        yield "a run that was trained, in this one", is_live(folder)

        path = folder / "table.csv"
        write_whole(path, b"before")
        with path.open("rb"):
            try:
                write_whole(path, b"after")
                yield "? a file that is open", "is replaced"
            except RunError as error:
                yield "? a file that is open", str(error).replace(name, "FOLDER")
        write_whole(path, b"after")
        yield "a file that was open", path.read_bytes().decode()
        threading.Timer(0.3, path.open("rb").close).start()
        write_whole(path, b"later")
        yield "a file that is open for a moment", path.read_bytes().decode()
        told = ask("-m", "pixelpong", "evaluate", "beginner", "--episodes", "1")
        yield "a minus sign in a pipe", "\u2212" in told


def check_win(given: argparse.Namespace) -> Facts:
    """The training that is the recorded win, seed 0: its hash after every ten updates.

    After 220 updates, or 1,802,240 steps, it has won. No games test that here: they change no
    parameter, and take longer than the training.
    """
    from pixelpong.config.presets import load_preset
    from pixelpong.loop import train
    from pixelpong.run.directory import RunDirectory

    config = load_preset("fast").updated({"until_return": None}, "check")
    with tempfile.TemporaryDirectory() as folder:
        run = None
        for updates in range(10, given.most + 1, 10):
            staged = config.updated({"updates": updates}, "check")
            run = run or RunDirectory.create(Path(folder) / "run", staged)
            ended = train(run.with_config(staged))
            yield f"fast, seed 0, {ended.progress.steps:,} steps", ended.params_sha256


def check_arithmetic(given: argparse.Namespace) -> Facts:
    """What compiled code gets from the kernels' exp and log, for many numbers."""
    import numba
    import numpy as np

    from pixelpong.kernels.elementary import exp, log

    @numba.njit
    def compute(x: Any, exps: Any, logs: Any) -> None:
        for i in range(len(x)):
            exps[i], logs[i] = exp(42 * x[i] - 40), log(x[i])

    x = np.random.default_rng(SEED).random(200_000)
    exps, logs = np.zeros_like(x), np.zeros_like(x)
    compute(x, exps, logs)
    yield f"exp and log of {len(x)} numbers", sha([exps, logs])


PARTS: dict[str, Callable[[argparse.Namespace], Facts]] = {
    "ale": check_ale,
    "vectors": check_vectors,
    "fast": check_fast,
    "classic": check_classic,
    "atari": check_atari,
    "agent": check_agent,
    "page": check_page,
    "files": check_files,
    "game": check_game,
    "arithmetic": check_arithmetic,
    "win": check_win,
}
USUAL = [part for part in PARTS if part != "win"]  # a win takes hours if it is emulated


# --- the program -------------------------------------------------------------------------------


def measure(given: argparse.Namespace) -> int:
    """Run the parts; print their lines as they come, and keep them."""
    lines: list[str] = []

    def say(line: str) -> None:
        lines.append(line)
        print(line.encode("ascii", "backslashreplace").decode(), flush=True)
        if given.out:
            Path(given.out).write_bytes("".join(f"{each}\n" for each in lines).encode())

    from pixelpong.machine import collect_versions

    say(f"# {platform.system()} {platform.machine()}, {json.dumps(collect_versions())}")
    is_whole = True
    for part in given.parts or USUAL:
        began = time.monotonic()
        try:
            for name, fact in PARTS[part](given):
                say(f"{name}: {fact}")
        except Exception as error:
            traceback.print_exc()
            say(f"{part}: {type(error).__name__}")
            is_whole = False
        say(f"# {part}: {time.monotonic() - began:.0f} s, {time.process_time():.0f} s of processor")
    return 0 if is_whole else 1


def compare(files: list[str]) -> int:
    """Print the lines in which two files differ; 0 if those that must be equal are so."""
    both = [
        [line for line in Path(file).read_text("utf-8").splitlines() if not line.startswith("#")]
        for file in files
    ]
    for mark, lines, others in zip("<>", both, both[::-1], strict=True):
        for line in lines:
            if line not in others:
                print(mark, line)
    first, second = ([line for line in lines if not line.startswith("?")] for lines in both)
    num_equal = len({*first} & {*second})
    print(f"{num_equal} of {max(len(first), len(second))} lines that must be equal are so")
    return 0 if first == second and first else 1


def main() -> int:
    """Measure, or compare two measurements."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--out", metavar="FILE")
    parser.add_argument("--compare", nargs=2, metavar="FILE")
    parser.add_argument("--frames", type=int, default=120, help="played beside ALE in each style")
    parser.add_argument("--steps", type=int, default=60, help="of two games of a vector")
    parser.add_argument("--updates", type=int, default=3, help="of each training")
    parser.add_argument("--most", type=int, default=220, help="updates of the part win")
    given = parser.parse_args()
    if given.compare:
        return compare(given.compare)
    unknown = [part for part in given.parts if part not in PARTS]
    if unknown:
        parser.error(f"no such part: {', '.join(unknown)}; the parts are {', '.join(PARTS)}")
    return measure(given)


if __name__ == "__main__":
    sys.exit(main())
