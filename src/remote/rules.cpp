// SPDX-License-Identifier: Apache-2.0
#include "remote/rules.hpp"

#include "base/directory.hpp"

#include <algorithm>

namespace kiln::remote {

namespace {

result<std::vector<store::public_key>> read_keys(std::vector<std::filesystem::path> const& paths) {
    std::vector<store::public_key> out;
    for (auto const& path : paths) {
        std::error_code why;
        std::vector<std::filesystem::path> files{path};
        if (std::filesystem::is_directory(path, why)) {
            files.clear();
            KILN_CHECK(base::for_each_name(path, [&](std::string_view name) {
                if (name.ends_with(".pub")) files.push_back(path / name);
            }));
            std::ranges::sort(files);
            if (files.empty()) return fail(errc::not_found, "{}: no *.pub in it", path.native());
        }
        for (auto const& file : files) {
            // Its public half could be told from it, and then it would lie on every machine that only reads.
            if (store::private_key::load(file))
                return fail(errc::invalid_argument, "{}: a private key; keys= takes its public half, {}.pub",
                            file.native(), file.native());
            KILN_TRY(auto key, store::public_key::load(file));
            out.push_back(std::move(key));
        }
    }
    return out;
}

}  // namespace

result<trust> trust_of(remote_options const& o) {
    trust out{.in = o.in, .space = o.space, .keys = {}, .least_epoch = o.least_epoch};
    KILN_TRY(out.keys, read_keys(o.keys));
    return out;
}

result<client_rules> make_rules(remote_options const& o, put_rule rule) {
    client_rules out{.options = o, .believed = {}, .signs = {}, .replaces = rule == put_rule::replace};
    KILN_TRY(out.believed, trust_of(o));
    if (!o.sign.empty() && o.writes == writing::allowed) {
        KILN_TRY(auto key, store::private_key::load(o.sign));
        // What nobody believes here is replaced by everybody, and by this machine too.
        auto const who = key.public_half().id();
        if (o.in == belief::signatures &&
            std::ranges::find(out.believed.keys, who, &store::public_key::id) == out.believed.keys.end())
            return fail(errc::invalid_argument,
                        "{}: what it signs is not believed: key {} is not among keys=", o.sign.native(),
                        store::to_hex(who));
        out.signs = signer{.key = std::move(key), .epoch = o.epoch};
    }
    return out;
}

}  // namespace kiln::remote
