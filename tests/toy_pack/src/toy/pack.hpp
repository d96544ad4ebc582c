// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kiln/runtime/operation.hpp>

namespace kiln::toy {

extern operation const double_operation;

}  // namespace kiln::toy
