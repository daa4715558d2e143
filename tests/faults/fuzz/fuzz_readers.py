"""Coverage-guided fuzzing of one reader, by atheris: see README.md beside this file."""

from __future__ import annotations

import importlib
import sys
import tempfile
import time
import warnings
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[1]))

LIBRARIES = ["pixelpong", "safetensors", "json", "tomllib", "base64"]

importlib.import_module("pixelpong.kernels")  # compiled from bytecode, which must be its own
with atheris.instrument_imports(include=LIBRARIES):
    from hostile import Worst, refuse_or_read
    from readers import make_readers

REPORT_SECONDS = 60.0


def main() -> None:
    """Fuzz the reader named first; the other words are libFuzzer's."""
    warnings.simplefilter("error")
    name = sys.argv.pop(1)
    folder = Path(tempfile.mkdtemp(prefix="pixelpong-fuzz-"))
    reader, worst = make_readers(folder)[name], Worst()
    corpus = folder / "corpus"
    corpus.mkdir()
    (corpus / "valid").write_bytes(reader.valid)
    said = time.monotonic()

    def try_one(content: bytes) -> None:
        nonlocal said
        refuse_or_read(lambda: reader.read(content), worst, content[:2000])
        if time.monotonic() - said > REPORT_SECONDS:
            said = time.monotonic()
            print(f"{name}: {worst}", flush=True)

    atheris.Setup([*sys.argv, str(corpus)], try_one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
