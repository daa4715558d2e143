"""What gets installed is pinned to one exact version, which the package's own ranges admit.

Known weaknesses of those versions are looked for by `pip-audit`, which needs the network, and so
by hand: `pip-audit -r constraints.txt --no-deps --disable-pip`.
"""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parent.parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = PYPROJECT["project"]
LINES = [
    line
    for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    if line and not line.startswith("#")
]
PINS = {canonicalize_name(line.partition("==")[0]): line.partition("==")[2] for line in LINES}
DECLARED = [
    Requirement(text)
    for texts in (
        PYPROJECT["build-system"]["requires"],
        PROJECT["dependencies"],
        *PROJECT["optional-dependencies"].values(),
    )
    for text in texts
]
BUILD = ["hatchling", "editables"]
"""What makes the wheel, and the editable one that `make` installs."""


def requirements_of(requirement: Requirement) -> list[Requirement]:
    """What a requirement brings here; for this package, as its pyproject.toml says."""
    if requirement.name == "pixelpong":
        extras = PROJECT["optional-dependencies"]
        texts = PROJECT["dependencies"] + [t for each in requirement.extras for t in extras[each]]
        return [Requirement(text) for text in texts]
    required = importlib.metadata.distribution(requirement.name).requires or ()
    found = [Requirement(text) for text in required]
    extras = requirement.extras or {""}
    return [
        each
        for each in found
        if not each.marker or any(each.marker.evaluate({"extra": extra}) for extra in extras)
    ]


def walk(*texts: str) -> set[str]:
    """The names of all that these requirements bring, but this package's."""
    waiting = [Requirement(text) for text in texts]
    walked = set()
    for requirement in waiting:  # grows while it is walked
        key = (canonicalize_name(requirement.name), frozenset(requirement.extras))
        if key not in walked:
            walked.add(key)
            waiting += requirements_of(requirement)
    return {name for name, _ in walked} - {"pixelpong"}


def test_each_constraint_is_one_exact_version_of_one_thing():
    assert len(PINS) == len(LINES)
    for line in LINES:
        requirement = Requirement(line)
        (specifier,) = requirement.specifier
        assert (specifier.operator, requirement.marker) == ("==", None), line
        assert str(Version(specifier.version)) == specifier.version.replace("-", "."), line


@pytest.mark.parametrize("requirement", DECLARED, ids=str)
def test_the_ranges_admit_the_pinned_version(requirement):
    if requirement.name == "pixelpong":
        assert set(requirement.extras) <= set(PROJECT["optional-dependencies"])
        return
    assert requirement.specifier.contains(PINS[canonicalize_name(requirement.name)])


def test_everything_that_an_installation_brings_is_pinned():
    """What is declared, the build of the package, and whatever these require in turn."""
    found = walk("pixelpong[dev]", *BUILD)
    assert found >= {"numpy", "ray", "hatchling", "llvmlite", "pathspec", "urllib3"}
    assert found <= set(PINS), found - set(PINS)
    installed = {name: importlib.metadata.version(name) for name in found}
    assert installed == {name: PINS[name] for name in found}


def test_make_holds_the_build_to_the_constraints_too():
    """pip builds in an environment of its own, to which `-c` does not reach."""
    done = subprocess.run(
        ["make", "-n", "-B", "test"], cwd=ROOT, capture_output=True, text=True, check=True,
        env=os.environ | {"PYTHON": sys.executable},
    )  # fmt: skip
    (line,) = [line for line in done.stdout.splitlines() if "pip install" in line]
    for word in ("PIP_CONSTRAINT=constraints.txt", "PIP_BUILD_CONSTRAINT=constraints.txt"):
        assert word in line
