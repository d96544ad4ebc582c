# SPDX-License-Identifier: Apache-2.0
"""The end of the interpreter, Ctrl-C, fork."""

import os
import signal
import subprocess
import sys
import time

import pytest

from conftest import SAXPY

SLOW = f"import kiln\nu = kiln.Unit('slow', '#include <cuda/std/tuple>\\n#include <cub/cub.cuh>\\n' + r'''{SAXPY}''', options=['-I/usr/local/cuda/include/cccl'])\n"


@pytest.mark.parametrize("daemon", [True, False])
def test_ending_while_a_thread_waits(python, daemon):
    text = SLOW + ("import threading, sys, time\nbegun = threading.Event()\n"
                   "def wait():\n    begun.set()\n    try: u.artifact('sm_90', timeout=3)\n    except kiln.Error: pass\n"
                   f"threading.Thread(target=wait, daemon={daemon}).start()\nbegun.wait()\n")
    for _ in range(3):
        done = python(text, check=False)
        assert (done.returncode, done.stderr) == (0, "")


def test_ctrl_c_comes_out_of_a_wait(tmp_path):
    text = ("import itertools, kiln\ntry:\n    print('begin', flush=True)\n"
            "    for i in itertools.count(): kiln.Unit('k', f'__global__ void k(int* x) {{ *x = {i}; }}').artifact('sm_90')\n"
            "except KeyboardInterrupt: print('interrupted')\n")
    child = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True, env={**os.environ, "KILN_CACHE_DIR": str(tmp_path)})
    assert child.stdout.readline() == "begin\n"
    begun = time.monotonic()
    child.send_signal(signal.SIGINT)
    assert child.stdout.read() == "interrupted\n"
    assert child.wait(60) == 0
    assert time.monotonic() - begun < 20


def test_a_forked_child_compiles(python):
    done = python(f"import kiln, os\nu = kiln.Unit('saxpy', r'''{SAXPY}''')\nu.artifact('sm_90')\npid = os.fork()\nif pid == 0:\n    u.artifact('sm_80'); os._exit(7)\nprint(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))")
    assert done.stdout == "7\n"


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(tmp_path, method):
    script = tmp_path / "main.py"
    script.write_text(f"import kiln, multiprocessing\nu = kiln.Unit('saxpy', r'''{SAXPY}''')\n"
                      "def size(unit): return len(unit.artifact('sm_90').image)\n"
                      f"if __name__ == '__main__':\n    multiprocessing.set_start_method('{method}')\n"
                      "    with multiprocessing.Pool(2) as pool: print(len(set(pool.map(size, [u] * 4))))\n")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, env={**os.environ, "KILN_CACHE_DIR": str(tmp_path / "c")})
    assert done.stdout == "1\n", done.stderr


def test_a_thousand_threads(python):
    done = python(f"import kiln, threading\nu = kiln.Unit('saxpy', r'''{SAXPY}''')\nseen = []\n"
                  "def get(): seen.append(u.artifact('sm_90').key)\n"
                  "threads = [threading.Thread(target=get) for _ in range(1000)]\n[t.start() for t in threads]; [t.join() for t in threads]\n"
                  "print(len(seen), len(set(seen)), len(kiln.events('compiled')))")
    assert done.stdout == "1000 1 1\n"
