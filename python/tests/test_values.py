# SPDX-License-Identifier: Apache-2.0
"""Operators, structs, bundles, recordings, tables."""

import json
import os
import pathlib
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import kiln
import numpy
import pytest

from conftest import SAXPY, Run


def test_operators_are_values() -> None:
    cap = kiln.op("a + b > s ? s : a + b", s=numpy.int32(100))
    assert cap == kiln.op("a + b > s ? s : a + b", s=numpy.int32(100))
    assert pickle.loads(pickle.dumps(cap)) == cap
    assert cap != kiln.op("a + b > s ? s : a + b", s=numpy.int32(101))
    assert kiln.op("a", s=1.5, type="float32").state == numpy.float32(1.5).tobytes()
    with pytest.raises(kiln.InvalidArgument, match="does not fit"):
        kiln.op("a", s=300, type="uint8")


def test_structs_are_laid_out_as_c_does() -> None:
    assert (kiln.struct("p", "float x, y;").size, kiln.struct("p", "char c; double d;").size, kiln.struct("p", "int a[3]; char b;").size) == (8, 16, 16)
    with pytest.raises(kiln.InvalidArgument, match="cannot read 'string s'"):
        kiln.struct("p", "string s;")
    with pytest.raises(kiln.InvalidArgument, match="between 1 and 32"):
        kiln.struct("p", "double d[5];")
    for call in (lambda: kiln.struct("p", "float class;"), lambda: kiln.struct("p", "float 1x;"), lambda: kiln.struct("class", "float x;"),
                 lambda: kiln.spec("gather", numpy.dtype([("class", "f4")]))):
        with pytest.raises(kiln.InvalidArgument, match="is no word that C\\+\\+ would take"):
            call()


def test_a_bundle_is_all_a_program_needs(tmp_path: pathlib.Path, python: Run) -> None:
    file = tmp_path / "all.kiln"
    kiln.build(file, [kiln.Unit("saxpy", SAXPY)], archs=["sm_80", "sm_90"])
    text = f"import kiln\nkiln.configure(jit='forbid')\nkiln.add_bundle('{file}')\nprint(len(kiln.Unit('saxpy', r'''{SAXPY}''').artifact('sm_80').image) > 0, kiln.status()[0]['origin'])"
    assert python(text).stdout == "True bundle\n"


def test_what_a_build_did_is_seen(tmp_path: pathlib.Path, python: Run) -> None:
    """Compiled, found and failed, as if this process had done it itself."""
    done = python(f"""import kiln, json, os, time
good, bad = kiln.Unit("saxpy", r'''{SAXPY}'''), kiln.Unit("bad", "nonsense")
begun = time.monotonic()
kiln.build("a.kiln", [good], archs=["sm_80", "sm_90"])
assert sorted((e["unit"], e["target"]) for e in kiln.events("compiled")) == [("saxpy", "sm_80"), ("saxpy", "sm_90")]
assert all(e["duration"] > 0 and begun < e["time"] < time.monotonic() for e in kiln.events("compiled"))
rows = kiln.status()
assert sorted((r["name"], r["target"], r["state"], r["origin"], r["consumers"]) for r in rows) == [("saxpy", a, "ready", "compiled", "kiln.build") for a in ("sm_80", "sm_90")]
assert (rows.totals["ready"], rows.totals["compiled"], rows.totals["failed"]) == (2, 2, 0) and all(r["compile"] > 0 and r["bytes"] > 0 for r in rows)
kiln.build("b.kiln", [good], archs=["sm_90"])
assert len(kiln.events("compiled")) == 2 and any((e["unit"], e["reason"]) == ("saxpy", "disk") for e in kiln.events("found"))
assert sorted(r["origin"] for r in kiln.status()) == ["compiled", "disk"]
try: kiln.build("c.kiln", [good, bad], archs=["sm_90"])
except kiln.CompileFailed: pass
else: raise AssertionError("nobody said so")
assert [(e["unit"], e["reason"]) for e in kiln.events("compile_failed")] == [("bad", "compile-failed")]
row, = [r for r in kiln.status() if r["state"] == "failed"]
assert row["name"] == "bad" and "nonsense" in row["log"] and kiln.status().totals["failed"] == 1
assert "1 failed" in repr(kiln.status())
with kiln.record("app.profile"): kiln.Unit("other", 'extern "C" __global__ void other() {{}}').artifact("sm_90")
kiln.replay("app.profile", archs=["sm_80"], bundle="d.kiln")
assert any((e["unit"], e["target"]) == ("other", "sm_80") for e in kiln.events("compiled"))
assert any((r["name"], r["target"], r["consumers"]) == ("other", "sm_80", "kiln.replay") for r in kiln.status())
lines = [json.loads(line) for line in open("events.jsonl")]
assert len([e for e in lines if e["kind"] == "compiled"]) == 4 and {{e["pid"] for e in lines}} == {{os.getpid()}}
""", KILN_EVENTS=str(tmp_path / "events.jsonl"))
    assert done.stderr == ""


def test_warnings_of_a_build_are_logged_once(python: Run) -> None:
    text = f"import logging; logging.basicConfig(format='%(name)s %(message)s')\nimport kiln\nunit = kiln.Unit('saxpy', r'''{SAXPY}''')\n"
    ask, build = "unit.artifact('sm_90')\n", "kiln.build('a.kiln', [unit], archs=['sm_90'])\nkiln.Unit('o', 'extern \"C\" __global__ void o() {}').artifact('sm_90')\n"
    for words in (ask + build, build + build):
        heard = python(text + words, KILN_MAX_SIZE="plenty").stderr.splitlines()
        assert len(heard) == 1 and "KILN_MAX_SIZE" in heard[0], heard


def test_a_build_that_fails_leaves_the_bundle_as_it_was(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "good.kiln"
    good, bad = kiln.Unit("saxpy", SAXPY), kiln.Unit("bad", 'extern "C" __global__ void bad() { nonsense; }')
    kiln.build(file, [good], archs=["sm_90"])
    before = file.read_bytes()
    with pytest.raises(kiln.CompileFailed, match="nonsense"):
        kiln.build(file, [kiln.Unit("other", SAXPY.replace("saxpy", "other")), bad], archs=["sm_90"])
    assert file.read_bytes() == before and os.listdir(tmp_path) == ["good.kiln"]
    with pytest.raises(kiln.CompileFailed):
        kiln.build(tmp_path / "new.kiln", [good, bad], archs=["sm_90"])
    assert os.listdir(tmp_path) == ["good.kiln"]


def test_architectures_that_cannot_be(tmp_path: pathlib.Path) -> None:
    with pytest.raises(TypeError, match=r"archs\[0\] is a int; it must be a str"):
        kiln.build(tmp_path / "x.kiln", [kiln.Unit("saxpy", SAXPY)], archs=[90])  # type: ignore[list-item]
    (tmp_path / "x.profile").touch()
    with pytest.raises(TypeError, match=r"archs\[1\] is a int; it must be a str"):
        kiln.replay(tmp_path / "x.profile", archs=["sm_80", 90], bundle=tmp_path / "x.kiln")  # type: ignore[list-item]
    if not pathlib.Path("/dev/nvidiactl").exists():
        with pytest.raises(kiln.NoDevice, match="driver"):
            kiln.build(tmp_path / "x.kiln", [kiln.Unit("saxpy", SAXPY)], archs=["sm_90", "native"])


def test_the_other_byte_order_is_no_type() -> None:
    for call in (lambda type: kiln.spec("reduce", type), lambda type: kiln.make_reduce(type)):
        with pytest.raises(kiln.Unsupported, match="other byte order"):
            call(numpy.dtype(">i4"))


def test_settings(python: Run) -> None:
    python("""import kiln, os
import pathlib
kiln.configure(workers=4, compile_timeout='60', max_size='5G', worker_memory=2**30, gpu_pool_limit='512MiB', cuda_path=pathlib.Path('/x'))
assert (os.environ['KILN_WORKERS'], os.environ['KILN_CUDA_PATH']) == ('4', '/x')
kiln.configure(workers=None, cuda_path=None)
kiln.configure(bundle_key='release.pem.pub', readonly=True)
assert (os.environ['KILN_BUNDLE_KEY'], os.environ['KILN_READONLY']) == ('release.pem.pub', '1')
for wrong in ({'jit': 'maybe'}, {'execution_mode': 'tpu'}, {'readonly': 'perhaps'}, {'cache_mode': 1}, {'workers': -1}, {'workers': True}, {'workers': 1.5},
              {'max_size': '12 parsecs'}, {'worker_memory': 'much'}, {'compile_timeout': 'soon'}, {'compile_timeout': 0}, {'cuda_path': 5}):
    try: kiln.configure(**wrong)
    except kiln.InvalidArgument as why: assert 'it can be' in str(why), why
    else: raise AssertionError(wrong)
for wrong in ({'trusted_key': 'x'}, {'jit_': 'forbid'}):
    try: kiln.configure(**wrong)
    except kiln.InvalidArgument as why: assert 'there is no setting' in str(why) and 'bundle_key' in str(why)
    else: raise AssertionError(wrong)
kiln.status()
try: kiln.configure(jit='forbid')
except kiln.InvalidArgument as why: assert 'in use already' in str(why)
else: raise AssertionError('too late, and nobody said so')
""")


def test_every_setting_there_is_can_be_configured() -> None:
    from kiln import _bundles

    # What else is set under that name, as paths that tests are told, it would call misspelt.
    plain = {name: value for name, value in os.environ.items() if not name.startswith("KILN_")}
    listed = subprocess.run([_bundles.command(), "config", "--json"], capture_output=True, text=True, check=True, env=plain).stdout
    assert {one["name"].removeprefix("KILN_").lower() for one in json.loads(listed)["settings"]} == set(_bundles.SETTINGS)


def test_an_unsigned_bundle_is_not_believed_where_a_key_is_named(tmp_path: pathlib.Path, python: Run) -> None:
    from kiln import _bundles

    file, key = tmp_path / "all.kiln", tmp_path / "release.pem"
    subprocess.run([_bundles.command(), "key", key], capture_output=True, check=True)
    text = f"import kiln\nkiln.configure(bundle_key='{key}.pub', bundles='{file}', jit='forbid')\nunit = kiln.Unit('saxpy', r'''{SAXPY}''')\n"
    kiln.build(file, [kiln.Unit("saxpy", SAXPY)], archs=["sm_90"])
    assert python(text + "try: unit.artifact('sm_90')\nexcept kiln.Forbidden: print('refused')").stdout == "refused\n"
    kiln.build(file, [kiln.Unit("saxpy", SAXPY)], archs=["sm_90"], sign=str(key))
    python(text + "unit.artifact('sm_90')")


def test_build_names_what_it_cannot_do(tmp_path: pathlib.Path) -> None:
    with pytest.raises(kiln.InvalidArgument, match="archs"):
        kiln.build(tmp_path / "x.kiln", [kiln.Unit("saxpy", SAXPY)], archs=[])
    with pytest.raises(kiln.InvalidArgument, match="sm_1x"):
        kiln.build(tmp_path / "x.kiln", [kiln.Unit("saxpy", SAXPY)], archs=["sm_1x"])
    with pytest.raises(kiln.IoError, match="there is no folder"):
        kiln.build(tmp_path / "nosuch" / "x.kiln", [kiln.Unit("saxpy", SAXPY)], archs=["sm_90"])
    with pytest.raises(kiln.IoError, match="there is no key"):
        kiln.build(tmp_path / "x.kiln", [kiln.Unit("saxpy", SAXPY)], archs=["sm_90"], sign="nosuch.pem")
    with pytest.raises(kiln.CompileFailed, match="bad for sm_90") as caught:
        kiln.build(tmp_path / "x.kiln", [kiln.Unit("saxpy", SAXPY), kiln.Unit("bad", "nonsense")], archs=["sm_90"])
    assert "nonsense" in caught.value.log


def test_a_recording_is_replayed(tmp_path: pathlib.Path, python: Run) -> None:
    file = tmp_path / "app.profile"
    python(f"import kiln\nwith kiln.record('{file}'): kiln.Unit('saxpy', r'''{SAXPY}''').artifact('sm_90')")
    bundle = tmp_path / "app.kiln"
    kiln.replay(file, archs=["sm_100"], bundle=bundle)
    assert bundle.stat().st_size > 1000
    assert kiln.replay(file).demanded == 1


def test_a_recording_ends_with_its_block(tmp_path: pathlib.Path, python: Run) -> None:
    file = tmp_path / "app.profile"
    python(f"""import kiln
a, b, c = (kiln.Unit(name, r'''{SAXPY} //''' + name) for name in "abc")
a.artifact("sm_90")
with kiln.record("{file}"): b.artifact("sm_90")
c.artifact("sm_90")""")
    assert kiln.replay(file).demanded == 1


def test_kernels_are_recorded(tmp_path: pathlib.Path, python: Run, fake_driver: str) -> None:
    """A kernel that was asked for and loaded, without and with waiting."""
    file = tmp_path / "app.profile"
    python(fake_driver + f"""import kiln
one, two = (kiln.Unit(name, r'''{SAXPY} //''' + name) for name in ("one", "two"))
with kiln.record("{file}"):
    one.kernel("saxpy")
    two.get_async().result()
    one.kernel("saxpy")""")
    assert kiln.replay(file, archs=["sm_90"]).demanded == 2


def test_a_plan_says_what_is_cold() -> None:
    report = kiln.Plan("frame", [kiln.Unit("saxpy", SAXPY), kiln.Unit("bad", "nonsense")], archs=["sm_90"]).ensure_warm(60)
    assert not report
    assert [c.name for c in report.cold] == ["bad"]
    assert report.cold[0].state == "failed"
    assert "nonsense" in report.cold[0].log


CAP = kiln.op("a + b > s ? s : a + b", s=numpy.int32(100))


def test_specs_are_values() -> None:
    one = kiln.spec("inclusive_scan", "int32", CAP)
    assert pickle.loads(pickle.dumps(one)) == one and hash(one) == hash(kiln.spec("inclusive_scan", numpy.int32, CAP))
    assert kiln.spec("exclusive_scan", "int32").name == "exclusive_scan_i32"
    assert kiln.spec("radix_sort", "uint64", "int32").name == "radix_sort_u64_i32"
    assert kiln.spec("unique_by_key", "int32").name == "unique_by_key_i32_i32"
    for wrong in (("nosuch", "int32"), ("reduce",), ("reduce", "int32", "int32"), ("transform", "int32"), ("reduce", "int32", CAP, CAP)):
        with pytest.raises(kiln.InvalidArgument):
            kiln.spec(*wrong)


def test_specs_can_be_planned_for_and_built(tmp_path: pathlib.Path, python: Run) -> None:
    """A primitive with an operator nobody has compiled: for an architecture that is not here, and out of a bundle."""
    needs = kiln.requires("me", [kiln.spec("inclusive_scan", "int32", CAP), "exclusive_scan_i32", kiln.Unit("saxpy", SAXPY)])
    report = kiln.Plan("frame", needs, archs=["sm_90"]).ensure_warm(300)
    assert report, str(report)
    file = tmp_path / "all.kiln"
    kiln.build(file, needs, archs=["sm_90"])
    text = ("import kiln, numpy\nkiln.configure(jit='forbid', bundles=%r)\ncap = kiln.op('a + b > s ? s : a + b', s=numpy.int32(7))\n"
            "r = kiln.Plan('frame', [kiln.spec('inclusive_scan', 'int32', cap)], archs=['sm_90']).ensure_warm(60)\nassert r, str(r)\nprint(kiln.status()[0]['origin'])")
    assert python(text % str(file)).stdout == "bundle\n"  # with another s, which is no other program
    bad = kiln.Plan("frame", [kiln.spec("reduce", "int32", kiln.op("a +* b"))], archs=["sm_90"]).ensure_warm(60)
    assert not bad and bad.cold[0].state == "failed"


def test_records_of_numpy_are_structs() -> None:
    aligned = numpy.dtype([("x", "f4"), ("y", "f4"), ("n", "i8")], align=True)
    from kiln._types import type_name

    made = type_name(aligned)
    assert isinstance(made, kiln.Struct) and (made.size, made.align) == (16, 8)
    with pytest.raises(kiln.InvalidArgument, match="align=True"):
        type_name(numpy.dtype([("c", "i1"), ("d", "f8")]))
    with pytest.raises(kiln.InvalidArgument, match="field 's'"):
        type_name(numpy.dtype([("s", "S4")]))


def test_tables_print() -> None:
    kiln.Unit("saxpy", SAXPY).artifact("sm_90")
    now = kiln.status()
    assert "saxpy" in str(now)
    assert "<td>saxpy</td>" in now._repr_html_()
    assert all(e["kind"] == "compiled" for e in kiln.events("compiled"))
    with pytest.raises(kiln.InvalidArgument, match="kinds are"):
        kiln.events("nosuch")


def test_warnings_are_logged(python: Run) -> None:
    """By whoever asks next; a program that does not want to hear of them hears nothing."""
    ask = f"import kiln\nkiln.Unit('saxpy', r'''{SAXPY}''').artifact('sm_90')\nkiln.Unit('saxpy', r'''{SAXPY}''').artifact('sm_80')\n"
    heard = python("import logging; logging.basicConfig(format='%(levelname)s %(name)s %(message)s')\n" + ask, KILN_MAX_SIZE="plenty").stderr.splitlines()
    assert len(heard) == 1 and heard[0].startswith("WARNING kiln config: ") and "KILN_MAX_SIZE" in heard[0]
    assert python(ask, KILN_MAX_SIZE="plenty").stderr == ""


def test_an_interrupt_is_not_lost_in_a_handler_of_warnings(python: Run) -> None:
    done = python(f"""import kiln, logging, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
class handler(logging.Handler):
    def emit(self, record): signal.raise_signal(signal.SIGINT)
logging.getLogger('kiln').addHandler(handler())
try:
    for arch in 'sm_90', 'sm_80': kiln.Unit('saxpy', r'''{SAXPY}''').artifact(arch)
except KeyboardInterrupt: print('interrupted')
""", KILN_MAX_SIZE="plenty")
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


def test_a_bundle_shows_what_it_holds(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "some.kiln"
    kiln.build(file, [kiln.Unit("saxpy", SAXPY)], archs=["sm_80", "sm_90"])
    held = kiln.contents(file)
    assert [(one["unit"], one["target"], one["kernels"]) for one in held] == [("saxpy", "sm_80", ["saxpy"]), ("saxpy", "sm_90", ["saxpy"])]
    assert held.about["artifacts"] == len(held) == 2 and "2 artifacts" in repr(held)
    assert "<td>sm_90</td>" in held._repr_html_() and "saxpy  sm_80" in str(held)
    with pytest.raises(kiln.NotFound, match="there is no bundle"):
        kiln.contents(tmp_path / "none.kiln")
    file.write_bytes(b"nonsense")
    with pytest.raises(kiln.Corrupt, match="some.kiln"):
        kiln.contents(file)


def test_a_build_has_a_deadline(tmp_path: pathlib.Path) -> None:
    unit = kiln.Unit("late", "#include <cub/cub.cuh>\n" + SAXPY, options=["-I/usr/local/cuda/include/cccl"])
    kiln._kiln.write_profile(str(tmp_path / "p"), [unit._text()])  # seconds of work: what ends at once may end before its deadline is looked at
    for call in (lambda: kiln.build(tmp_path / "late.kiln", [unit], archs=["sm_90"], timeout=0.001), lambda: kiln.replay(tmp_path / "p", archs=["sm_90"], bundle=tmp_path / "late.kiln", timeout=0.001)):
        with pytest.raises(kiln.Timeout, match="not ready within 0.001 s; what was compiled is kept"):
            call()
    assert not (tmp_path / "late.kiln").exists()


def test_reports_show_themselves_in_notebooks() -> None:
    report = kiln.Plan("shown", [kiln.Unit("bad<&>", "nonsense")], archs=["sm_90"]).ensure_warm(60)
    shown = report._repr_html_()
    assert shown.startswith("<p>0 of 1 warm") and "<td>bad&lt;&amp;&gt;</td>" in shown and "<td>failed</td>" in shown
    assert "<table>" not in kiln.Plan("all", [kiln.Unit("saxpy", SAXPY)], archs=["sm_90"]).ensure_warm(60)._repr_html_()


def test_what_may_wait_for_a_compiler_has_a_deadline() -> None:
    """Of all that is public and ends in a kernel."""
    import inspect

    from kiln import spatial

    waits = [f for name, f in vars(kiln).items() if name.startswith("make_")] + [getattr(kiln, name) for name in kiln.__all__ if name.startswith("make_") or hasattr(kiln, "make_" + name.removesuffix("_sync"))]
    waits += [kiln.tropical.product, kiln.Unit.get, kiln.Unit.kernel, kiln.Unit.artifact, kiln.Future.result, kiln.Plan.ensure_warm, kiln.build, kiln.replay]
    waits += [f for f in vars(spatial).values() if inspect.isfunction(f) and "stream" in inspect.signature(f).parameters]
    assert len(waits) > 60
    assert [f.__qualname__ for f in waits if "timeout" not in inspect.signature(f).parameters] == []


def test_what_ships_is_listed() -> None:
    assert any(s["name"] == "exclusive_scan_i32" for s in kiln.catalogue())


def test_the_library_refuses_what_configure_refuses(python: Run) -> None:
    from kiln import _bundles

    wrong = {f"KILN_{name.upper()}": "nonsense" for name in (*_bundles._CAN_BE, *_bundles._LEAST, *_bundles._SIZES)}
    told = subprocess.run([_bundles.command(), "doctor"], capture_output=True, text=True, env={**os.environ, **wrong})
    for name in wrong:
        assert f"{name}: 'nonsense' is not" in told.stdout + told.stderr


def test_a_bundle_that_is_not_there_is_named(python: Run) -> None:
    assert "nosuch.kiln'): there is no such file" in python("import kiln; kiln.add_bundle('nosuch.kiln')").stderr


def test_who_waited_for_nothing_is_not_told(python: Run) -> None:
    assert python("import kiln; print(repr(kiln.status()))").stdout == "<kiln.status: nothing asked for>\n"


def test_the_program_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "kiln", "--version"], capture_output=True, text=True)
    assert done.stdout == f"kiln {kiln.__version__}\n", done.stderr


def test_the_licence_is_told_as_indexes_read_it(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build = pytest.importorskip("scikit_build_core.build")
    root = pathlib.Path(__file__).resolve().parents[2]
    if not (root / "pyproject.toml").exists():
        pytest.skip("not in a checkout")
    monkeypatch.chdir(root)
    folder = build.prepare_metadata_for_build_wheel(str(tmp_path), {})
    told = (tmp_path / folder / "METADATA").read_text()
    assert "License-Expression: Apache-2.0\n" in told and "License-File: LICENSE\n" in told


def test_a_field_between_others_is_not_taken_for_a_column() -> None:
    """Its items do not lie a multiple of their size apart: what lay between was read with them."""
    from kiln import spatial

    records = numpy.zeros(4, [("x", "f8"), ("n", "i4")])
    with pytest.raises(kiln.InvalidArgument, match="x has items of 8 bytes that lie 12 bytes apart: pass a copy in order"):
        spatial.points(records["x"], records["x"])
    assert len(spatial.points(records["x"][:1], records["x"][:1])) == 1
    matrices = numpy.zeros((3, 3), [("x", "f4"), ("n", "i2")])["x"]
    with pytest.raises(kiln.InvalidArgument, match="a has items of 4 bytes that lie 18 bytes apart"):
        kiln.tropical.product(matrices, numpy.ascontiguousarray(matrices), "min_plus")


def test_what_a_consumer_of_dlpack_asks_for_is_given_or_refused() -> None:
    from kiln import spatial

    x = kiln._kiln.spatial_length(spatial.geometries(["LINESTRING (0 0, 1 0)", "LINESTRING (0 0, 0 2)"]), None, None)
    assert numpy.from_dlpack(x).tolist() == [1, 2]
    for asked in ({"copy": True}, {"dl_device": (2, 0)}):
        with pytest.raises(BufferError):
            x.__dlpack__(**asked)
    x.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(TypeError, match="max_version is a pair of numbers"):
        x.__dlpack__(max_version="1.0")  # type: ignore[arg-type]


def test_what_is_no_operator_and_no_struct() -> None:
    with pytest.raises(kiln.InvalidArgument, match="no operator in an empty text"):
        kiln.op(" ")
    with pytest.raises(kiln.InvalidArgument, match="struct 'p q': its name"):
        kiln.struct("p q", "float x;")


def test_a_recording_that_cannot_be_written_is_told(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    files: tuple[str | pathlib.Path, ...] = (tmp_path / "folder", "", "/proc/nope/x")
    for i, file in enumerate(files):
        with pytest.raises(kiln.IoError):
            with kiln.record(file):
                kiln.Unit(f"lost{i}", f'extern "C" __global__ void lost{i}() {{}}').artifact("sm_90")
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]
    with pytest.raises(ZeroDivisionError):  # what was on its way out comes first
        with kiln.record(tmp_path / "folder"):
            kiln.Unit("lost3", 'extern "C" __global__ void lost3() {}').artifact("sm_90")
            raise ZeroDivisionError


def test_a_recordings_name_need_be_no_text(tmp_path: pathlib.Path) -> None:
    name = os.fsdecode(os.fsencode(tmp_path) + b"/r\xe9.profile")
    with kiln.record(name):
        kiln.Unit("named", 'extern "C" __global__ void named() {}').artifact("sm_90")
    assert kiln.replay(name, archs=["sm_90"]).demanded == 1


def test_errors_have_a_class_of_their_own(tmp_path: pathlib.Path) -> None:
    unit = kiln.Unit("saxpy", SAXPY)
    with pytest.raises(kiln.IoError, match="is a directory"):
        kiln.build(tmp_path, [unit], archs=["sm_90"])
    ways: tuple[dict[str, Any], ...] = ({}, {"bundle": tmp_path / "z.kiln"})
    for more in ways:
        with pytest.raises(kiln.NotFound, match="no such profile"):
            kiln.replay(tmp_path / "no.profile", archs=["sm_90"], **more)
    for bundle, words in ((tmp_path, "is a directory"), (tmp_path / "no" / "z.kiln", "there is no folder")):
        (tmp_path / "some.profile").touch()
        with pytest.raises(kiln.IoError, match=words):
            kiln.replay(tmp_path / "some.profile", archs=["sm_90"], bundle=bundle)
    for given in (None, 5):
        with pytest.raises(TypeError, match="is no path"):
            kiln.add_bundle(given)


def test_tables_are_streams_of_arrow() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    kiln.Unit("told", 'extern "C" __global__ void told() {}').artifact("sm_90")
    for table in (kiln.events(), kiln.status()):
        read = pyarrow.table(table)
        assert read.num_rows == len(table) and read.column_names == list(table[0])


def test_text_that_is_no_utf_8_is_told_all_the_same(tmp_path: pathlib.Path) -> None:
    folder = os.fsencode(tmp_path) + b"/\xe9"
    with kiln.record(os.fsdecode(folder + b"/r.profile")):
        kiln.Unit("dir", 'extern "C" __global__ void dir() {}').artifact("sm_90")
    with pytest.raises(kiln.NotFound, match="no such profile"):
        kiln.replay(os.fsdecode(folder + b"/none.profile"))
    with pytest.raises(kiln.IoError, match="\ufffd"):
        with kiln.record(os.fsdecode(folder)):
            kiln.Unit("dir2", 'extern "C" __global__ void dir2() {}').artifact("sm_90")
    assert any("\ufffd" in e["detail"] for e in kiln.events("warned"))


def test_a_timeout_is_a_number() -> None:
    with pytest.raises(kiln.InvalidArgument, match="timeout is not a number"):
        kiln.Unit("timed", 'extern "C" __global__ void timed() {}').artifact("sm_90", timeout=float("nan"))


DECLARED: dict[str, Callable[..., Any]] = {
    "there is no operator 'minimum'; there are plus": lambda: kiln.inclusive_scan(numpy.zeros(3, "i4"), "minimum"),
    "there is no operator ' Plus '": lambda: kiln.inclusive_scan(numpy.zeros(3, "i4"), " Plus "),
    "it has two fields 'x'": lambda: kiln.struct("p", "int x, x;"),
    "items of type 'int31' are not known": lambda: kiln.spec("inclusive_scan", "int31"),
    "descending has no meaning for 'inclusive_scan'": lambda: kiln.spec("inclusive_scan", "int32", descending=True),
    "indices has no meaning for 'radix_sort'": lambda: kiln.spec("radix_sort", "int32", indices=True),
}


@pytest.mark.parametrize("words", DECLARED)
def test_what_cannot_be_is_told_where_it_is_written(words: Any) -> None:
    with pytest.raises(kiln.InvalidArgument, match=words):
        DECLARED[words]()
