#!/usr/bin/env python3
"""Reads the repository and fails, naming the replacement to use, where a habit of ours is broken.

    tests/tidy/tidy.py [ROOT]

Where a rule is wrong for one line, that line or the one above says why: `// tidy: reason`. The rules that need a compiler are
in dependencies_test.py; formatting is clang-format's.
"""
import fnmatch
import os
import re
import subprocess
import sys
from dataclasses import dataclass

MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 70

CPP = ("*.cc", "*.h", "*.c")
CODE = CPP + ("*.py", "*.cmake", "CMakeLists.txt", "Makefile", "tools/*", ".ci/*")
# This folder has to spell out what it forbids.
EXEMPT = ("tests/tidy/*", "LICENSE")


@dataclass
class Rule:
    """`pattern` must not occur in the files that match `where` (and not `but_not`)."""

    pattern: str
    instead: str
    where: tuple
    but_not: tuple = ()
    in_comments: bool = False  # also look at comments


CORE_INCLUDES = (
    r"#\s*include\s*<(thread|mutex|shared_mutex|condition_variable|atomic|future|semaphore|latch|barrier|stop_token"
    r"|chrono|ctime|time\.h|random|iostream|fstream|cstdio|stdio\.h|filesystem|unistd\.h|pthread\.h|sys/[^>]*"
    r"|netinet/[^>]*|arpa/[^>]*|spdlog/[^>]*|fmt/[^>]*|asio[^>]*|openssl/[^>]*)>"
)

RULES = (
    Rule(CORE_INCLUDES, "the core is pure: take `now`, a Random or a value as an argument, and return effects", ("src/core/*",)),
    Rule(
        r"\b(std::)?s?rand\s*\(|\bstd::(mt19937|minstd_rand|default_random_engine)",
        "use hoplite::Random (base/random.h) with a seed",
        CPP,
    ),
    Rule(
        r"\brandom_device\b|\bgetrandom\s*\(",
        "randomness enters where the process starts (apps, node, client); pass a seed or a Random",
        ("src/*", "sim/*"),
        ("src/node/*", "src/transport/*", "src/client/*", "src/base/*"),
    ),
    Rule(
        r"\b(steady_clock|system_clock|high_resolution_clock)::now\b|\bclock_gettime\s*\(|\bgettimeofday\s*\(|\btime\s*\(\s*(NULL|nullptr|0)\s*\)",
        "use monotonic_now() (transport/loop.h) at the edge and pass `now`; in core and sim time is an argument",
        ("src/*", "sim/*"),
        ("src/transport/*", "src/client/*", "src/shm/*", "sim/main.cc", "sim/*main*.cc", "*_test.cc"),
    ),
    Rule(
        r"\bgetenv\s*\(",
        "read the environment in apps/ or where the client connects, and pass the value on",
        ("src/*", "sim/*"),
        ("src/client/*", "src/base/paths.cc"),
    ),
    Rule(
        r"#\s*include\s*\"transport/tcp/",
        "the interface is transport/transport.h; only the daemon chooses TCP",
        ("src/*", "sim/*"),
        ("src/transport/tcp/*", "src/node/*"),
    ),
    Rule(r"#\s*include\s*\"\.\.?/", "include by module: \"protocol/codec.h\"", CPP),
    Rule(
        r"\b(TODO|FIXME|XXX|HACK)\b", "do it, or open an issue and explain the limit in words", CODE + ("*.md",), in_comments=True
    ),
    Rule(
        r"(^|[\s\"'=(:])/(root|work)/|/home/[a-z]",
        "no paths of one machine: relative to the repository, or from the environment",
        ("*",),
        in_comments=True,
    ),
    Rule(
        r"\b(py[p]i\.org|pythonhoste[d]\.org|registry\.npmj[s]|crates\.i[o]|deb\.debia[n]\.org|artifactory|index-url|PIP_INDEX)",
        "name packages, not hosts: where they come from is the machine's configuration",
        CODE + ("*.md", "*.toml", "*.json"),
        in_comments=True,
    ),
    Rule(r"\busing namespace std\b(?!::\w*literals)", "write std::", CPP),
    Rule(r"\bNOLINT(NEXTLINE|BEGIN)?\b(?!(\([\w.,* -]+\)): )(?!END)", "NOLINT(check): reason", CPP, in_comments=True),
    Rule(r"\b(sleep_for|usleep|nanosleep)\b", "wait for an event or a timer, not for a while", ("src/*",), ("*_test.cc",)),
)


def matches(path, patterns):
    return any(fnmatch.fnmatch(path, p) or fnmatch.fnmatch(os.path.basename(path), p) for p in patterns)


def blank(match):
    """Spaces of the same shape, so that line numbers stay."""
    return re.sub(r"[^\n]", " ", match.group(0))


def without_comments(text):
    return re.sub(r"//[^\n]*|/\*.*?\*/", blank, text, flags=re.S)


def without_strings(text):
    text = re.sub(r'R"(\w*)\((.*?)\)\1"', blank, text, flags=re.S)
    text = re.sub(r"(?<![0-9a-fA-F])'(\\.|[^'\\\n])+'", blank, text)
    return re.sub(r'"(\\.|[^"\\\n])*"', blank, text)


def long_functions(text):
    """(first line, name, lines) of C++ functions over the limit. An approximation by braces: a block that opens after a
    parameter list, outside of any other function, is a function."""
    found = []
    stack = []  # of open blocks: (first line, name, is it a function)
    code = without_strings(without_comments(text))
    code = re.sub(r"^[ \t]*#(\\\n|[^\n])*", blank, code, flags=re.M)
    code = re.sub(r"(?<=\w)\{[^{};\n]*\}", blank, code)  # values such as `x_{1}`; blocks have a space before the brace
    start = 0
    for match in re.finditer(r"[{};]", code):
        at, char = match.start(), match.group(0)
        head = code[start:at]
        start = at + 1
        if char == ";":
            continue
        line = code.count("\n", 0, at) + 1
        if char == "{":
            inside = any(is_function for _, _, is_function in stack)
            name = re.search(r"([~\w:]+)\s*\(.*\)", head, flags=re.S)
            keyword = re.match(r"\s*(namespace|struct|class|enum|union|extern)\b", head)
            is_function = bool(name) and not inside and not keyword and "=" not in head.split("(")[0]
            first = line - head.lstrip().count("\n")
            stack.append((first, name.group(1) if name else None, is_function))
        elif stack:
            first, name, is_function = stack.pop()
            if is_function and line - first + 1 > MAX_FUNCTION_LINES:
                found.append((first, name, line - first + 1))
    return found


def check_layout(path, text):
    """Rules about the file as a whole."""
    lines = text.split("\n")
    measured = matches(path, ("src/*", "sim/*", "apps/*", "include/*", "bench/*", "tests/*")) and matches(path, CPP + ("*.py",))
    if measured and len(lines) > MAX_FILE_LINES and not any("long because" in line for line in lines[:5]):
        yield 1, f"{len(lines)} lines; split it below {MAX_FILE_LINES}, or say 'long because ...' in its first five lines"
    if path.endswith(".h") and "#pragma once" not in lines:
        yield 1, "add #pragma once"
    if text and not text.endswith("\n"):
        yield len(lines), "end the file with a newline"
    for number, line in enumerate(lines, 1):
        if line != line.rstrip():
            yield number, "remove the trailing whitespace"
        if "\t" in line and not matches(path, ("Makefile", ".gitmodules")):
            yield number, "use spaces, not tabs"


def check(path, text):
    """(line, complaint) for every broken rule in one file."""
    if matches(path, EXEMPT):
        return
    if matches(path, CODE + ("*.md", "*.json", "*.toml", "*.txt", ".clang*")):
        yield from check_layout(path, text)
    if matches(path, ("src/*.cc", "src/*.h")) and not path.endswith("_test.cc"):
        for line, name, length in long_functions(text):
            yield line, f"{name} has {length} lines; split it below {MAX_FUNCTION_LINES}"
    lines = text.split("\n")
    bare = without_comments(text) if matches(path, CPP) else text
    for rule in RULES:
        if not matches(path, rule.where) or (rule.but_not and matches(path, rule.but_not)):
            continue
        searched = text if rule.in_comments else bare
        for match in re.finditer(rule.pattern, searched, flags=re.M):
            line = searched.count("\n", 0, match.start()) + 1
            if any("tidy: " in nearby for nearby in lines[max(line - 2, 0) : line]):
                continue
            yield line, f"'{match.group(0).strip()}': {rule.instead}"


def repository_files(root):
    """What is, or could be, committed; everything but build/ where there is no git."""
    command = ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, check=False)
    if listed.returncode == 0:
        names = sorted(set(listed.stdout.decode().split("\0")) - {""})
    else:
        names = []
        for folder, folders, files in os.walk(root):
            folders[:] = [f for f in folders if f not in ("build", ".git", "__pycache__")]
            names += [os.path.relpath(os.path.join(folder, f), root) for f in files]
    return [name for name in names if os.path.isfile(os.path.join(root, name))]


def main(root):
    complaints = 0
    names = repository_files(root)
    for name in names:
        with open(os.path.join(root, name), "rb") as file:
            data = file.read()
        if b"\0" in data:
            continue
        for line, complaint in check(name, data.decode("utf-8", errors="replace")):
            print(f"{name}:{line}: {complaint}")
            complaints += 1
    print(f"tidy: {len(names)} files, {complaints} complaints")
    return 1 if complaints or not names else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "."))
