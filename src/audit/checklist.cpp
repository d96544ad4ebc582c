// SPDX-License-Identifier: Apache-2.0
// The 78 boxes of the GPU performance checklist, in words of our own, each with what answers it: rules, a field that the report
// fills in, or a question for a person.
#include "audit/rules.hpp"

#include <array>

namespace kiln::audit {

namespace {

constexpr std::array boxes{
    box{"plan", 1, "the reusable shape that changed has a name", "", "", "which shape is it? say it with --label"},
    box{"plan", 2, "the evidence shows the backend that ran", "R01 R07", "stages: requested, selected, actual", ""},
    box{"plan", 3, "data on the device stays there until somebody asks for it", "R06 R23 R32", "", ""},
    box{"plan", 4, "joins, groupings and materialisations can be seen one by one", "", "stages", ""},
    box{"plan", 5, "a real workflow got faster, or a benchmark of the shape guards it", "", "kiln audit diff",
        "is this the real workflow?"},

    box{"runtime", 1, "what was asked for and what was chosen are both recorded", "R07", "stages: requested, selected",
        ""},
    box{"runtime", 2, "the device that really ran is reported", "R01 R02 R07", "", ""},
    box{"runtime", 3, "resident data is not sent back because there is little of it", "R06", "", ""},
    box{"runtime", 4, "asking for the GPU by name fails aloud", "R03", "exit status 3", ""},
    box{"runtime", 5, "falling back leaves a trace", "R03", "fallbacks", ""},
    box{"runtime", 6, "precision fits the hardware", "R05", "", ""},
    box{"runtime", 7, "no 64-bit work where 32 bits may do", "R05", "", ""},
    box{"runtime", 8, "what stays in 64 bits does so on purpose", "R05", "", "is 64 bits the policy here?"},

    box{"memory", 1, "allocations come from the pool", "R40", "", ""},
    box{"memory", 2, "temporaries are not made and freed in loops", "R40", "", ""},
    box{"memory", 3, "outputs are sized once, from a count", "R46", "", ""},
    box{"memory", 4, "the pool is not trimmed on hot paths", "R41", "", ""},
    box{"memory", 5, "long and short lives are not mixed", "", "allocations, by line: most at a time, still held",
        "are long-lived buffers allocated apart?"},
    box{"memory", 6, "managed memory is not used unawares", "R37", "", ""},

    box{"streams", 1, "stages on one stream are not separated by waits", "R20 R21", "", ""},
    box{"streams", 2, "libraries do not wait on behalf of their callers", "R20 R27", "caller or wrapper, per finding",
        ""},
    box{"streams", 3, "streams really overlap", "R28", "", ""},
    box{"streams", 4, "streams do not feed helpers on the null stream", "R27", "", ""},
    box{"streams", 5, "asynchronous transfers use pinned memory", "R30", "", ""},
    box{"streams", 6, "one wait per batch, not per item", "R20 R22", "per step", ""},

    box{"transfers", 1, "metadata is not copied to the host eagerly", "R31 R23", "", ""},
    box{"transfers", 2, "the host gets data only where it is asked for", "R23", "lines with copies to the host", ""},
    box{"transfers", 3, "what is read does not feed more GPU work", "R32 R23", "", ""},
    box{"transfers", 4, "scalars are not read one by one", "R22 R31", "", ""},
    box{"transfers", 5, "host mirrors are made once", "R23 R33", "", ""},
    box{"transfers", 6, "views stay views", "R36 R32", "", ""},

    box{"CuPy", 1, "operations are on whole arrays, not in loops over rows", "R57 R66", "", ""},
    box{"CuPy", 2, "searches and scans run once over all groups", "R57", "", ""},
    box{"CuPy", 3, "unique values do not start host loops", "R65", "", ""},
    box{"CuPy", 4, "masks stay on the device", "R22 R23", "", ""},
    box{"CuPy", 5, "arrays do not bounce between host and device", "R32", "", ""},
    box{"CuPy", 6, "stacking and gathering are worth their copies", "R36", "", "is the copy justified?"},

    box{"CCCL", 1, "wrappers let the caller decide when to wait", "R20", "", "does the API take a policy?"},
    box{"CCCL", 2, "wrappers do not wait for the null stream", "R27 R21", "", ""},
    box{"CCCL", 3, "wrappers can take a stream", "", "streams, and who queued work on them",
        "does the API take a stream?"},
    box{"CCCL", 4, "counts are not read at once", "R22", "", ""},
    box{"CCCL", 5, "what avoids compiles at first is not slower for ever", "R16", "kernels: each, early and late", ""},
    box{"CCCL", 6, "sorts and compactions are the device's", "R66", "", "could a primitive do this part?"},

    box{"launch", 1, "block sizes follow from occupancy", "R52 R53 R54", "", ""},
    box{"launch", 2, "work is launched in bulk", "R50 R57", "", ""},
    box{"launch", 3, "the grid follows the largest dimension", "R52 R53", "", ""},
    box{"launch", 4, "the host does not slice what the device could", "R57 R31", "", ""},
    box{"launch", 5, "shared memory counts in the block size", "R54", "", ""},

    box{"IO", 1, "parsers do not hand back to the host for nested structure", "R66 R57", "", ""},
    box{"IO", 2, "offsets are made on the device", "R22 R31", "", ""},
    box{"IO", 3, "families are not found out on the host", "R22 R65", "", ""},
    box{"IO", 4, "totals are read once, without a wait before", "R20 R22", "", ""},
    box{"IO", 5, "decoding for the device makes no host copies", "R31 R23", "", ""},

    box{"predicate", 1, "filter, compaction and refinement stay on the device", "R23 R32", "", ""},
    box{"predicate", 2, "estimates need no rows on the host", "R23 R66", "", ""},
    box{"predicate", 3, "helpers do not wait before somebody needs the result", "R20", "", ""},
    box{"predicate", 4, "candidates are put together on the device", "R66 R57", "", ""},
    box{"predicate", 5, "scattering results forces no early read", "R22 R23", "", ""},

    box{"overlay", 1, "group boundaries stay on the device", "R22 R23", "", ""},
    box{"overlay", 2, "stream pools go with launches that use them", "R27 R28", "", ""},
    box{"overlay", 3, "labels are not made row by row on the host", "R57 R66", "", ""},
    box{"overlay", 4, "constructive helpers do not wait in between", "R20", "", ""},
    box{"overlay", 5, "reductions are not split into thousands of objects", "R57", "", ""},

    box{"evidence", 1, "there is a run on the target machine", "", "this recording", ""},
    box{"evidence", 2, "the GPU is named", "", "device", ""},
    box{"evidence", 3, "command, date, scale and mode are written down", "", "command, date, label, scale", ""},
    box{"evidence", 4, "it is said whether the path stayed on the device", "", "stages: stayed, or where it left", ""},
    box{"evidence", 5, "the three longest stages are named, with CPU or GPU", "", "top three stages", ""},
    box{"evidence", 6, "structural and incidental findings are told apart", "", "structural, per finding", ""},
    box{"evidence", 7, "reads that size an allocation are named", "", "exempt: allocation fences", ""},

    box{"sign-off", 1, "GPU or CPU at run time is known", "R01 R02", "verdict", ""},
    box{"sign-off", 2, "structural blockers stand apart from clean-ups", "", "structural, per finding", ""},
    box{"sign-off", 3, "waits are the caller's or the wrapper's", "", "caller or wrapper, per finding", ""},
    box{"sign-off", 4, "reads are terminal, fences or faults", "", "findings and exemptions", ""},
    box{"sign-off", 5, "the first three remedies are named in order", "", "the first three remedies, in order", ""},
    box{"sign-off", 6, "an exact command with date and scale is recorded", "", "command, date, label, scale", ""},
    box{"sign-off", 7, "it is said whether this is CPU-shaped GPU code", "", "CPU-shaped: yes or no", ""},
    box{"sign-off", 8, "the questions of the plan are answered", "", "boxes plan 1 to 5",
        "were they, where public workflows are touched?"},
};
static_assert(boxes.size() == 78);

}  // namespace

std::span<box const> checklist() noexcept { return boxes; }

}  // namespace kiln::audit
