# SPDX-License-Identifier: Apache-2.0
"""Every block of the guide is run, in order, as one program; those marked `gpu` where there is one, `new` ones alone."""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile
from typing import Any

import pytest
from conftest import Run

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/guide/python.md"


def blocks() -> Any:
    return re.findall(r"^```python ?(\w*)\n(.*?)^```", PAGE.read_text(), re.M | re.S)


def test_the_guide(tmp_path: pathlib.Path, python: Run) -> None:
    text = "\n".join(body for mark, body in blocks() if mark == "")
    assert text.count("kiln.") > 5
    python(text)
    for mark, body in blocks():
        if mark == "new":
            python(body)


def test_the_guide_on_a_gpu(gpu: dict[str, Any], tmp_path: pathlib.Path, python: Run) -> None:
    pytest.importorskip("torch")
    python("\n".join(body for mark, body in blocks() if mark != "new"))


EXAMPLES = PAGE.parents[2] / "examples/python"


@pytest.mark.parametrize("name", sorted(file.name for file in EXAMPLES.glob("*.py")))
def test_the_examples(name: Any, tmp_path: pathlib.Path) -> None:
    """Each as a program; without a GPU they do what can be done."""
    done = subprocess.run([sys.executable, "-W", "error", EXAMPLES / name], cwd=tmp_path, env={**os.environ, "KILN_CACHE_DIR": str(tmp_path / "cache")}, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout


def test_every_example_is_listed() -> None:
    assert set(re.findall(r"\| \[(\w+\.py)\]\(", (EXAMPLES / "README.md").read_text())) == {file.name for file in EXAMPLES.glob("*.py")} - {"tour.py"}


def test_the_counties(tmp_path: pathlib.Path) -> None:
    """With counties that are squares; GeoPandas has the same one for every point."""
    geopandas, shapely = pytest.importorskip("geopandas"), pytest.importorskip("shapely")
    boxes = [shapely.box(x, y, x + 5, y + 5) for x in range(-125, -70, 5) for y in range(25, 45, 5)]
    geopandas.GeoDataFrame(geometry=boxes, crs="EPSG:4269").to_file(tmp_path / "squares.geojson")
    words = ["--map", "map.png"] if importlib.util.find_spec("matplotlib") else []
    done = subprocess.run([sys.executable, EXAMPLES.parent / "python_counties/counties.py", "squares.geojson", "--points", "5000", "--beside", *words], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "GeoPandas has the same county for every point" in done.stdout
    assert not words or (tmp_path / "map.png").stat().st_size > 1000


def test_a_package_that_ships_its_kernels(tmp_path: pathlib.Path, python: Run) -> None:
    """Built, installed beside nothing else, and run with the compiler forbidden."""
    here = PAGE.parents[2] / "examples/python_package"
    there = tmp_path / "package"
    shutil.copytree(here, there)
    environment = {**os.environ, "KILN_CACHE_DIR": str(tmp_path / "a cache"), "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    subprocess.run([sys.executable, "-m", "kiln.bundle", "src/waves/kernels.py", "-o", "src/waves/waves.kiln", "--arch", "sm_80,sm_90"], cwd=there, env=environment, check=True)
    if importlib.util.find_spec("wheel") is None:
        pytest.importorskip("setuptools", "70.1")  # which can make wheels itself
    # As pip does, which need not be in the environment that is tested.
    done = subprocess.run([sys.executable, "-c", "import setuptools.build_meta as backend; backend.build_wheel('dist')"], cwd=there, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(next((there / "dist").glob("waves-1.0-*.whl"))) as wheel:
        assert "waves/waves.kiln" in wheel.namelist()
        wheel.extractall(tmp_path / "installed")
    done = python((here / "check.py").read_text(), PYTHONPATH=os.pathsep.join([str(tmp_path / "installed"), environment["PYTHONPATH"]]))
    assert done.stdout.startswith("found in waves.kiln;")
