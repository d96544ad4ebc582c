# SPDX-License-Identifier: Apache-2.0
"""What happened: who compiled, who waited, what ran where. The tables print, and show themselves in notebooks."""

import logging

import numpy

import kiln

logging.basicConfig(level=logging.INFO)  # second choices Kiln takes, and what a person should know, come to the logger "kiln"

kiln.Unit("seen", 'extern "C" __global__ void seen() {}').artifact("sm_90")
try:
    kiln.Unit("bad", "nonsense").artifact("sm_90")
except kiln.CompileFailed as why:
    print("the compiler said:", why.log.strip().splitlines()[0])

with kiln.execution("cpu"), kiln.no_transfers():
    kiln.radix_sort(numpy.array([3, 1, 2], "i4"))

print(kiln.status())
for event in kiln.events("dispatched"):
    print(event["unit"], "ran on the", event["target"], "because", event["reason"])
print(kiln.activity()["synchronisations"], "waits for the GPU")
