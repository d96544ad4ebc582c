// SPDX-License-Identifier: Apache-2.0
#include "wkb_rows.cuh"
