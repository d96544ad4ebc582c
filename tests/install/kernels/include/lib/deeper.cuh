// SPDX-License-Identifier: Apache-2.0
#define STEP 1
