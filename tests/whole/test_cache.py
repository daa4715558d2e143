"""The cache of compiled code: whole files alone, from folders to which nobody else can write.

Files of numba and of the machine alike; `test_compiling` says what the cache is made from.
"""

from __future__ import annotations

import ctypes
import functools
import os
import pickle
import random
import runpy
import subprocess
import sys
from pathlib import Path

import numba
import pytest
from promises import promise
from waiting import PATIENCE

from pixelpong.atari.machine import cache
from pixelpong.atari.machine.native import NativeCode, Source
from pixelpong.atari.steps import compiling

pytestmark = promise("cached code")

KERNEL = """
from pixelpong.atari.steps.compiling import compiled

@compiled()
def triple(x):
    return 3 * x
"""
ANSWER = "define i32 @answer() {\n ret i32 42\n}\n"

# Plays so that both halves of the cache are used, and prints a hash of what it saw.
PLAY = """
import hashlib, numpy, pixelpong
envs = pixelpong.make_vec(2, "field", num_threads=1)
seen = hashlib.sha256(envs.reset(seed=1)[0])
for k in range(200):
    for array in envs.step(numpy.full(2, k % 6))[:2]:
        seen.update(array)
print(seen.hexdigest())
"""


@pytest.fixture
def use_cache(tmp_path, monkeypatch):
    """Use both halves of the cache as a new process with these variables would."""
    (tmp_path / "kernel.py").write_text(KERNEL)
    monkeypatch.setattr(compiling, "_PACKAGE", tmp_path / "package")
    monkeypatch.setattr(compiling, "_hash_sources", lambda function: "0123")

    def use(**variables: Path) -> bool:
        forget()
        monkeypatch.setattr(numba.config, "CACHE_DIR", str(variables.pop("NUMBA_CACHE_DIR", "")))
        for name in ("PIXELPONG_CACHE_DIR", "XDG_CACHE_HOME"):
            monkeypatch.delenv(name, raising=False)
        for name, value in ({"HOME": tmp_path / "home"} | variables).items():
            monkeypatch.setenv(name, str(value))
        triple = runpy.run_path(str(tmp_path / "kernel.py"))["triple"]
        assert [triple(14), triple(5)] == [42, 15]
        code = NativeCode([Source(b"key", lambda: ANSWER)])
        assert code.function("answer", ctypes.c_int32)() == 42
        return code.was_kept

    yield use
    forget()


def forget() -> None:
    compiling._drop_damaged.cache_clear()
    cache._warn_once.cache_clear()


def files_of(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_both_halves_of_the_cache_are_in_folders_of_this_user_alone(use_cache, tmp_path):
    """Whatever mode files get by default: otherwise, their own folder would not be trusted."""
    before = os.umask(0o002)
    try:
        assert [use_cache(), use_cache()] == [False, True]
    finally:
        os.umask(before)
    assert {path.suffix for path in files_of(tmp_path / "home")} == {
        ".nbi", ".nbc", ".machine", ""
    }  # fmt: skip
    for folder in (".cache", ".cache/pixelpong", ".cache/pixelpong/kernels-0123"):
        assert (tmp_path / "home" / folder).stat().st_mode & 0o777 == 0o700


# Where a cache may be, by the variable that names it.
PLACES = {
    "PIXELPONG_CACHE_DIR": "",
    "NUMBA_CACHE_DIR": "",
    "XDG_CACHE_HOME": "pixelpong",
    "HOME": ".cache/pixelpong",
}


@pytest.mark.parametrize("owner_or_mode", [0o777, 0o775, 0o707, 0o1777, "another user"], ids=str)
@pytest.mark.parametrize("name", PLACES)
def test_code_in_a_folder_that_others_can_write_to_is_not_run(
    use_cache, tmp_path, capfd, name, owner_or_mode
):
    """Also if its checksums are right, for anybody can make them; one line says so."""
    if owner_or_mode == "another user" and os.geteuid():
        pytest.skip("only root can give files away")
    folder = tmp_path / "shared" / PLACES[name]
    use_cache(**{name: tmp_path / "shared"})
    (index,) = folder.rglob("*.nbi")
    bomb = functools.partial(os.write, 2, b"code of another user\n")
    index.write_bytes(pickle.dumps(numba.__version__) + pickle.dumps(Bomb(bomb)))
    kernels = folder / "kernels-0123"
    cache.seal_files(kernels, [index])
    before = files_of(folder)
    if owner_or_mode == "another user":
        for path in (folder, *folder.rglob("*")):
            os.chown(path, 65534, 65534)
    else:
        folder.chmod(owner_or_mode)
    capfd.readouterr()
    use_cache(**{name: tmp_path / "shared"})
    err = capfd.readouterr().err
    assert (err.count("\n"), str(folder) in err, "another user" in err) == (
        1, True, owner_or_mode == "another user",
    )  # fmt: skip
    assert files_of(folder) == before


class Bomb:
    """Runs code when it is unpickled."""

    def __init__(self, run):
        self.run = run

    def __reduce__(self):
        return self.run.func, self.run.args


def test_the_folder_for_kernels_in_the_cache_must_be_trusted_too(use_cache, tmp_path, capfd):
    use_cache()
    kernels = tmp_path / "home/.cache/pixelpong/kernels-0123"
    before = files_of(kernels)
    kernels.chmod(0o777)
    use_cache()
    assert capfd.readouterr().err.count(f"{kernels} is not used") == 1
    assert files_of(kernels) == before
    assert [*(tmp_path / "package/__pycache__/kernels-0123").rglob("*.nbc")]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_code_that_root_owns_is_run(use_cache, tmp_path, monkeypatch):
    """As in an image whose cache root has filled, for whoever can write to it."""
    use_cache()
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert use_cache()


def test_a_flipped_bit_in_any_file_of_the_cache_is_noticed(use_cache, tmp_path):
    """In each of its files, at any place: it is deleted before it is read, and made anew."""
    use_cache()
    whole, rng = files_of(tmp_path / "home"), random.Random(0)
    assert len(whole) == 4
    for path, content in whole.items():
        for _ in range(3):
            damaged = bytearray(content)
            damaged[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
            path.write_bytes(damaged)
            use_cache()
            assert path.read_bytes() != bytes(damaged)
            assert use_cache(), "what was made anew is whole"
    folder = tmp_path / "home/.cache/pixelpong/kernels-0123"
    known = files_of(folder)
    cache.drop_unsealed(folder, folder.rglob("*.nb[ci]"))
    assert files_of(folder) == known


def test_another_kernels_whole_file_is_not_loaded(use_cache, tmp_path):
    use_cache()
    (code,) = (tmp_path / "home").rglob("*.nbc")
    (index,) = (tmp_path / "home").rglob("*.nbi")
    code.write_bytes(index.read_bytes())
    use_cache()
    assert code.read_bytes() != index.read_bytes()


def run(text: str, folder: Path) -> subprocess.Popen:
    environment = {**os.environ, "PIXELPONG_CACHE_DIR": str(folder)}
    words = [sys.executable, "-c", text]
    pipe = subprocess.PIPE
    return subprocess.Popen(words, env=environment, stdout=pipe, stderr=pipe, text=True)


@pytest.mark.slow
def test_with_a_flipped_bit_in_all_machine_code_the_same_game_is_played(tmp_path):
    """A process that ran it would crash, or show something else."""
    outcomes, rng = [], random.Random(0)
    for _ in range(2):
        process = run(PLAY, tmp_path)
        outcomes.append((*process.communicate(timeout=4 * PATIENCE), process.returncode))
        for path, content in files_of(tmp_path).items():
            if path.suffix in (".nbc", ".machine"):
                damaged, start = bytearray(content), content.index(b"\x7fELF")
                for place in range(start + 64, start + 4096, 16):  # the code comes first
                    damaged[place] ^= 1 << rng.randrange(8)
                path.write_bytes(damaged)
    assert outcomes[0] == outcomes[1]
    assert outcomes[0][1:] == ("", 0)


def test_processes_that_fill_an_empty_cache_at_once_do_not_disturb_each_other(tmp_path):
    (tmp_path / "kernel.py").write_text(KERNEL)
    text = (
        f"import sys; sys.path[0] = {str(tmp_path)!r}; from kernel import triple; print(triple(14))"
    )
    folder = tmp_path / "cache"
    processes = [run(text, folder) for _ in range(4)]
    assert [process.communicate(timeout=4 * PATIENCE) for process in processes] == [
        ("42\n", "")
    ] * 4
    (kernels,) = folder.glob("kernels-*")
    before = files_of(kernels)
    assert sorted(path.suffix for path in before) == ["", ".nbc", ".nbi"]
    cache.drop_unsealed(kernels, kernels.rglob("*.nb[ci]"))
    assert files_of(kernels) == before, "all that was written last is sealed"
