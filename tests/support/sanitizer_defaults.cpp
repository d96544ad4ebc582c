// SPDX-License-Identifier: Apache-2.0
// Linked into the tests of sanitizer builds. Looking for leaks at exit takes seconds per process; it is asked for by
// ASAN_OPTIONS in the one run per program that is about leaks.
extern "C" char const* __asan_default_options();
extern "C" char const* __asan_default_options() { return "detect_leaks=0"; }

// What the driver keeps for ever after cuInit, which nvJitLink calls where there is a GPU.
extern "C" char const* __lsan_default_suppressions();
extern "C" char const* __lsan_default_suppressions() { return "leak:libcuda.so\n"; }
