// SPDX-License-Identifier: Apache-2.0
// An empty library; see hook.c. Its run path and what it needs are filled in when it is copied.
int kiln_bridge = 1;
