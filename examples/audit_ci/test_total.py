# SPDX-License-Identifier: Apache-2.0
import vector

assert vector.total([1, 2, 3]) == 6.0
