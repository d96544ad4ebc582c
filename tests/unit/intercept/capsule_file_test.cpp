// SPDX-License-Identifier: Apache-2.0
#include "intercept/capsule_file.hpp"

#include <gtest/gtest.h>

namespace kiln::intercept {

TEST(capsule_file, a_list_names_its_new_place_wherever_it_was_written) {
    for (std::string const place : {"/old/app.json.caches", "/old/of another.caches/triton/k", ""}) {
        auto const text = R"({"child_paths": {"k.json": ")" + place + R"(/triton/k/k.json", "other": "/else/where"}})";
        auto const packed = with_mark(text, "triton/k/__grp__k.json");
        EXPECT_EQ(packed.find(place.empty() ? "\"/triton" : place), std::string::npos) << packed;
        EXPECT_EQ(with_place(packed, "/new/\"here\""),
                  R"({"child_paths":{"k.json":"/new/\"here\"/triton/k/k.json","other":"/else/where"}})");
    }
}

TEST(capsule_file, what_is_no_list_stays_as_it_is) {
    for (std::string const text : {"", "no list", "[]", R"({"child_paths": ["/triton/k/k.json"]})", R"({"paths": {}})"})
        EXPECT_EQ(with_place(with_mark(text, "triton/k/__grp__k.json"), "/new"), text);
    auto const odd = R"({"child_paths":{"a":1,"b":null}})";
    EXPECT_EQ(with_mark(odd, "triton/k/__grp__k.json"), odd);
}

}  // namespace kiln::intercept
