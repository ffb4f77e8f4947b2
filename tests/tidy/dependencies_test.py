#!/usr/bin/env python3
"""Dependencies point one way: what is not drawn here cannot be included, and the core cannot reach the outside world.

    dependencies_test.py SOURCE_DIR BUILD_DIR

Asks the compiler, with each module's own flags, whether it can include a header of each other module; and looks at the
symbols that the core's libraries want from elsewhere.
"""
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
import unittest

SOURCE, BUILD = (os.path.abspath(p) for p in sys.argv[1:3]) if len(sys.argv) > 2 else (".", "build/release")

# The architecture: which modules a module may include. A new module is added here, on purpose.
LOW = {"base", "protocol"}
CORE_PARTS = {"core/objects", "core/directory", "core/broadcast", "core/membership", "core/reduce"}
MAY_INCLUDE = {
    "base": set(),
    "protocol": {"base"},
    **{part: LOW for part in CORE_PARTS},  # siblings in core do not know each other
    "core/agent": LOW | CORE_PARTS,
    "auth": {"base"},
    "shm": {"base"},
    "kernels": {"base"},
    "dataplane": LOW | {"kernels"},
    "transport": LOW | {"dataplane", "kernels"},
    "transport/tcp": LOW | {"transport", "dataplane", "auth", "kernels"},
    "node": LOW | CORE_PARTS | {"core/agent", "transport", "transport/tcp", "dataplane", "auth", "shm", "kernels"},
    "client": LOW | {"shm", "auth"},
}

# What decisions may not need: sockets, files, threads, clocks, the environment, randomness of the system, secrets.
FORBIDDEN_SYMBOLS = re.compile(
    r"^(socket|bind|listen|accept4?|connect|send|sendto|sendmsg|recv|recvfrom|recvmsg|epoll_\w+|e?poll|p?select|eventfd"
    r"|timerfd_\w+|open(at)?(64)?|fopen(64)?|read|write|mmap(64)?|memfd_create|fork|exec\w+|kill"
    r"|pthread_\w+|sem_\w+|clock_gettime|gettimeofday|time|nanosleep|usleep|sleep|(secure_)?getenv"
    r"|s?rand|random|getrandom|getentropy|EVP_\w+|HMAC\w*|RAND_\w+"
    r"|std::thread::.*|std::random_device::.*|std::chrono::_V2::\w+_clock::now\(\)"
    r"|std::basic_(i|o)?fstream<.*|std::cout|std::cerr|spdlog::.*)$"
)


def declared_modules():
    with open(os.path.join(SOURCE, "src/CMakeLists.txt"), encoding="utf-8") as file:
        return re.findall(r"^hoplite_module\((\S+)", file.read(), flags=re.M)


def compile_flags():
    """For each module, the compiler and the flags of one of its own sources."""
    with open(os.path.join(BUILD, "compile_commands.json"), encoding="utf-8") as file:
        commands = json.load(file)
    flags = {}
    for entry in commands:
        folder = os.path.relpath(os.path.dirname(os.path.join(entry["directory"], entry["file"])), os.path.join(SOURCE, "src"))
        if folder.startswith("..") or entry["file"].endswith("_test.cc"):
            continue
        words = shlex.split(entry["command"]) if "command" in entry else list(entry["arguments"])
        while os.path.basename(words[0]) in ("ccache", "sccache"):
            words.pop(0)
        kept = [w for w in words[1:] if w.startswith(("-I", "-isystem", "-std", "-D", "/")) and not w.endswith((".o", ".cc", ".d"))]
        flags.setdefault(folder, [words[0], *kept])
    return flags


def header_of(module):
    folder = os.path.join(SOURCE, "src", module)
    headers = sorted(h for h in os.listdir(folder) if h.endswith(".h")) if os.path.isdir(folder) else []
    return f"{module}/{headers[0]}" if headers else None


def includes(flags, header):
    """Can a source with these flags include `header`? Any error but "not found" is an answer too: yes."""
    command = [*flags, "-E", "-o", os.devnull, "-x", "c++", "-"]
    done = subprocess.run(command, input=f'#include "{header}"\n', text=True, capture_output=True, check=False)
    return f"{header}: No such file" not in done.stderr and f"'{header}' file not found" not in done.stderr


def lies_inside(module, others):
    """A folder shows its subfolders too; who may include those is a rule of tidy.py."""
    return any(module.startswith(other + "/") for other in others)


def undefined_symbols(library):
    listing = subprocess.run(["nm", "-u", "-C", library], text=True, capture_output=True, check=True).stdout
    return {line.split(None, 1)[1].strip() for line in listing.splitlines() if re.match(r"\s+[Uw] ", line)}


class Includes(unittest.TestCase):
    def test_every_module_is_drawn(self):
        self.assertEqual(set(declared_modules()), set(MAY_INCLUDE), "add the module to MAY_INCLUDE, on purpose")

    def test_only_what_is_drawn_can_be_included(self):
        flags = compile_flags()
        headers = {module: header_of(module) for module in MAY_INCLUDE}
        pairs = [
            (a, b)
            for a in MAY_INCLUDE
            for b in MAY_INCLUDE
            if a in flags and a != b and headers[b] and not lies_inside(b, MAY_INCLUDE[a] | {a})
        ]
        self.assertGreater(len(pairs), 2)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            answers = list(pool.map(lambda pair: includes(flags[pair[0]], headers[pair[1]]), pairs))
        for (module, other), can in zip(pairs, answers):
            with self.subTest(f"src/{module} includes {headers[other]}"):
                self.assertEqual(can, other in MAY_INCLUDE[module], "yes" if can else "no")


class Symbols(unittest.TestCase):
    def test_the_core_reaches_nothing_outside(self):
        libraries = [
            os.path.join(BUILD, "src", name)
            for name in sorted(os.listdir(os.path.join(BUILD, "src")))
            if re.fullmatch(r"libhoplite_(protocol|core_\w+)\.a", name)
        ]
        self.assertTrue(libraries, "nothing is built")
        for library in libraries:
            with self.subTest(os.path.basename(library)):
                self.assertEqual({s for s in undefined_symbols(library) if FORBIDDEN_SYMBOLS.match(s)}, set())

    def test_a_program_of_the_core_alone_needs_no_other_library(self):
        program = os.path.join(BUILD, "bin", "core_link_test")
        if not os.path.exists(program):
            self.skipTest("core_link_test is not built")
        listing = subprocess.run(["readelf", "-d", program], text=True, capture_output=True, check=True).stdout
        needed = set(re.findall(r"\(NEEDED\).*\[(\w+)", listing))
        sanitizers = {"libasan", "libubsan", "libtsan"}
        self.assertEqual(needed - sanitizers - {"libc", "libm", "libgcc_s", "libstdc", "libxxhash", "ld"}, set())

    def test_the_symbol_list_can_fail(self):
        for symbol in ("socket", "pthread_create", "clock_gettime", "epoll_wait", "EVP_MD_CTX_new"):
            self.assertTrue(FORBIDDEN_SYMBOLS.match(symbol), symbol)
        for symbol in ("memcpy", "operator new(unsigned long)", "XXH3_64bits", "std::terminate()"):
            self.assertFalse(FORBIDDEN_SYMBOLS.match(symbol), symbol)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
