// What the subcommands share: which daemon, how to fail, how to read what people type.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "hoplite/client.h"
#include "hoplite/error.h"

namespace hoplite {

// What main() returns.
constexpr int kExitOk = 0;
constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

// Options that every subcommand understands.
struct Common {
  std::string socket;  // empty: $HOPLITE_SOCKET, else the default
  bool json = false;
};

// A subcommand is registered with the app, and run by the function it leaves here.
struct Cli {
  CLI::App& app;
  Common common;
  std::function<int()> chosen;

  // --socket and --json, which may stand before the subcommand as well.
  void add_common(CLI::App& to);
  // A subcommand with --socket and --json. `run` returns the exit code.
  CLI::App& subcommand(const std::string& name, const std::string& help, std::function<int()> run);
  // The same without the options that choose a daemon.
  CLI::App& bare_subcommand(const std::string& name, const std::string& help, std::function<int()> run);
};

// One sentence on standard error; returns kExitFailed. With `typed`, what the user called the object is put in front of
// its id, if it was a name.
int fail(const Error& error, const std::string& typed = "");
int fail(const Error& error, const std::vector<std::string>& typed);
int fail(const std::string& message);

Result<Client> connect(const Common& common);

// Adds an option for a time such as 5s; not given: no limit.
void add_timeout(CLI::App& app, Timeout& timeout, const std::string& help);

// For options that take a name or an id: neither empty nor the nil id.
CLI::Validator names_an_object();

// Adds --priority: low, normal or high.
void add_priority(CLI::App& app, Priority& priority, const std::string& what);
// "low normal high".
std::string priority_names();

// Adds --type, an element type such as f32.
void add_dtype(CLI::App& app, DType& type, const std::string& help);
// Adds --op, an operator such as sum.
void add_reduce_op(CLI::App& app, ReduceOp& op, const std::string& help);
// "f32 f64 ...": the element types that can be reduced, and the operators.
std::string dtype_names();
std::string reduce_op_names();

std::vector<ObjectId> ids_from(const std::vector<std::string>& typed);

// What was typed, if it is a name and not an id.
std::string name_in(const std::string& typed);
// Registered by main().
void add_start_stop(Cli& cli);
void add_facts(Cli& cli);
void add_objects(Cli& cli);
void add_get(Cli& cli);
void add_reduce(Cli& cli);
void add_gather(Cli& cli);
void add_top(Cli& cli);
void add_local(Cli& cli);
void add_completion(Cli& cli);

}  // namespace hoplite
