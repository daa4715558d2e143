"""What gets installed is pinned to one exact version, which the package's own ranges admit.

Known weaknesses of those versions are looked for by `pip-audit`, which needs the network, and so
by hand: `pip-audit -r constraints.txt --no-deps --disable-pip`.
"""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import sysconfig
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


def test_everything_that_is_installed_is_pinned():
    """In the virtual environment that `make` fills: what is declared, and all that it requires."""
    installed = importlib.metadata.distributions(path=[sysconfig.get_path("purelib")])
    found = {canonicalize_name(each.name): each.version for each in installed}
    for name in ("pixelpong", "pip", "setuptools"):  # itself, and what `venv` brings
        found.pop(name, None)
    assert found.keys() >= {"numpy", "ray", "hatchling", "llvmlite", "pathspec", "urllib3"}
    assert found.items() <= PINS.items()


def test_make_holds_the_build_to_the_constraints_too():
    """pip builds in an environment of its own, to which `-c` does not reach."""
    done = subprocess.run(
        ["make", "-n", "-B", "test"], cwd=ROOT, capture_output=True, text=True, check=True,
        env=os.environ | {"PYTHON": sys.executable},
    )  # fmt: skip
    (line,) = [line for line in done.stdout.splitlines() if "pip install" in line]
    for word in ("PIP_CONSTRAINT=constraints.txt", "PIP_BUILD_CONSTRAINT=constraints.txt"):
        assert word in line
