# SPDX-License-Identifier: Apache-2.0
"""Every block of the guide is run, in order, as one program; those marked `gpu` where there is one, `new` ones alone."""

import pathlib
import re

import pytest

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/guide/python.md"


def blocks():
    return re.findall(r"^```python ?(\w*)\n(.*?)^```", PAGE.read_text(), re.M | re.S)


def test_the_guide(tmp_path, python):
    text = "\n".join(body for mark, body in blocks() if mark == "")
    assert text.count("kiln.") > 5
    python(text)
    for mark, body in blocks():
        if mark == "new":
            python(body)


def test_the_guide_on_a_gpu(gpu, tmp_path, python):
    pytest.importorskip("torch")
    python("\n".join(body for mark, body in blocks() if mark != "new"))
