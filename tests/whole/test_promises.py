"""Each promise of `docs/reliability.md` has a test that has run."""

from __future__ import annotations

import re

import promises
import pytest

SKIPPED = """
import pytest
from promises import promise

@promise("rot")
@pytest.mark.parametrize("place", range(2))
def test_that_is_skipped(place):
    if place == 0 or {all}:
        pytest.skip("there is no disk")
"""


def test_each_promise_has_a_test_and_the_page_names_it():
    page = promises.PAGE.read_text("utf-8")
    assert promises.written_page() == page, "run: python tests/support/promises.py"
    rows = re.findall(r"^\| (?!name)[^|]+\| [^|]+\| ([^|]*)\|$", page, flags=re.M)
    assert len(rows) == len(promises.find_marks()) >= 20
    assert all(rows)


@pytest.mark.slow
@pytest.mark.parametrize(("all", "workers"), [(True, 0), (True, 2), (False, 0)])
def test_a_promise_whose_tests_were_all_skipped_fails_the_run(run_tests, all, workers):
    code, said = run_tests(SKIPPED.format(all=all), "-n", str(workers))
    assert code == (1 if all else 0), said
    assert ("no test of the promise 'rot' has run" in said) == all
