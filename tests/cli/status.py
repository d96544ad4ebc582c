# SPDX-License-Identifier: Apache-2.0
"""kiln status and kiln events on files of one process, of several, and of anything else."""

import json

from _kiln import KERNEL, SCRATCH, check, data, run, write

FIRST, SECOND = 2**22 + 7, 2**22 + 8  # beyond every pid


def story(pid):
    def line(t, kind, unit, **more):
        return {"t": t, "seq": t, "pid": pid, "tid": pid, "kind": kind, "unit": unit, "target": "sm_90", **more}
    return [line(1000000, "demanded", "a", reason="planned", detail="join"),
            line(1100000, "missed", "a", reason="absent"),
            line(1200000, "compiling", "a", value=99),
            line(9200000, "compiled", "a", ns=8000000, value=512, reason="headers-reused"),
            line(9300000, "waited", "a", reason="compile", ns=2000000),
            line(9300000, "compiling", "b", value=99),
            line(12300000, "note", "")]


def save(name, events):
    (SCRATCH / name).write_text("".join(e if isinstance(e, str) else json.dumps(e) + "\n" for e in events))


save("one.jsonl", story(FIRST))
one = data("status", "one.jsonl")
check((one["pid"], one["submitted"], one["ready"], one["compiled"], one["compiling"], one["pending"]) == (FIRST, 2, 1, 1, 1, 1), "counts", one)
check((one["headers_made"], one["headers_reused"]) == (0, 1), "precompiled headers", one)
check("1 of them with precompiled headers" in run("status", "one.jsonl").stdout, "in the line too")
check([(c["what"], c["times"]) for c in data("events", "one.jsonl", "--summary")["compiles"]] == [("headers-reused", 1)], "and in the summary")
units = {u["name"]: u for u in one["units"]}
a = units["a"]
check((a["consumers"], a["priority"], a["miss"], a["bytes"], a["waits"]) == ("join", "planned", "absent", 512, 1), "a unit", a)
check((round(a["ready_ms"], 6), a["compile_ms"], a["blocked_ms"], units["b"]["since_ms"]) == (8.2, 8, 2, 3), "its times", units)

# What servers took of a wait is no other wait.
save("afar.jsonl", story(FIRST) + [dict(story(FIRST)[4], reason=reason) for reason in ("fleet", "lease")])
check({name: v for name, v in data("status", "afar.jsonl").items() if name != "path"} == {name: v for name, v in one.items() if name != "path"}, "waits for servers")

save("two.jsonl", story(FIRST) + [dict(e, t=e["t"] + 20000000) for e in story(SECOND)])
two = data("status", "two.jsonl")["processes"]
check([p["pid"] for p in two] == [FIRST, SECOND] and all(p["waits"] == 1 for p in two), "both processes", two)
text = run("status", "two.jsonl").stdout
check(f"process {FIRST}" in text and f"process {SECOND}" in text and "2 processes: 2 ready" in text and "4 ms blocked" in text, "a line for each, and the sum", text)
check(data("status", "two.jsonl", "--pid", SECOND)["pid"] == SECOND, "or one of them")

# A line of the wrong types costs itself and nothing else.
save("odd.jsonl", story(FIRST) + ['{"kind":5}\n', '{"kind":["found"]}\n', '{"kind":"found","unit":7,"t":"late","value":{}}\n',
                                  '{"kind":"transferred","value":9223372036854775807}\n'] * 2)
check(data("events", "odd.jsonl", "--summary")["unreadable"] == 4, "counted")
check(len(data("events", "odd.jsonl")) == 11, "the others are shown")
run("status", "odd.jsonl")
run("trace", "odd.jsonl", "-o", "t.json")
json.loads((SCRATCH / "t.json").read_text())

# Names that are not ASCII, and some that are not even text, in everything that is JSON.
folder = SCRATCH / ("カーネル" * 12)
folder.mkdir()
(folder / ("計算" * 20 + ".cu")).write_text("#error 計算できません 計算できません 計算できません 計算できません 計算できません\n")
run("compile", folder / ("計算" * 20 + ".cu"), "-a", "sm_90", status=1, KILN_EVENTS=SCRATCH / "far.jsonl")
for line in (SCRATCH / "far.jsonl").read_bytes().splitlines():
    json.loads(line.decode("utf-8"))
check(data("events", "far.jsonl", "--summary")["kinds"]["compile_failed"] >= 1, "nothing is dropped")
check(data("status", "far.jsonl")["failed"] == 1, "and nothing compiles for ever")
(SCRATCH / "bad\udcff.cu").write_text(KERNEL.replace("VALUE", "1"))
write("good.cu", KERNEL.replace("VALUE", "2"))
made = data("compile", "bad\udcff.cu", "good.cu", "-a", "sm_90")
check([m["unit"] for m in made] == ["bad�", "good"], "a name that is no text", made)
check(len(data("cache", "list")) >= 2, "the cache can still be listed")

# At a normal exit no worker is "killed": that reads like a shortage of memory.
write("new.cu", KERNEL.replace("VALUE", "3"))
run("compile", "new.cu", "-a", "sm_90", KILN_EVENTS=SCRATCH / "end.jsonl")
ended = data("events", "end.jsonl", "--kind", "worker_ended")
check(ended and all("killed" not in e.get("detail", "") for e in ended), "let go", ended)

# Two units that begin with the same headers, on one worker: the second is compiled with what was kept of them.
for name in ("first", "second"):
    write(f"{name}.cu", f'#include <cuda_fp16.h>\nextern "C" __global__ void {name}(__half* x) {{ x[0] = x[1]; }}\n')
data("compile", "first.cu", "second.cu", "-a", "sm_90", KILN_WORKERS=1, KILN_EVENTS=SCRATCH / "kept.jsonl")
kept = data("status", "kept.jsonl")
check((kept["compiled"], kept["headers_made"], kept["headers_reused"]) == (2, 1, 1), "made by one, used by the other", kept)
