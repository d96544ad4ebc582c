// SPDX-License-Identifier: Apache-2.0
#include "buffer_pieces.cuh"
