// SPDX-License-Identifier: Apache-2.0
// A page of a bucket's list is read as servers write it, and anything else is refused.
#include "remote/s3_listing.hpp"

#include "remote/http_answers.hpp"

#include <gtest/gtest.h>

namespace kiln::remote {

namespace {

// As AWS writes it; MinIO and others differ in order, blanks and what is left out.
constexpr std::string_view whole_page =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
    "<Name>bucket</Name><Prefix>a&amp;b/</Prefix><KeyCount>2</KeyCount><MaxKeys>1000</MaxKeys><Delimiter/>"
    "<IsTruncated>true</IsTruncated>\n"
    "<Contents><Key>a&amp;b/&#x41;&#66;&#xe9;&#x20ac;</Key><LastModified>2026-11-16T15:24:35.000Z</LastModified>"
    "<ETag>&quot;x&quot;</ETag><Size>17</Size><Owner><ID>1</ID><DisplayName>Key</DisplayName></Owner></Contents>"
    "<Contents>\n <Key>second</Key>\n</Contents>\n"
    "<NextContinuationToken>1+/=&gt;</NextContinuationToken></ListBucketResult>\n";

std::string page_with(std::string_view inside) {
    return fmt::format("<ListBucketResult><IsTruncated>false</IsTruncated>{}</ListBucketResult>", inside);
}

TEST(bucket_pages, what_servers_write_is_read) {
    auto const page = decode_bucket_page(whole_page).value();
    ASSERT_EQ(page.objects.size(), 2u);
    EXPECT_EQ(page.objects[0].key, "a&b/AB\xc3\xa9\xe2\x82\xac");
    EXPECT_EQ(page.objects[0].written, http_date("Mon, 16 Nov 2026 15:24:35 GMT"));
    EXPECT_EQ(page.objects[0].bytes, 17u);
    EXPECT_EQ(page.objects[1].key, "second");
    EXPECT_EQ(page.objects[1].written, std::nullopt);
    EXPECT_EQ(page.next, "1+/=>");
    EXPECT_TRUE(decode_bucket_page(page_with("<NextContinuationToken>x</NextContinuationToken>")).value().next.empty());
}

TEST(bucket_pages, R17_half_a_page_is_none) {
    auto const end = whole_page.rfind('>');
    for (std::size_t n = 0; n <= end; ++n) EXPECT_FALSE(decode_bucket_page(whole_page.substr(0, n))) << n;
    EXPECT_TRUE(decode_bucket_page(whole_page.substr(0, end + 1)));
}

TEST(bucket_pages, R17_what_is_no_page_is_refused) {
    std::string const deep = "<a><a><a><a><a><a><a><a></a></a></a></a></a></a></a></a>";
    std::string many;
    for (std::size_t i = 0; i <= most_page_objects; ++i) many += "<Contents><Key>k</Key></Contents>";
    std::string const bad[] = {
        "",
        "hello",
        "<html></html>",
        "<ListBucketResult></ListBucketResult>",  // whether it is the last is not said
        "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
        "<ListBucketResult><IsTruncated>perhaps</IsTruncated></ListBucketResult>",
        "<!DOCTYPE a [<!ENTITY b \"c\">]>" + page_with(""),
        page_with("") + page_with(""),
        page_with("") + "x",
        page_with("<!-- -->"),
        page_with("<a></b>"),
        page_with("<Contents></Contents>"),
        page_with("<Contents><Key>a</Key><Size>-1</Size></Contents>"),
        page_with("<Contents><Key>&b;</Key></Contents>"),
        page_with("<Contents><Key>&#0;</Key></Contents>"),
        page_with("<Contents><Key>&#xd800;</Key></Contents>"),
        page_with("<Contents><Key>&amp</Key></Contents>"),
        page_with("<NextContinuationToken>" + std::string(most_page_token + 1, 'x') + "</NextContinuationToken>"),
        page_with(deep),
        page_with(many),
        page_with(std::string(most_page_bytes, ' ')),
    };
    for (auto const& text : bad) EXPECT_FALSE(decode_bucket_page(text)) << text.substr(0, 100);
}

TEST(bucket_pages, times_are_read) {
    EXPECT_EQ(iso_time("1970-01-02T00:00:01Z"), 86'401);
    EXPECT_EQ(iso_time("2026-11-16T15:24:35.123456Z"), http_date("Mon, 16 Nov 2026 15:24:35 GMT"));
    for (auto const* text : {"", "Z", "2026-11-16", "2026-11-16T15:24:35", "2026-13-16T15:24:35Z",
                             "2026-02-30T15:24:35Z", "2026-11-16 15:24:35Z", "yyyy-11-16T15:24:35Z"})
        EXPECT_EQ(iso_time(text), std::nullopt) << text;
}

}  // namespace

}  // namespace kiln::remote
