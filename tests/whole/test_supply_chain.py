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

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from promises import promise

pytestmark = promise("pins")

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = PYPROJECT["project"]
EXTRAS = PROJECT["optional-dependencies"]
LINES = [
    line
    for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    if line and not line.startswith("#")
]
PINS = {canonicalize_name(line.partition("==")[0]): line.partition("==")[2] for line in LINES}


def requirements_of(requirement: Requirement) -> list[Requirement]:
    """What a requirement brings here; for this package, as its pyproject.toml says."""
    extras = requirement.extras or {""}
    if requirement.name == "pixelpong":
        texts = PROJECT["dependencies"] + [text for each in extras - {""} for text in EXTRAS[each]]
    else:
        texts = importlib.metadata.distribution(requirement.name).requires or []
    return [
        each
        for each in map(Requirement, texts)
        if not each.marker or any(each.marker.evaluate({"extra": extra}) for extra in extras)
    ]


def walk(*texts: str) -> set[str]:
    """The names of all that these requirements bring, but this package's."""
    waiting, walked = [Requirement(text) for text in texts], set()
    for requirement in waiting:  # grows while it is walked
        key = (canonicalize_name(requirement.name), frozenset(requirement.extras))
        if key not in walked:
            walked.add(key)
            waiting += requirements_of(requirement)
    return {name for name, _ in walked} - {"pixelpong"}


def test_each_constraint_is_one_exact_version_which_the_ranges_admit():
    assert len(PINS) == len(LINES)
    for line in LINES:
        requirement = Requirement(line)
        assert [each.operator for each in requirement.specifier] == ["=="], line
        assert requirement.marker is None, line
    declared = [PYPROJECT["build-system"]["requires"], PROJECT["dependencies"], *EXTRAS.values()]
    for requirement in (Requirement(text) for texts in declared for text in texts):
        if requirement.name == "pixelpong":
            assert requirement.extras <= set(EXTRAS)
        else:
            assert requirement.specifier.contains(PINS[canonicalize_name(requirement.name)])


def test_everything_that_an_installation_brings_is_pinned():
    """What is declared, what builds the wheel and the editable one, and what these require."""
    found = walk("pixelpong[dev]", "hatchling", "editables")
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
