// SPDX-License-Identifier: Apache-2.0
#include "command.hpp"

#include "base/files.hpp"
#include "store/signing.hpp"

#include <filesystem>

namespace kiln::cli {

void add_key(CLI::App& root, std::vector<command>& commands) {
    auto file = std::make_shared<std::string>();
    auto* const app = add_command(root, "key");
    app->add_option("FILE", *file, "private key to make")->required();
    commands.push_back({app, [file] {
                            auto const open_half = *file + ".pub";
                            check_output(*file).value();
                            check_output(open_half).value();
                            if (std::filesystem::exists(open_half))
                                throw fail(errc::invalid_argument, "{} exists; remove it or choose another name",
                                           open_half);
                            auto const key = store::private_key::generate().value();
                            key.save(*file).value();
                            auto const half = key.public_half();
                            base::replace_file(open_half, base::as_bytes(half.pem()), 0644).value();
                            print(fmt::format("{}: private key, keep it secret\n{}.pub: public key, id {}\n", *file,
                                              *file, store::to_hex(half.id())));
                            return ok;
                        }});
}

}  // namespace kiln::cli
