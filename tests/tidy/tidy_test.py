#!/usr/bin/env python3
"""Every rule of tidy.py finds what it is for, and only that."""
import unittest

import tidy


def complaints(path, text):
    return [complaint for _, complaint in tidy.check(path, text)]


HEADER = "// A thing.\n#pragma once\n"


class Rules(unittest.TestCase):
    def rejects(self, path, text, fragment):
        found = complaints(path, text)
        self.assertEqual(len(found), 1, found)
        self.assertIn(fragment, found[0])

    def accepts(self, path, text):
        self.assertEqual(complaints(path, text), [])

    def test_core_is_pure(self):
        for header in ("thread", "chrono", "random", "sys/socket.h", "unistd.h", "spdlog/spdlog.h", "asio.hpp", "iostream"):
            self.rejects("src/core/agent/agent.cc", f"#include <{header}>\n", "the core is pure")
            self.accepts("src/node/daemon.cc", f"#include <{header}>\n")
        self.accepts("src/core/agent/agent.cc", "#include <vector>\n#include <algorithm>\n")

    def test_randomness(self):
        self.rejects("src/shm/arena.cc", "int x = rand();\n", "hoplite::Random")
        self.rejects("sim/world.cc", "std::mt19937 engine;\n", "hoplite::Random")
        self.rejects("src/core/agent/agent.cc", "std::random_device device;\n", "randomness enters")
        self.accepts("src/shm/arena.cc", "int operand(int x);\nint y = operand(1);\n")

    def test_clocks(self):
        self.rejects("sim/world.cc", "auto t = std::chrono::steady_clock::now();\n", "monotonic_now")
        self.rejects("src/node/daemon.cc", "clock_gettime(CLOCK_MONOTONIC, &t);\n", "monotonic_now")
        self.accepts("src/transport/loop.cc", "clock_gettime(CLOCK_MONOTONIC, &t);\n")

    def test_environment(self):
        self.rejects("src/node/daemon.cc", 'getenv("HOME");\n', "environment")
        self.accepts("apps/main.cc", 'getenv("HOME");\n')

    def test_relative_includes(self):
        self.rejects("src/node/daemon.cc", '#include "../shm/arena.h"\n', "include by module")

    def test_unfinished_work(self):
        self.rejects("src/node/daemon.cc", "// TODO: later\n", "open an issue")
        self.rejects("docs/design.md", "FIXME\n", "open an issue")

    def test_machine_paths_and_hosts(self):
        self.rejects("bench/run.py", 'path = "/ro' 'ot/thing"\n', "no paths of one machine")
        self.rejects("README.md", "see /home/alice/x\n", "no paths of one machine")
        self.rejects("tools/setup", "curl https://py" "pi.org/x\n", "name packages")
        self.accepts("src/node/root/x.cc", '#include "node/root/x.h"\n')

    def test_suppressions_have_reasons(self):
        self.rejects("src/node/x.cc", "int x;  // NOLINT\n", "reason")
        self.rejects("src/node/x.cc", "int x;  // NOLINT(check)\n", "reason")
        self.accepts("src/node/x.cc", "int x;  // NOLINT(google-explicit-constructor): `return x;`\n")

    def test_layout(self):
        self.rejects("src/node/x.h", "// A thing.\n", "#pragma once")
        self.accepts("src/node/x.h", HEADER)
        self.rejects("src/node/x.cc", "int x; \n", "trailing whitespace")
        self.rejects("src/node/x.cc", "\tint x;\n", "not tabs")
        self.rejects("src/node/x.cc", "int x;", "newline")
        self.accepts("Makefile", "all:\n\techo\n")

    def test_long_files(self):
        lines = "int x;\n" * tidy.MAX_FILE_LINES
        self.rejects("src/node/x.cc", lines, "lines; split it")
        self.accepts("src/node/x.cc", "// long because it is a table\n" + lines)
        self.accepts("docs/x.md", lines)

    def test_forbidden_words_in_comments_are_words(self):
        self.accepts("src/node/x.cc", "// never call rand() or getenv() here\n")

    def test_an_exception_has_a_reason(self):
        clock = "auto t = std::chrono::steady_clock::now();"
        self.accepts("sim/world.cc", clock + "  // tidy: measures ourselves\n")
        self.accepts("sim/world.cc", "// tidy: measures ourselves\n" + clock + "\n")
        self.rejects("sim/world.cc", "// tidy: measures ourselves\n\n" + clock + "\n", "monotonic_now")

    def test_this_folder_may_spell_them_out(self):
        self.accepts("tests/tidy/tidy.py", "TODO /ro" "ot/ \t")


class LongFunctions(unittest.TestCase):
    def body(self, lines):
        return "  if (x) {\n    y();\n  }\n" * (lines // 3)

    def test_free_functions(self):
        self.assertEqual(tidy.long_functions("int f(int x) {\n" + self.body(60) + "}\n"), [])
        found = tidy.long_functions("int f(int x) {\n" + self.body(90) + "}\n")
        self.assertEqual(found, [(1, "f", 92)])

    def test_methods_constructors_and_namespaces(self):
        text = (
            "namespace a {\nstruct S {\n  int small() const { return 1; }\n  int x = 0;\n};\n"
            "S::S(int x)\n    : x_(x), y_{2} {\n" + self.body(90) + "}\n"
            "auto S::f(int x) -> int {\n" + self.body(90) + "}\n}\n"
        )
        self.assertEqual([name for _, name, _ in tidy.long_functions(text)], ["S::S", "S::f"])

    def test_long_classes_and_tables_are_not_functions(self):
        methods = "  int f(int x) { return x; }\n" * 90
        self.assertEqual(tidy.long_functions("class C {\n" + methods + "};\n"), [])
        self.assertEqual(tidy.long_functions("const int table[] = {\n" + "  f(1),\n" * 90 + "};\n"), [])

    def test_braces_in_strings_and_comments(self):
        text = 'int f() {\n  g("{{{", \'{\');  // {{\n}\n' * 40
        self.assertEqual(tidy.long_functions(text), [])

    def test_lambdas_belong_to_their_function(self):
        text = "void f() {\n  auto g = [&](int x) {\n" + self.body(90) + "  };\n}\n"
        self.assertEqual([(name, lines) for _, name, lines in tidy.long_functions(text)], [("f", 94)])


if __name__ == "__main__":
    unittest.main()
