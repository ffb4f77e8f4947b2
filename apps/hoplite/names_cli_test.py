"""Names are data: whatever somebody calls an object, no command and no log passes control characters on; and names that
people gave are shown on every node. Also progress bars on narrow terminals, and where a daemon is found. Run by ctest;
HOPLITE_BIN is the folder of the programs."""

import fcntl
import json
import os
import pathlib
import pty
import re
import signal
import struct
import subprocess
import termios
import unicodedata
import unittest

from cli_test import BIN, PATIENCE_S, CliTest, wait_until
from reduce_cli_test import floats

# Clears the screen, sets the title, breaks the line and forges another, CSI as one character, writes backwards, is no UTF-8.
EVIL = ("cls\x1b[2J\x1b[31m", "title\x1b]0;owned\x07", "line\nforged\r\tline", "c1\x9b2J\x85", "bidi\u202egnp.exe", "raw\udcff\udc9b2J",
        "del\x7f\x08\x08", "zero\u200bwidth\u2028x")  # fmt: skip
FORBIDDEN_CATEGORIES = {"Cc", "Cf", "Zl", "Zp", "Cs"}


class Names(CliTest):
    def assert_clean(self, data, what):
        """Nothing but lines of text that can be shown."""
        text = data.decode()  # UTF-8
        bad = [c for c in text if c != "\n" and unicodedata.category(c) in FORBIDDEN_CATEGORIES]
        self.assertEqual(bad, [], (what, text))

    def pair(self, *arguments):
        self.first = self.start("--socket", self.folder / "first.sock", *arguments)
        self.second = self.start("--socket", self.folder / "second.sock", "--join", self.first["address"], *arguments)
        self.environment["HOPLITE_SOCKET"] = self.first["socket"]
        for node in (self.first, self.second):
            wait_until(lambda: self.json("status", "--socket", node["socket"])["members"] == 2, "both to know of each other")

    def at_second(self, *arguments):
        return *arguments, "--socket", self.second["socket"]

    def test_no_command_and_no_log_obeys_a_name(self):
        self.pair("--log-level", "debug")
        for name in EVIL:
            self.assert_clean(self.run_cli("put", "-", "--id", name, "--type", "f32", stdin=floats(1, 2)).stdout, "put")
            self.assertEqual(self.run_cli("get", name, *self.at_second()).stdout, floats(1, 2))
        commands = [("ls",), ("ls", "--json"), ("top",), ("top", "--json"), ("status",), ("nodes",), ("wait", *EVIL),
                    ("gather", *EVIL), ("gather", *EVIL, "-o", self.folder / "gathered", "--json"),
                    ("get", EVIL[0], "-o", self.folder / "copy", "--json")]  # fmt: skip
        for command in commands:
            for result in (self.run_cli(*command), self.run_cli(*self.at_second(*command))):
                self.assert_clean(result.stdout, command)
                self.assertNotEqual(result.stdout, b"", command)
                if command[-1] == "--json":
                    json.loads(result.stdout)
        listed = self.out("ls", *self.at_second())
        self.assertEqual(len(listed.splitlines()), 1 + len(EVIL), listed)  # no name has broken a line
        self.assertIn(r"cls\x1b[2J", listed)
        for path in (self.folder / "gathered").iterdir():
            self.assert_clean(os.fsencode(path), "a file's name")

        for name in EVIL:  # errors, too
            for command in (("put", "/dev/null", "--id", name), ("get", "never" + name, "--timeout", "50ms"),
                            ("wait", "never" + name, "--timeout", "50ms"), ("rm", "never" + name),
                            ("reduce", "--status", "never" + name), ("gather", "never" + name, "--timeout", "50ms")):  # fmt: skip
                self.assert_clean(self.run_cli(*self.at_second(*command), code=1).stderr, command)
            self.assert_clean(self.run_cli(name, code=2).stderr, "an unknown command")
            self.assert_clean(self.run_cli("get", "x", "--priority", name, code=2).stderr, "a wrong word")

        self.out("reduce", "--id", "sum" + EVIL[0], *EVIL[:2], "never" + EVIL[2])
        for extra in ((), ("--json",)):
            self.assert_clean(self.run_cli(*self.at_second("reduce", "--status", "sum" + EVIL[0], *extra)).stdout, "reduce")
        for name in EVIL:
            self.assert_clean(self.run_cli("rm", name).stdout, "rm")
        for node in (self.first, self.second):
            self.out("stop", "--socket", node["socket"])
            self.assert_clean(pathlib.Path(node["log"]).read_bytes(), "the log")
        logs = "".join(pathlib.Path(node["log"]).read_text() for node in (self.first, self.second))
        self.assertIn(r"\x1b[2J", logs)  # or this has shown nothing

    def test_lost_objects_are_named_in_the_log(self):
        self.pair()
        names = [f"lost {number}\n" for number in range(16)]
        for name in names:
            self.out("put", "-", "--id", name, *self.at_second(), stdin=b"x" * 100_000)
        homes = {o["name"]: o["home"] for o in self.json("ls", *self.at_second())["objects"]}
        here = self.json("status")["node"]
        at_home_here = [name for name in names if homes[name] == here]
        self.assertTrue(at_home_here, "none of 16 names has its home on one of two nodes")
        for name in at_home_here[3:]:  # of very many that are lost at once, the log names only one
            self.out("rm", name)
        del at_home_here[3:]
        os.kill(self.second["pid"], signal.SIGKILL)
        log = pathlib.Path(self.first["log"])
        for name in at_home_here:
            shown = name.replace("\n", r"\n")
            wait_until(lambda: f"object {shown} = " in log.read_text(), f"the loss of {shown} in the log")
        self.assert_clean(log.read_bytes(), "the log")

    def test_a_reduce_is_shown_with_its_names_everywhere(self):
        self.pair()
        self.out("reduce", "--id", "total", "grad-1", "grad-2", "--more-follow")
        self.out("reduce", "--add", "total", "grad-3")
        for place in ((), self.at_second()):
            shown = self.out("reduce", "--status", "total", *place)
            for name in ("total", "grad-1", "grad-2", "grad-3"):
                self.assertRegex(shown, f"[0-9a-f]{{32}} {name}\\b")
            report = self.json("reduce", "--status", "total", *place)
            self.assertEqual(report["name"], "total")
            self.assertEqual({s["name"] for s in report["sources"]}, {"grad-1", "grad-2", "grad-3"})
            # Nobody typed the sources' names here: the daemons tell them.
            awaited = self.err("get", "total", "--timeout", "2s", *place)
            self.assertIn("timed out", awaited)
        for number, name in enumerate(("grad-1", "grad-2")):
            self.out("put", "-", "--id", name, "--type", "f32", stdin=floats(number))
        for place in ((), self.at_second()):
            self.assertEqual(self.run_cli("get", "total", "--timeout", "60s", *place).stdout, floats(1))

            def names_here():
                return {o["name"] for o in self.json("ls", *place)["objects"] if o["state"] == "complete"}

            wait_until(lambda: "total" in names_here(), "the target's name in the list")
            self.assertIn(" total ", self.out("ls", *place))
            self.assertIn("  total  ", self.out("top", *place))
            self.assertEqual(self.json("get", "total", "-o", self.folder / "total", *place)["name"], "total")

    def test_sources_that_do_not_fit_are_called_by_their_names_everywhere(self):
        self.pair()
        self.out("reduce", "--id", "total", "grad-1", "grad-2")
        self.out("put", "-", "--id", "grad-1", "--type", "f32", stdin=floats(1))
        self.out("put", "-", "--id", "grad-2", "--type", "f32", stdin=floats(1, 2))
        for place in ((), self.at_second()):
            error = self.err("get", "total", "--timeout", "60s", *place)
            self.assertIn("size mismatch", error)
            self.assertNotIn("type mismatch", error)
            for name in ("grad-1", "grad-2"):
                self.assertRegex(error, f"source {name} = [0-9a-f]{{32}}")
            self.assertEqual(self.json("reduce", "--status", "total", *place)["error"]["code"], "size mismatch")


class Waits(CliTest):
    def test_a_put_into_a_full_store_says_at_once_who_has_the_room(self):
        self.start()
        big = self.folder / "big"
        for kind in ("file", "pipe"):
            big.write_bytes(b"x" * (50 << 20))
            self.out("put", big, "--id", kind + "\x1b[2J")
            big.write_bytes(b"y" * (40 << 20))
            with big.open("rb") as data:
                waiting = subprocess.Popen([BIN / "hoplite", "put", big if kind == "file" else "-", "--id", "more " + kind],
                                           stdin=data, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=self.environment)  # fmt: skip
            self.addCleanup(waiting.stderr.close)
            self.addCleanup(waiting.kill)
            said = waiting.stderr.readline().decode()
            self.assertIsNone(waiting.poll())
            for words in ("waiting for 40 MiB of space", "14 MiB of the store's 64 MiB are free", "50 MiB are in use by 1 object",
                          kind + r"\x1b[2J with 50 MiB", "hoplite rm"):  # fmt: skip
                self.assertIn(words, said)
            self.out("rm", kind + "\x1b[2J")
            self.assertEqual(waiting.wait(PATIENCE_S), 0)
            self.out("rm", "more " + kind)

    def on_terminal(self, columns, *arguments):
        """What a command writes to a terminal of this width."""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        command = subprocess.Popen([BIN / "hoplite", *map(str, arguments)], stdin=slave, stdout=slave, stderr=slave,
                                   env=self.environment, start_new_session=True)  # fmt: skip
        self.addCleanup(command.kill)
        os.close(slave)
        written = b""
        while True:
            try:
                piece = os.read(master, 65536)
            except OSError:  # it has ended
                break
            if not piece:
                break
            written += piece
        os.close(master)
        self.assertEqual(command.wait(PATIENCE_S), 0, written)
        return written

    def test_the_bar_fits_a_narrow_terminal(self):
        first = self.start("--socket", self.folder / "first.sock", "--max-rate", "16mbit")
        second = self.start("--socket", self.folder / "second.sock", "--join", first["address"])
        self.out("put", "-", "--id", "slow", "--socket", first["socket"], stdin=b"x" * (6 << 20))  # at least 2.5 s
        for columns in (40, 24):
            written = self.on_terminal(columns, "get", "slow", "-o", self.folder / "copy", "--socket", second["socket"])
            drawn = [line for line in re.split(rb"\r\x1b\[2K", written) if line]
            self.assertTrue(any(b"%" in line for line in drawn), written)
            for line in drawn:
                self.assertLess(len(line.decode()), columns, line)
                self.assertNotIn(b"\n", line)
            second_socket = ("--socket", second["socket"])
            if columns == 40:  # and once more from the beginning, at a width where hardly anything fits
                self.out("stop", *second_socket)
                second = self.start("--socket", self.folder / "second.sock", "--join", first["address"])

    def test_top_on_a_terminal_shows_names_and_does_not_obey_them(self):
        self.start()
        self.out("put", "-", "--id", "evil\x1b]0;owned\x07 \x1b[31m" + "\u91cd" * 60, stdin=b"x")
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
        top = subprocess.Popen([BIN / "hoplite", "top"], stdin=slave, stdout=slave, stderr=slave, env=self.environment,
                               start_new_session=True)  # fmt: skip
        self.addCleanup(top.kill)
        os.close(slave)
        written = b""
        while b"\x1b[J" not in written or b"NODES" not in written:
            written += os.read(master, 65536)
        os.write(master, b"q")
        self.assertEqual(top.wait(PATIENCE_S), 0)
        os.close(master)
        self.assertIn(rb"evil\x1b]0;", written)
        self.assertNotIn(b"\x1b]0;", written)
        self.assertNotIn(b"\x1b[31m", written)


class Found(CliTest):
    def test_a_lost_runtime_folder_does_not_hide_the_daemon(self):
        daemon = self.start()
        self.environment.pop("XDG_RUNTIME_DIR")
        found = subprocess.run([BIN / "hoplite", "status", "--json"], env=self.environment, capture_output=True, timeout=PATIENCE_S)
        # Other daemons of ours may run on this machine: then they are all named.
        if found.returncode == 0:
            self.assertIn(json.loads(found.stdout)["pid"], {daemon["pid"], self.default_daemon_pid()})
        else:
            self.assertIn(daemon["socket"], found.stderr.decode())
            self.assertIn("--socket", found.stderr.decode())

    def default_daemon_pid(self):
        """Of a daemon that somebody has started at the default place, which is preferred; or None."""
        socket = f"/tmp/hoplite-{os.getuid()}/hoplite.sock"
        found = subprocess.run([BIN / "hoplite", "status", "--json", "--socket", socket], env=self.environment, capture_output=True)
        return json.loads(found.stdout)["pid"] if found.returncode == 0 else None

    def test_another_runtime_folder_is_another_place(self):
        daemon = self.start()
        other = self.folder / "other"
        other.mkdir()
        error = self.run_cli("status", code=1, XDG_RUNTIME_DIR=str(other)) if self.default_daemon_pid() is None else None
        if error is not None:
            self.assertIn(f"no daemon at {other}/hoplite.sock", error.stderr.decode())
        self.assertEqual(self.json("status")["pid"], daemon["pid"])

    def test_a_second_start_leaves_the_log_of_the_first_alone(self):
        daemon = self.start()
        log = pathlib.Path(daemon["log"])
        before = log.read_bytes()
        self.assertIn(f"already runs at {daemon['socket']} (pid {daemon['pid']})", self.err("start", "--listen", "127.0.0.1:0"))
        self.err("start", "--listen", "127.0.0.1:0", "--log-file", log)
        # Also a daemon that nobody has checked for.
        second = subprocess.run([BIN / "hoplited", "--listen", "127.0.0.1:0", "--socket", daemon["socket"], "--log-file", log],
                                env=self.environment, capture_output=True, timeout=PATIENCE_S)  # fmt: skip
        self.assertEqual(second.returncode, 1)
        self.assertIn(b"already runs", second.stderr)
        self.assertEqual(log.read_bytes(), before)

    def test_debug_tells_of_peers_transfers_and_reduces(self):
        first = self.start("--socket", self.folder / "first.sock", "--log-level", "debug")
        second = self.start("--socket", self.folder / "second.sock", "--join", first["address"], "--log-level", "debug")
        quiet = self.start("--socket", self.folder / "quiet.sock", "--join", first["address"])
        for node in (first, second):
            wait_until(lambda: self.json("status", "--socket", node["socket"])["members"] == 3, "all to know of each other")
        self.out("put", "-", "--id", "weights", "--type", "f32", "--socket", first["socket"], stdin=bytes(8 << 20))
        for node in (second, quiet):
            self.run_cli("get", "weights", "--socket", node["socket"])
        # An id that it has minted itself has its home there, so it coordinates.
        target = self.out("reduce", "weights", "--wait", "--socket", second["socket"])
        told = {name: lambda node=node: pathlib.Path(node["log"]).read_text() for name, node in
                (("first", first), ("second", second), ("quiet", quiet))}  # fmt: skip
        for pattern in ("debug peer [0-9a-f]{16}#0: connected", "debug transfer [0-9]+: asks node [0-9a-f]{16} for object weights = ",
                        r"debug transfer [0-9]+: object weights = [0-9a-f]{32} from node [0-9a-f]{16}: 8 MiB in .*bit/s; complete",
                        f"debug reduce {target}: started", f"debug reduce {target}: done, 8 MiB"):  # fmt: skip
            wait_until(lambda: re.search(pattern, told["second"]()), pattern)
        wait_until(lambda: re.search("debug sends object weights = ", told["first"]()), "the sender's word")
        self.assertNotIn("debug", told["quiet"]())


if __name__ == "__main__":
    unittest.main(verbosity=2)
