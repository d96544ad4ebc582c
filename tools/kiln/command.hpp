// SPDX-License-Identifier: Apache-2.0
// What every command of the CLI shares. Data goes to stdout, messages to stderr; exit status 0 only if all went well.
#pragma once

#include "base/check.hpp"
#include "base/files.hpp"
#include "message.hpp"

#include <kiln/engine.hpp>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace kiln::cli {

using json = nlohmann::ordered_json;

// A command adds itself to the application and says what to run.
struct command {
    CLI::App* app = nullptr;
    std::function<int()> run;
};

// Makes a subcommand whose --help is docs/cli/<page>.md; `page` is the name unless it is a command of a command.
[[nodiscard]] CLI::App* add_command(CLI::App& parent, std::string const& name, std::string const& page = {});
// First line of a page without its heading: the one-line summary.
[[nodiscard]] std::string summary_of(std::string const& page);
[[nodiscard]] std::string page_text(std::string const& page);

// The commands of the program, or of a command, in their order.
[[nodiscard]] std::vector<CLI::App const*> all_commands(CLI::App const& parent);
// The command of that name; null where there is none.
[[nodiscard]] CLI::App const* find_command(CLI::App const& root, std::string_view name);
// "there is no command 'cmpile'; did you mean 'compile'? ..."
[[nodiscard]] std::string no_such_command(CLI::App const& root, std::string_view name);
// "; did you mean 'compile'?" with the name somebody may have meant; empty where none is near.
[[nodiscard]] std::string did_you_mean(std::string_view word, std::vector<std::string> const& names);

// One per command, each in the file of its name.
void add_audit(CLI::App& root, std::vector<command>& commands);
void add_doctor(CLI::App& root, std::vector<command>& commands);
void add_compile(CLI::App& root, std::vector<command>& commands);
void add_demo(CLI::App& root, std::vector<command>& commands);
void add_build(CLI::App& root, std::vector<command>& commands);
void add_merge(CLI::App& root, std::vector<command>& commands);
void add_inspect(CLI::App& root, std::vector<command>& commands);
void add_verify(CLI::App& root, std::vector<command>& commands);
void add_key(CLI::App& root, std::vector<command>& commands);
void add_cache(CLI::App& root, std::vector<command>& commands);
void add_remote(CLI::App& root, std::vector<command>& commands);
void add_list(CLI::App& root, std::vector<command>& commands);
void add_bench(CLI::App& root, std::vector<command>& commands);
void add_calibrate(CLI::App& root, std::vector<command>& commands);
void add_events(CLI::App& root, std::vector<command>& commands);
void add_explain(CLI::App& root, std::vector<command>& commands);
void add_warm(CLI::App& root, std::vector<command>& commands);
void add_run(CLI::App& root, std::vector<command>& commands);
void add_capsule(CLI::App& root, std::vector<command>& commands);
void add_record(CLI::App& root, std::vector<command>& commands);
void add_replay(CLI::App& root, std::vector<command>& commands);
void add_profile(CLI::App& root, std::vector<command>& commands);
void add_spatial(CLI::App& root, std::vector<command>& commands);
void add_status(CLI::App& root, std::vector<command>& commands);
void add_trace(CLI::App& root, std::vector<command>& commands);
void add_config(CLI::App& root, std::vector<command>& commands);
void add_help(CLI::App& root, std::vector<command>& commands);
void add_manual(CLI::App& root, std::vector<command>& commands);
void add_completion(CLI::App& root, std::vector<command>& commands);

// Data for standard output. Throws where it cannot be written, here or, of what is still kept back, in finish_output.
void print_json(json const& data);
void print(std::string_view text);
void finish_output();

// Whether a bundle, or another file that appears whole or not at all, can be written there: asked before the work.
[[nodiscard]] result<void> check_output(std::filesystem::path const& file);
// The same for what may also go to a pipe or a device; "-" is standard output.
[[nodiscard]] result<void> check_text_output(std::string const& to);
// An error where a file to write is, by whatever name, one that is read or another one to write.
[[nodiscard]] result<void> check_apart(std::vector<std::string> const& outputs, std::vector<std::string> const& inputs);
[[nodiscard]] result<void> write_text_output(std::string const& to, base::byte_span data);

// "12.3 KiB".
[[nodiscard]] std::string bytes_text(std::uint64_t bytes);

// "1 entry", "3 entries"; `many` where it is not `one` and an s.
[[nodiscard]] std::string count_of(std::uint64_t count, std::string_view one, std::string_view many = {});

// Columns aligned by content; the first row is the heading.
[[nodiscard]] std::string table(std::vector<std::vector<std::string>> const& rows);

// The GPU of this machine as an architecture, or sm_90 where there is none; `found` tells which.
struct local_arch {
    kiln::arch arch;
    bool found = false;
    std::string device;  // its name
};
[[nodiscard]] local_arch arch_of_this_machine();

}  // namespace kiln::cli
