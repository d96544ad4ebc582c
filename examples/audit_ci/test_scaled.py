# SPDX-License-Identifier: Apache-2.0
import vector

assert vector.scaled([1, 2, 3], 2) == [2.0, 4.0, 6.0]
