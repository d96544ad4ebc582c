# SPDX-License-Identifier: Apache-2.0
"""The tropical pack on the command line: the 31 kernels of the library it replaces are there by name."""

from _kiln import check, data, run

rows = data("list", "--pack", "tropical")
names = {r["name"] for r in rows}
check(len(names) == len(rows), "every name once")
wanted = {f"tropical_{ring}_{kind}_nn{more}" for ring in ("maxplus", "minplus", "maxmul") for kind in ("f32", "f64", "i32", "i64")
          for more in ("", "_with_argmax")}
wanted |= {f"tropical_{ring}_f32_nn_batched_with_argmax" for ring in ("maxplus", "minplus", "maxmul")}
wanted |= {f"tropical_backward_{side}_{kind}" for side in "ab" for kind in ("f32", "f64")}
check(len(wanted) == 31, "31 of them")
check(wanted <= names, "all listed", sorted(wanted - names))
check(all(r["pack"] == "tropical" and r["kernels"] for r in rows), "with pack and kernels")
check({"prims", "tropical"} <= {r["pack"] for r in data("list")}, "beside the other packs")
check("no pack 'nosuch'" in run("list", "--pack", "nosuch", status=2).stderr, "an unknown pack")
