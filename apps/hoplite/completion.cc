// hoplite completion: scripts for shells, made from what the options really are.
#include <algorithm>
#include <cstdio>
#include <memory>

#include "cli.h"

namespace hoplite {
namespace {

// The words that an option takes, or "".
std::string values_of(const std::string& option) {
  if (option == "op") return reduce_op_names();
  if (option == "type") return dtype_names();
  if (option == "priority") return priority_names();
  if (option == "on-lost") return "fail wait";
  if (option == "method") return "cost whole slices";
  if (option == "log-level") return "debug info warn error";
  return "";
}

// Commands whose arguments are objects.
bool takes_ids(const std::string& command) {
  static const auto kCommands = {"get", "wait", "rm", "fail", "reduce", "allreduce", "gather"};
  return std::find(kCommands.begin(), kCommands.end(), command) != kCommands.end();
}

std::string words_of(const CLI::App& app) {
  std::string words;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) words += (words.empty() ? "--" : " --") + name;
  return words;
}

std::string command_names(const CLI::App& app) {
  std::string names;
  for (const CLI::App* sub : app.get_subcommands(nullptr)) names += (names.empty() ? "" : " ") + sub->get_name();
  return names;
}

// Prints ids and names, one in a line. Names come from anybody in the cluster: whatever reads them must not expand them, as
// `compgen -W` would. Those that JSON has to escape are left out.
std::string list_ids() {
  return "hoplite ls --json 2>/dev/null | grep -oE '\"(id|name)\": \"[^\" \\]+\"' | sed -E 's/.*: \"(.*)\"/\\1/'";
}

// Options whose value is a file are completed by the shell; everything else by our words.
std::string bash_script(const CLI::App& app) {
  std::string script =
      "# hoplite completion for bash: eval \"$(hoplite completion bash)\"\n"
      "_hoplite() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command= i\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    case ${COMP_WORDS[i]} in\n"
      "      --socket) ((i++)) ;;\n"
      "      -*) ;;\n"
      "      *) command=${COMP_WORDS[i]}; break ;;\n"
      "    esac\n"
      "  done\n"
      "  COMPREPLY=()\n"
      "  case $previous in\n"
      "    --socket|--config|--token-file|--log-file|-o|--output) COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n";
  for (const char* option : {"op", "type", "priority", "on-lost", "method", "log-level"})
    script += std::string("    --") + option + ") COMPREPLY=($(compgen -W '" + values_of(option) +
              "' -- \"$word\")); return ;;\n";
  script +=
      "  esac\n"
      "  local words= ids=\n"
      "  case $command in\n"
      "    '') words='" +
      command_names(app) + " " + words_of(app) + "' ;;\n";
  for (const CLI::App* sub : app.get_subcommands(nullptr)) {
    std::string words = words_of(*sub);
    if (sub->get_name() == "completion") words += " bash zsh";
    script +=
        "    " + sub->get_name() + ") words='" + words + "'" + (takes_ids(sub->get_name()) ? " ids=1" : "") + " ;;\n";
  }
  script +=
      "  esac\n"
      "  if [[ $command == put && $word != -* ]]; then COMPREPLY=($(compgen -f -- \"$word\")); return; fi\n"
      "  if [[ $ids && $word != -* ]]; then\n"
      "    local id\n"
      "    while IFS= read -r id; do\n"
      "      [[ $id == \"$word\"* ]] && COMPREPLY+=(\"$id\")\n"
      "    done < <(" +
      list_ids() +
      ")\n"
      "    return\n"
      "  fi\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
      "}\n"
      "complete -o filenames -F _hoplite hoplite\n";
  return script;
}

std::string zsh_quoted(std::string text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') out += "'\\''";
    else if (c == '[' || c == ']' || c == ':' || c == '\\') out += std::string("\\") + c;
    else out += c;
  }
  return out;
}

std::string zsh_options(const CLI::App& app) {
  std::string specs;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) {
      const bool takes_value = option->get_expected_max() > 0;
      const std::string type = option->get_type_name();
      const std::string values = values_of(name);
      const std::string how = type == "FILE" || type == "PATH" ? "_files"
                              : type == "DIR"                  ? "_files -/"
                              : type == "ID"                   ? "_hoplite_ids"
                              : values.empty()                 ? ""
                                                               : "(" + values + ")";
      specs += " \\\n        '--" + name + (takes_value ? "=" : "") + "[" + zsh_quoted(option->get_description()) +
               "]" + (takes_value ? ":" + zsh_quoted(type) + ":" + how : "") + "'";
    }
  return specs;
}

std::string zsh_script(const CLI::App& app) {
  std::string script =
      "#compdef hoplite\n"
      "# hoplite completion for zsh: eval \"$(hoplite completion zsh)\"\n"
      "_hoplite() {\n"
      "  local context state line\n"
      "  local -a commands\n"
      "  commands=(\n";
  for (const CLI::App* sub : app.get_subcommands(nullptr))
    script += "    '" + sub->get_name() + ":" + zsh_quoted(sub->get_description()) + "'\n";
  script += "  )\n  _arguments -C" + zsh_options(app) +
            " \\\n        '1:command:->command' '*::argument:->argument'\n"
            "  case $state in\n"
            "    command) _describe command commands ;;\n"
            "    argument)\n"
            "      case $line[1] in\n";
  for (const CLI::App* sub : app.get_subcommands(nullptr)) {
    const std::string name = sub->get_name();
    const std::string positional = name == "put"          ? " '*:file:_files'"
                                   : name == "completion" ? " '1:shell:(bash zsh)'"
                                   : takes_ids(name)      ? " '*:id:_hoplite_ids'"
                                                          : "";
    script += "        " + name + ") _arguments" + zsh_options(*sub) + positional + " ;;\n";
  }
  script +=
      "      esac ;;\n"
      "  esac\n"
      "}\n"
      "_hoplite_ids() {\n"
      "  local -a ids\n"
      "  ids=(${(f)\"$(" +
      list_ids() +
      ")\"})\n"
      "  compadd -a ids\n"
      "}\n"
      "compdef _hoplite hoplite\n";
  return script;
}

}  // namespace

void add_completion(Cli& cli) {
  auto shell = std::make_shared<std::string>();
  CLI::App& app = cli.bare_subcommand("completion", "print a shell completion script", [&cli, shell] {
    const std::string script = *shell == "bash" ? bash_script(cli.app) : zsh_script(cli.app);
    std::fwrite(script.data(), 1, script.size(), stdout);
    return kExitOk;
  });
  app.add_option("shell", *shell, "bash or zsh")->required()->check(CLI::IsMember({"bash", "zsh"}))->type_name("SHELL");
}

}  // namespace hoplite
