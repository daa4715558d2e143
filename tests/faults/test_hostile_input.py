"""Whatever is in a file: it is read, or refused with a declared error of one line.

Each input is given one second of processor time and 256 MB, and both are measured.
"""

from __future__ import annotations

import pytest
from hostile import Worst, for_examples, quick_and_soak, refuse_or_read
from readers import make_readers


@pytest.fixture(scope="module")
def readers(tmp_path_factory):
    return make_readers(tmp_path_factory.mktemp("readers"))


NAMES = (
    "checkpoint params.safetensors", "checkpoint state.safetensors", "checkpoint state.json",
    "checkpoint manifest.json", "counters classic", "counters fast", "arrays classic",
    "arrays fast", "params classic", "params fast", "agent classic", "agent fast",
    "lines metrics", "lines episodes", "lines evaluations", "lines replays", "page metrics",
    "page evaluations", "page replays", "page config", "replay", "config.json", "toml", "message",
    "snapshot Catch-v0", "snapshot ALE/Pong-v5",
)  # fmt: skip


def test_every_reader_is_here(readers):
    assert set(readers) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_what_the_package_writes_is_read(readers, name):
    readers[name].read(readers[name].valid)


@quick_and_soak(60)
@pytest.mark.parametrize("name", NAMES)
def test_any_file_is_read_or_refused_in_one_line(readers, name, number):
    reader, worst = readers[name], Worst()

    def check(content):
        refuse_or_read(lambda: reader.read(content), worst, content[:2000])

    for_examples(number, reader.inputs, check)
    print(f"{name}: {worst}")
