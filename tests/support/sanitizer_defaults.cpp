// SPDX-License-Identifier: Apache-2.0
// Linked into the tests of sanitizer builds. Looking for leaks at exit takes seconds per process; it is asked for by
// ASAN_OPTIONS in the one run per program that is about leaks.
extern "C" char const* __asan_default_options();
extern "C" char const* __asan_default_options() { return "detect_leaks=0"; }
