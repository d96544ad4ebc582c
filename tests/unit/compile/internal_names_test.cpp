// SPDX-License-Identifier: Apache-2.0
#include "compile/internal_names.hpp"

#include <gtest/gtest.h>

namespace kiln::compile {

TEST(internal_names, time_and_process_are_left_out) {
    EXPECT_EQ(without_compile_marks("_ZN40_INTERNAL_00000000_4_k_cu_0d86e87c_106784cuda3std5beginE"),
              "_ZN_INTERNAL_k_cu4cuda3std5beginE");
    EXPECT_EQ(without_compile_marks("_ZN36_INTERNAL_00000000_4_k_cu_fe29937e_74cuda3std5beginE"),
              "_ZN_INTERNAL_k_cu4cuda3std5beginE");
    EXPECT_EQ(without_compile_marks("_ZN42_GLOBAL__N__00000000_4_t_cu_b664a972_123454anonEPi"),
              "_ZN_GLOBAL__N__t_cu4anonEPi");
}

TEST(internal_names, one_may_follow_another) {
    EXPECT_EQ(without_compile_marks(
                  "_ZN40_INTERNAL_00000000_4_t_cu_b664a972_1234542_GLOBAL__N__00000000_4_t_cu_b664a972_123456hiddenE"),
              "_ZN_INTERNAL_t_cu_GLOBAL__N__t_cu6hiddenE");
    EXPECT_EQ(without_compile_marks("3__442_GLOBAL__N__00000000_4_k_cu_0d86e87c_106786ignoreE"),
              "3__4_GLOBAL__N__k_cu6ignoreE");
}

TEST(internal_names, whatever_else_stays) {
    for (auto const* text :
         {"", "no name", "_INTERNAL_", "40_INTERNAL_00000000_4_k_cu_0d86e87c_",
          "_INTERNAL_00000000_4_k_cu_0d86e87c_10678", "41_INTERNAL_00000000_4_k_cu_0d86e87c_10678x",
          "40_INTERNAL_0000000g_4_k_cu_0d86e87c_10678", "40_INTERNAL_00000000_99999_k_cu_0d86e87c_10678",
          "40_INTERNAL_00000000_0__0d86e87c_10678", "34_INTERNAL_00000000_4_k_cu_352441c24cuda"})
        EXPECT_EQ(without_compile_marks(text), text);
}

TEST(internal_names, names_of_two_files_stay_apart) {
    EXPECT_NE(without_compile_marks("40_INTERNAL_00000000_4_k_cu_0d86e87c_10678"),
              without_compile_marks("40_INTERNAL_00000000_4_j_cu_0d86e87c_10678"));
}

}  // namespace kiln::compile
