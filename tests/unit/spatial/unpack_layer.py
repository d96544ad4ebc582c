#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""unpack_layer.py IN.xz OUT: polygons packed as an xz of numpy arrays become one flat file: numbers of rows, rings and
vertices (i64), rings of rows, vertices of rings (i32), shell of rings (u8), x, y (f64). No numpy needed."""

import array
import ast
import io
import itertools
import lzma
import pathlib
import struct
import sys
import zipfile

CODES = {"i1": "b", "u1": "B", "b1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I", "i8": "q", "f8": "d", "f4": "f"}


def read_array(raw):
    size, = struct.unpack_from("<H", raw, 8)
    header = ast.literal_eval(raw[10:10 + size].decode("latin-1"))
    out = array.array(CODES[header["descr"][1:]])
    out.frombytes(raw[10 + size:])
    return out


with zipfile.ZipFile(io.BytesIO(lzma.decompress(pathlib.Path(sys.argv[1]).read_bytes()))) as packed:
    parts = {name.removesuffix(".npy"): read_array(packed.read(name)) for name in packed.namelist()}
if "dx" in parts:  # differences of whole multiples of 1 / scale
    scale = parts["scale"][0]
    x, y = ([v / scale for v in itertools.accumulate(parts[d])] for d in ("dx", "dy"))
else:
    x, y = parts["x"], parts["y"]
out = pathlib.Path(sys.argv[2])
out.parent.mkdir(parents=True, exist_ok=True)
with out.open("wb") as f:
    f.write(struct.pack("<3q", len(parts["poly_ring"]) - 1, len(parts["ring_off"]) - 1, len(x)))
    f.write(array.array("i", parts["poly_ring"]).tobytes())
    f.write(array.array("i", parts["ring_off"]).tobytes())
    f.write(array.array("B", parts["shell"]).tobytes())
    f.write(array.array("d", x).tobytes())
    f.write(array.array("d", y).tobytes())
