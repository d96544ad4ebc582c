// SPDX-License-Identifier: Apache-2.0
#include "intercept/same_ptx.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace kiln::intercept {

namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

template <class Is>
std::string_view leading(std::string_view text, Is is) {
    return text.substr(0, static_cast<std::size_t>(std::ranges::find_if_not(text, is) - text.begin()));
}

using classes = std::set<std::string_view>;

// Of ".reg .b32 %r<52>;": "r". Those of the machine itself (%clock64, %envreg3) are never declared.
classes declared_in(std::string_view ptx) {
    classes out;
    constexpr std::string_view word = ".reg ";
    for (auto at = ptx.find(word); at != ptx.npos; at = ptx.find(word, at + 1)) {
        auto const line = leading(ptx.substr(at), [](char c) { return c != ';' && c != '\n'; });
        auto const sign = line.find('%');
        if (sign == line.npos) continue;
        auto const name = leading(line.substr(sign + 1), is_letter);
        if (line.substr(sign + 1 + name.size()).starts_with('<')) out.insert(name);
    }
    return out;
}

// "%r12" where the text begins with a register of a declared class; empty: it does not.
std::string_view register_at(std::string_view text, classes const& declared) {
    if (!text.starts_with('%')) return {};
    auto const name = leading(text.substr(1), is_letter);
    auto const number = leading(text.substr(1 + name.size()), is_digit);
    if (number.empty() || !declared.contains(name)) return {};
    return text.substr(0, 1 + name.size() + number.size());
}

class renaming {
public:
    // One to one, and within a class.
    bool agrees(std::string_view a, std::string_view b) {
        if (leading(a.substr(1), is_letter) != leading(b.substr(1), is_letter)) return false;
        return there_.try_emplace(a, b).first->second == b && back_.try_emplace(b, a).first->second == a;
    }
    void forget() {
        there_.clear();
        back_.clear();
    }

private:
    std::map<std::string_view, std::string_view> there_, back_;
};

bool begins_function(std::string_view text) { return text.starts_with(".entry") || text.starts_with(".func"); }

}  // namespace

bool is_same_ptx(std::string_view a, std::string_view b) {
    if (a == b) return true;
    auto const declared = declared_in(a);
    if (declared != declared_in(b)) return false;
    renaming names;
    while (!a.empty() && !b.empty()) {
        auto const one = register_at(a, declared), other = register_at(b, declared);
        if (one.empty() || other.empty()) {
            if (a.front() != b.front()) return false;
            if (begins_function(a)) names.forget();
            a.remove_prefix(1);
            b.remove_prefix(1);
            continue;
        }
        if (!names.agrees(one, other)) return false;
        a.remove_prefix(one.size());
        b.remove_prefix(other.size());
    }
    return a.empty() && b.empty();
}

}  // namespace kiln::intercept
