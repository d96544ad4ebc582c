# SPDX-License-Identifier: Apache-2.0
"""Every public name says what it is for, every function by an example that is run."""

import doctest
import inspect
import pathlib
from typing import Any

import kiln
import numpy
import pytest
from kiln import spatial

AREAS = ["POLYGON ((0 0, 2 0, 2 2, 0 2, 0 0))", "POLYGON ((2 0, 4 0, 4 2, 2 2, 2 0))"]
FLOODS = ["POLYGON ((1 1, 3 1, 3 3, 1 3, 1 1))"]
NAMES = {"kiln": kiln, "numpy": numpy, "spatial": spatial, "AREAS": AREAS, "FLOODS": FLOODS}

PUBLIC = {f"kiln.{name}": getattr(kiln, name) for name in kiln.__all__}
PUBLIC |= {f"spatial.{name}": value for name, value in vars(spatial).items()
           if not name.startswith("_") and inspect.isfunction(value) and value.__module__ == "kiln.spatial"}
PUBLIC["tropical.product"] = kiln.tropical.product
FUNCTIONS = sorted(name for name, value in PUBLIC.items() if inspect.isfunction(value))


def test_everything_public_is_described() -> None:
    assert [name for name, value in sorted(PUBLIC.items()) if not (inspect.getdoc(value) or "").strip()] == []
    assert len(FUNCTIONS) > 70


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_example_is_true(name: Any, request: pytest.FixtureRequest, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = inspect.getdoc(PUBLIC[name]) or ""
    test = doctest.DocTestParser().get_doctest(text, dict(NAMES), name, None, None)
    assert test.examples, f"{name} has no example"
    if "Before Kiln is used:" in text:
        pytest.skip("for programs that begin; test_values.py has it")
    if "On a GPU:" in text:
        request.getfixturevalue("gpu")
    if "With shapely:" in text:
        pytest.importorskip("shapely")
    monkeypatch.chdir(tmp_path)
    said: list[str] = []
    doctest.DocTestRunner().run(test, out=said.append)
    assert not said, "".join(said)
