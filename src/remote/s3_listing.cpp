// SPDX-License-Identifier: Apache-2.0
#include "remote/s3_listing.hpp"

#include "remote/http_answers.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace kiln::remote {

namespace {

constexpr std::size_t most_depth = 8;
constexpr std::string_view blanks = " \t\r\n";

bool is_letter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

template <class Number>
std::optional<Number> whole(std::string_view text, int base = 10) {
    Number out{};
    auto const [end, why] = std::from_chars(text.data(), text.data() + text.size(), out, base);
    if (why != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return out;
}

// Names and what lies between them. Every view is of the text it was made with.
class xml_reader {
public:
    enum class kind { open, close, text, end, bad };
    struct token {
        kind what;
        std::string_view text{};  // a name, or what lies between two
    };
    explicit xml_reader(std::string_view all) noexcept : rest_{all} {
        if (!rest_.starts_with("<?xml")) return;
        auto const end = rest_.find("?>");
        rest_ = end == rest_.npos ? rest_ : rest_.substr(end + 2);  // without its end it is bad below
    }
    token next() {
        if (auto const name = std::exchange(ends_, {}); !name.empty()) return {kind::close, name};
        if (rest_.empty()) return {kind::end};
        if (rest_.front() != '<') return {kind::text, take(std::min(rest_.find('<'), rest_.size()))};
        rest_.remove_prefix(1);
        bool const closes = rest_.starts_with('/');
        if (closes) rest_.remove_prefix(1);
        auto const name = take_name();
        if (name.empty()) return {kind::bad};
        if (closes) return take_end(rest_.find_first_not_of(blanks)) ? token{kind::close, name} : token{kind::bad};
        return take_attributes(name);
    }

private:
    std::string_view take(std::size_t n) noexcept {
        auto const out = rest_.substr(0, n);
        rest_.remove_prefix(out.size());
        return out;
    }
    std::string_view take_name() noexcept {
        std::size_t n = 0;
        while (n < rest_.size() && (is_letter(rest_[n]) || (n > 0 && is_digit(rest_[n])))) ++n;
        return take(n);
    }
    bool take_end(std::size_t at) noexcept {
        if (at == rest_.npos || rest_[at] != '>') return false;
        rest_.remove_prefix(at + 1);
        return true;
    }
    // They mean nothing to us.
    token take_attributes(std::string_view name) {
        char quote = 0;
        for (std::size_t i = 0; i < rest_.size(); ++i) {
            char const c = rest_[i];
            if (quote != 0) {
                if (c == quote) quote = 0;
            } else if (c == '"' || c == '\'') quote = c;
            else if (c == '<') break;
            else if (c == '>') {
                if (i > 0 && rest_[i - 1] == '/') ends_ = name;
                rest_.remove_prefix(i + 1);
                return {kind::open, name};
            } else if (i == 0 && c != '/' && blanks.find(c) == blanks.npos) break;
        }
        return {kind::bad};
    }

    std::string_view rest_;
    std::string_view ends_;  // <Name/> ends where it begins
};

// As UTF-8. False: there is no such character.
bool put_character(std::string& out, std::uint32_t c) {
    if (c == 0 || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) return false;
    auto const put = [&](std::uint32_t bits) { out += static_cast<char>(static_cast<unsigned char>(bits)); };
    if (c < 0x80) {
        put(c);
        return true;
    }
    int const more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    constexpr std::array<std::uint32_t, 4> fronts{0, 0xc0, 0xe0, 0xf0};
    put(fronts[static_cast<std::size_t>(more)] | c >> 6 * more);
    for (int i = more - 1; i >= 0; --i) put(0x80u | (c >> 6 * i & 0x3fu));
    return true;
}

// Without the ';'.
bool put_entity(std::string& out, std::string_view name) {
    constexpr std::array<std::pair<std::string_view, char>, 5> known{
        {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}}};
    for (auto const& [word, c] : known) {
        if (name == word) {
            out += c;
            return true;
        }
    }
    if (!name.starts_with('#')) return false;
    bool const hex = name.starts_with("#x");
    auto const number = whole<std::uint32_t>(name.substr(hex ? 2 : 1), hex ? 16 : 10);
    return number && put_character(out, *number);
}

std::optional<std::string> unescaped(std::string_view text) {
    constexpr std::size_t longest_entity = 10;
    std::string out;
    for (;;) {
        auto const at = text.find('&');
        out += text.substr(0, at);
        if (at == text.npos) return out;
        text.remove_prefix(at + 1);
        auto const end = text.substr(0, longest_entity).find(';');
        if (end == text.npos || !put_entity(out, text.substr(0, end))) return std::nullopt;
        text.remove_prefix(end + 1);
    }
}

// The page as its elements end.
class page_maker {
public:
    // False: this is no page of a listing.
    bool opened(std::string_view name) {
        if (path_.size() == most_depth || (path_.empty() && (is_over_ || name != "ListBucketResult"))) return false;
        path_.push_back(name);
        text_ = {};
        if (!is_object()) return true;
        out_.objects.emplace_back();
        return out_.objects.size() <= most_page_objects;
    }
    bool said(std::string_view text) {
        if (path_.empty()) return text.find_first_not_of(blanks) == text.npos;
        text_ = text;
        return true;
    }
    bool closed(std::string_view name) {
        if (path_.empty() || path_.back() != name || !take(name)) return false;
        path_.pop_back();
        text_ = {};
        is_over_ = path_.empty();
        return true;
    }
    [[nodiscard]] std::optional<bucket_page> finish() && {
        if (!is_over_ || !more_ || (*more_ && out_.next.empty())) return std::nullopt;
        if (!*more_) out_.next.clear();
        return std::move(out_);
    }

private:
    [[nodiscard]] bool is_object() const { return path_.size() == 2 && path_[1] == "Contents"; }
    bool take(std::string_view name) {
        if (is_object()) return !out_.objects.back().key.empty();
        if (path_.size() == 2) return take_of_page(name);
        return path_.size() != 3 || path_[1] != "Contents" || take_of_object(name, out_.objects.back());
    }
    bool take_of_page(std::string_view name) {
        if (name == "NextContinuationToken") return take_text(out_.next) && out_.next.size() <= most_page_token;
        if (name != "IsTruncated") return true;
        more_ = text_ == "true";
        return *more_ || text_ == "false";
    }
    bool take_of_object(std::string_view name, bucket_page::object& o) {
        if (name == "Key") return take_text(o.key);
        if (name == "LastModified") o.written = iso_time(text_);
        if (name != "Size") return true;
        auto const bytes = whole<std::uint64_t>(text_);
        o.bytes = bytes.value_or(0);
        return bytes.has_value();
    }
    bool take_text(std::string& to) const {
        auto text = unescaped(text_);
        if (text) to = *std::move(text);
        return text.has_value();
    }

    bucket_page out_;
    std::vector<std::string_view> path_;
    std::string_view text_;
    std::optional<bool> more_;
    bool is_over_ = false;
};

// For a query, as signatures want it.
std::string percent_encoded(std::string_view text) {
    std::string out;
    for (char const c : text) {
        if (is_letter(c) || is_digit(c) || std::string_view{"-._~"}.find(c) != std::string_view::npos) out += c;
        else out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
    return out;
}

// What a server makes of the path of a URL.
std::string percent_decoded(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        auto const byte = text[i] == '%' && i + 2 < text.size() ? whole<std::uint8_t>(text.substr(i + 1, 2), 16)
                                                                : std::optional<std::uint8_t>{};
        out += byte ? static_cast<char>(*byte) : text[i];
        if (byte) i += 2;
    }
    return out;
}

curl_options listing_options(remote_options const& o, s3_access const& who) {
    return {.connect_timeout = o.connect_timeout,
            .timeout = o.timeout,
            .ca = o.ca.native(),
            .certificate = o.certificate.native(),
            .certificate_key = o.certificate_key.native(),
            .aws = signing_scheme(who),
            .user = who.id + ":" + who.secret};
}

}  // namespace

result<bucket_page> decode_bucket_page(std::string_view xml) {
    auto const no = fail(errc::corrupt, "no list of a bucket");
    if (xml.size() > most_page_bytes) return no;
    xml_reader in{xml};
    page_maker page;
    for (;;) {
        auto const t = in.next();
        bool good = false;
        switch (t.what) {
            case xml_reader::kind::open: good = page.opened(t.text); break;
            case xml_reader::kind::close: good = page.closed(t.text); break;
            case xml_reader::kind::text: good = page.said(t.text); break;
            case xml_reader::kind::bad: break;
            case xml_reader::kind::end: {
                auto out = std::move(page).finish();
                if (out) return *std::move(out);
            }
        }
        if (!good) return no;
    }
}

bucket_reader::bucket_reader(remote_options const& options)
    : access_{s3_access_of(options)},
      shown_{options.at.text()},
      bucket_{access_.base.substr(0, access_.base.size() - options.at.path.size())},
      caller_{listing_options(options, access_)} {
    std::string_view below{options.at.path};
    below.remove_prefix(std::min(below.size(), below.find_first_not_of('/')));
    if (!below.empty()) prefix_ = percent_decoded(below) + "/";
}

result<bucket_page> bucket_reader::page(std::string const& token) {
    if (!access_.why.empty()) return fail(errc::forbidden, "{}: {}", shown_, access_.why);
    // In the order of their names: libcurl signs them as they come.
    http_request what{.url = bucket_ + "?", .most = most_page_bytes};
    if (!token.empty()) what.url += fmt::format("continuation-token={}&", percent_encoded(token));
    what.url += fmt::format("list-type=2&prefix={}", percent_encoded(prefix_));
    add_s3_headers(access_, what);
    auto const r = caller_.call(std::move(what));
    if (!is_good(r)) {
        auto const why = failure_of(r);
        return fail(errc::io, "{}: {}: {}{}", shown_, name_of(why.what), why.detail,
                    why.what == trouble::denied ? "; let this user list the bucket (s3:ListBucket)" : "");
    }
    auto out = decode_bucket_page(base::as_text(r.body));
    if (!out) return fail(errc::corrupt, "{}: what it says that it has is {}", shown_, out.error().message());
    out->now = http_date(r.header("date"));
    return out;
}

}  // namespace kiln::remote
