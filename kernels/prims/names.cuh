// SPDX-License-Identifier: Apache-2.0
// Short names of types: in the primitives and in operators.
#pragma once

using kiln_i8 = signed char;
using kiln_u8 = unsigned char;
using kiln_i16 = short;
using kiln_u16 = unsigned short;
using kiln_i32 = int;
using kiln_u32 = unsigned int;
using kiln_i64 = long long;
using kiln_u64 = unsigned long long;
using kiln_f32 = float;
using kiln_f64 = double;
