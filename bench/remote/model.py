#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many nodes that start together with empty disks, one server of leases and some of bytes: how long the slowest takes, and how often
each kernel is compiled. A discrete-event model; its times are those that bench_remote measures.

    model.py [--times FILE] [--markdown] [--nodes N,N,...]

FILE is what bench_remote wrote as its last argument; else the times below. --markdown prints the table as the guide has it. --nodes: instead of the
table, how long so many nodes take with one server for everything.

One Redis answers look-ups and leases, one after the other. Byte servers have a line each, and answer eight fetches of a node at a time.
A node asks for all it misses in one batch, takes no more leases than it has workers, begins elsewhere in the list, and looks again
after 20 ms, then doubling to 500 ms. With hedging it compiles what is missing, from the back, while it goes on fetching from the front.
"""
import argparse
import heapq
import json
import random

TIMES = {"connect_us": 90, "batch_us": 45, "lease_us": 5, "fetch_us": 40}


class queue:
    """One after the other: when a job that comes now will be done."""

    def __init__(self):
        self.free = 0.0

    def serve(self, now, seconds):
        self.free = max(self.free, now) + seconds
        return self.free


class world:
    def __init__(self, times, nodes, byte_servers, keys=50, size=25_000, compile_s=2.0, workers=16, within=0.0, hedge=None,
                 line_bits=10e9, cores=4, seed=1):
        self.random = random.Random(seed)
        self.t = {k: v * 1e-6 for k, v in times.items() if k.endswith("_us")}
        self.keys, self.size, self.compile_s, self.workers, self.hedge = keys, size, compile_s, workers, hedge
        self.redis = queue()
        self.lines = [queue() for _ in range(byte_servers)]
        self.fetch_s = max(self.t["fetch_us"] / cores, size * 8 / line_bits)
        self.published = [None] * keys
        self.leased = [False] * keys
        self.compiles = 0
        self.ends = []
        self.events = []
        self.count = 0
        for n in range(nodes):
            self.at(self.random.uniform(0, within) if within else 0.0, self.start, {"id": n, "have": set(), "pause": 0.02, "mine": 0,
                                                                                   "fetching": set(), "own": set(), "done": False})

    def at(self, when, what, *arguments):
        self.count += 1
        heapq.heappush(self.events, (when, self.count, what, arguments))

    def run(self):
        while self.events:
            when, _, what, arguments = heapq.heappop(self.events)
            what(when, *arguments)
        return max(self.ends), self.compiles / self.keys

    def start(self, now, node):
        node["began"] = now
        self.at(self.redis.serve(now, self.t["connect_us"] + self.t["batch_us"]), self.looked, node)
        if self.hedge is not None:
            self.at(now + self.hedge, self.hedges, node)

    def finished(self, now, node):
        if not node["done"] and len(node["have"]) == self.keys:
            node["done"] = True
            self.ends.append(now - node["began"])
        return node["done"]

    def looked(self, now, node):
        if node["done"]:
            return
        free = []
        for k in range(self.keys):
            if k in node["have"] or k in node["fetching"]:
                continue
            if self.published[k] is not None and self.published[k] <= now:
                node["fetching"].add(k)
            elif not self.leased[k] and k not in node["own"]:
                free.append(k)
        self.fetch(now, node)
        self.random.shuffle(free)
        for k in free[:max(0, self.workers - node["mine"])]:
            self.leased[k] = True
            node["mine"] += 1
            node["own"].add(k)
            self.compiles += 1
            took = self.redis.serve(now, self.t["lease_us"])
            self.at(took + self.compile_s, self.compiled, node, k, True)
        pause = node["pause"] * self.random.uniform(0.75, 1.25)
        node["pause"] = min(node["pause"] * 2, 0.5)
        self.at(now + pause, self.look, node)

    def look(self, now, node):
        if not node["done"] and len(node["have"]) + len(node["fetching"]) < self.keys:
            self.at(self.redis.serve(now, self.t["batch_us"]), self.looked, node)

    def fetch(self, now, node):
        if node.get("busy") or not node["fetching"]:
            return
        some = sorted(node["fetching"] - node["have"])[:8]
        if not some:
            return
        node["busy"] = True
        ends = [self.lines[k % len(self.lines)].serve(now, self.fetch_s) for k in some]
        self.at(max(ends), self.fetched, node, some)

    def fetched(self, now, node, some):
        node["busy"] = False
        node["have"].update(some)
        node["fetching"] -= set(some)
        if not self.finished(now, node):
            self.fetch(now, node)

    def compiled(self, now, node, k, leased):
        node["have"].add(k)
        node["mine"] -= 1
        if leased:
            self.published[k] = self.lines[k % len(self.lines)].serve(now, self.fetch_s)
            self.at(self.redis.serve(now, self.t["batch_us"]), self.looked, node)
        else:
            self.at(now, self.hedges, node)
        self.finished(now, node)

    def hedges(self, now, node):
        if node["done"]:
            return
        for k in range(self.keys - 1, -1, -1):
            if node["mine"] >= self.workers:
                return
            if k in node["have"] or k in node["own"]:
                continue
            node["own"].add(k)
            node["mine"] += 1
            self.compiles += 1
            self.at(now + self.compile_s, self.compiled, node, k, False)


ROWS = [("1,000, one", dict(nodes=1000, byte_servers=1)),
        ("10,000, one", dict(nodes=10000, byte_servers=1)),
        ("10,000, four", dict(nodes=10000, byte_servers=4)),
        ("10,000, sixteen", dict(nodes=10000, byte_servers=16)),
        ("10,000 within 5 s, four", dict(nodes=10000, byte_servers=4, within=5.0)),
        ("10,000, one, hedging after 2.5 s", dict(nodes=10000, byte_servers=1, hedge=2.5)),
        ("10,000, four, kernels of 0.2 s", dict(nodes=10000, byte_servers=4, compile_s=0.2))]


def times_of(file):
    times = dict(TIMES)
    if file:
        with open(file, encoding="utf-8") as text:
            measured = json.load(text)
        absent = [k for k in TIMES if k not in measured]
        if absent:
            raise SystemExit(f"{file}: no {', '.join(absent)}; run bench_remote with a Redis and a server over HTTP")
        times.update({k: float(measured[k]) for k in TIMES})
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", help="what bench_remote wrote")
    parser.add_argument("--markdown", action="store_true", help="the table as the guide has it")
    parser.add_argument("--nodes", help="so many nodes, one server for everything")
    chosen = parser.parse_args()
    times = times_of(chosen.times)
    rows = ROWS
    if chosen.nodes:
        rows = [(f"{int(n):,}, one", dict(nodes=int(n), byte_servers=1)) for n in chosen.nodes.split(",")]
    measured = ", ".join(f"{k.removesuffix('_us')} {v:.0f} us" for k, v in times.items())
    if chosen.markdown:
        print(f"| nodes, byte servers of 10 Gb/s ({measured}) | alone | slowest node | compiles per key |\n|---|---|---|---|")
    else:
        print(f"times: {measured}\n{'nodes, byte servers of 10 Gb/s':<40} {'alone':>8} {'slowest node':>13} {'compiles per key':>17}")
    for name, how in rows:
        slowest, compiles = world(times, **how).run()
        alone = how.get("compile_s", 2.0) * -(-50 // 16)
        if chosen.markdown:
            print(f"| {name} | {alone:.1f} s | {slowest:.1f} s | {compiles:,.0f} |")
        else:
            print(f"{name:<40} {alone:>6.1f} s {slowest:>11.1f} s {compiles:>17,.0f}")


if __name__ == "__main__":
    main()
