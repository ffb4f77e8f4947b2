"""The command line against a real daemon. Run by ctest; HOPLITE_BIN is the folder of the programs."""

import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

BIN = pathlib.Path(os.environ["HOPLITE_BIN"])
PATIENCE_S = 60  # for what takes milliseconds on an idle machine


def wait_until(condition, what):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited in vain: {what}")
        time.sleep(0.02)


def alive(pid):
    """Whether the process still runs; a zombie does not."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class CliTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hoplite-cli-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": folder.name, "TMPDIR": folder.name}
        for name in ("HOPLITE_SOCKET", "HOPLITE_TOKEN"):
            self.environment.pop(name, None)

    def run_cli(self, *arguments, code=0, stdin=b"", warns=False, **environment):
        result = subprocess.run([BIN / "hoplite", *map(str, arguments)], input=stdin, capture_output=True, timeout=PATIENCE_S,
                                env={**self.environment, **environment})
        self.assertEqual(result.returncode, code, (arguments, result.stdout[-2000:], result.stderr))
        if code == 0 and not warns:
            self.assertEqual(result.stderr, b"", arguments)
        return result

    def out(self, *arguments, **options):
        return self.run_cli(*arguments, **options).stdout.decode().strip()

    def err(self, *arguments, code=1, **options):
        text = self.run_cli(*arguments, code=code, **options).stderr.decode()
        self.assertEqual(text.count("\n"), 1, text)  # one clear sentence
        return text

    def json(self, *arguments, **options):
        return json.loads(self.out(*arguments, "--json", **options))

    def start(self, *arguments):
        facts = self.json("start", "--listen", "127.0.0.1:0", "--memory", "64MiB", *arguments)
        self.addCleanup(self.end, facts["pid"])
        return facts

    def end(self, pid):
        if alive(pid):
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda: not alive(pid), "the end of a killed daemon")


class TiedDaemon(CliTest):
    """--until-eof: a daemon that ends with who holds its standard input."""

    def run_daemon(self, stdin):
        command = [BIN / "hoplited", "--until-eof", "--listen", "127.0.0.1:0", "--memory", "64MiB", "--socket",
                   self.folder / "tied.sock"]
        daemon = subprocess.Popen(command, stdin=stdin, stderr=subprocess.PIPE, env=self.environment)
        self.addCleanup(daemon.communicate)
        self.addCleanup(daemon.kill)
        return daemon

    def test_it_ends_with_its_input(self):
        read, write = os.pipe()
        daemon = self.run_daemon(read)
        os.close(read)
        wait_until((self.folder / "tied.sock").exists, "the daemon listens")
        os.write(write, b"what is said does not matter")
        self.assertEqual(self.json("status", "--socket", self.folder / "tied.sock")["pid"], daemon.pid)
        os.close(write)
        self.assertEqual(daemon.wait(PATIENCE_S), 0)

    def test_an_input_without_end_is_refused(self):
        daemon = self.run_daemon(subprocess.DEVNULL)
        self.assertEqual(daemon.wait(PATIENCE_S), 1)
        self.assertIn(b"--until-eof", daemon.stderr.read())


class WithDaemon(CliTest):
    def setUp(self):
        super().setUp()
        self.daemon = self.start()

    def test_put_and_get(self):
        text = b"some bytes\0and more"
        id = self.out("put", "-", stdin=text)
        self.assertRegex(id, "^[0-9a-f]{32}$")
        self.assertEqual(self.run_cli("get", id).stdout, text)
        target = self.folder / "copy"
        self.assertEqual(self.out("get", id, "-o", target), "")
        self.assertEqual(target.read_bytes(), text)
        self.assertEqual(self.json("get", id, "-o", target)["size"], len(text))
        self.run_cli("get", id, "-o", "/dev/null")

    def test_files_of_all_sizes(self):
        for size in (0, 1, 65536, 65537, 9_000_000):
            source, target = self.folder / "source", self.folder / "target"
            source.write_bytes(os.urandom(size))
            id = self.json("put", source)["id"]
            self.run_cli("get", id, "-o", target)
            self.assertEqual(source.read_bytes(), target.read_bytes(), size)

    def test_names(self):
        self.run_cli("put", "-", "--id", "the weights", stdin=b"x")
        self.assertEqual(self.run_cli("get", "the weights").stdout, b"x")
        self.assertIn("the weights", self.out("ls"))
        listed = self.json("ls")["objects"]
        self.assertEqual([(o["name"], o["size"], o["state"]) for o in listed], [("the weights", 1, "complete")])
        self.assertIn("the weights = " + listed[0]["id"], self.err("put", "-", "--id", "the weights", stdin=b"y"))

    def test_wait_and_rm(self):
        self.run_cli("put", "-", "--id", "one", stdin=b"x")
        self.assertEqual(self.out("wait", "one", "two", "--count", "1"), "one")
        self.assertIn(b"-1 not in range", self.run_cli("wait", "one", "--count", "-1", code=2).stderr)
        self.assertIn("two", self.err("wait", "one", "two", "--timeout", "100ms"))
        self.assertEqual(self.out("rm", "one"), "removed one")
        self.assertIn("there is no object nothing", self.err("rm", "nothing"))
        self.assertIn("deleted", self.err("get", "one", "--timeout", "5s"))
        self.assertIn("timed out", self.err("get", "never", "--timeout", "100ms"))

    def test_a_failure_takes_the_place_of_an_object(self):
        self.assertEqual(self.out("fail", "weights", "the trainer crashed"), "weights")
        self.assertIn("the trainer crashed", self.err("get", "weights"))
        self.assertIn("failed", self.out("ls"))
        self.assertEqual([(o["failure"], o["metadata"]) for o in self.json("ls")["objects"]], [(True, "the trainer crashed")])
        self.assertIn("exists", self.err("put", "-", "--id", "weights", stdin=b"late"))
        self.assertIn("exists", self.err("fail", "weights", "once more"))
        self.assertEqual(self.out("rm", "weights"), "removed weights")

    def test_a_failed_get_leaves_no_file(self):
        target = self.folder / "target"
        target.write_bytes(b"before")
        self.err("get", "never", "--timeout", "100ms", "-o", target)
        self.assertEqual(target.read_bytes(), b"before")
        self.assertEqual(list(self.folder.glob("*.part*")), [])
        self.err("get", "never", "-o", self.folder / "no such folder" / "x")

    def test_a_file_that_is_replaced_stays_where_and_as_private_as_it_was(self):
        self.run_cli("put", "-", "--id", "secret", stdin=b"new")
        target = self.folder / "target"
        target.write_bytes(b"before")
        target.chmod(0o600)
        link = self.folder / "link"
        link.symlink_to(target)
        self.run_cli("get", "secret", "-o", link)
        self.assertTrue(link.is_symlink())
        self.assertEqual(target.read_bytes(), b"new")
        self.assertEqual(target.stat().st_mode & 0o777, 0o600)

    def test_an_interrupted_get_leaves_no_file(self):
        target = self.folder / "result"
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            getter = subprocess.Popen([BIN / "hoplite", "get", "never", "-o", target], env=self.environment,
                                      stderr=subprocess.PIPE)  # fmt: skip
            wait_until(lambda: list(self.folder.glob("result*")), "the file that is being written")
            getter.send_signal(number)
            _, error = getter.communicate(timeout=PATIENCE_S)
            self.assertEqual(getter.returncode, 1)
            self.assertIn(b"interrupted", error)
            self.assertEqual(list(self.folder.glob("result*")), [])

    def test_endless_input_is_refused(self):
        self.assertIn("larger than the store of 64 MiB", self.err("put", "/dev/zero", "--timeout", "2s"))

    def test_missing_standard_streams(self):
        self.out("put", "-", "--id", "there", stdin=b"bytes")
        for command in ("get there", "status"):
            closed = subprocess.run(["bash", "-c", f'"$0" {command} >&-', BIN / "hoplite"], env=self.environment,
                                    capture_output=True, timeout=PATIENCE_S)  # fmt: skip
            self.assertEqual(closed.returncode, 1, command)
            self.assertIn(b"cannot write to standard output", closed.stderr)
        closed = subprocess.run(["bash", "-c", '"$0" put - <&-', BIN / "hoplite"], env=self.environment,
                                capture_output=True, timeout=PATIENCE_S)  # fmt: skip
        self.assertIn(b"cannot read -", closed.stderr)

    def test_ids_that_name_nothing(self):
        for arguments in (("put", "/dev/null", "--id", ""), ("put", "/dev/null", "--id", "0" * 32), ("get", ""),
                          ("rm", "0" * 32), ("wait", "")):  # fmt: skip
            self.run_cli(*arguments, code=2)

    def test_the_same_id_twice(self):
        self.out("put", "-", "--id", "once", stdin=b"x")
        self.assertEqual(self.out("wait", "once", "once", "--timeout", "5s").splitlines(), ["once", "once"])
        self.err("wait", "once", "once", "--count", "2", code=2)

    def test_another_users_folder_is_not_used(self):
        if os.geteuid() != 0:
            self.skipTest("needs root, to make a folder of another user")
        folder = self.folder / "theirs"
        folder.mkdir(mode=0o777)
        victim = self.folder / "victim"
        victim.write_text("")
        os.symlink(victim, folder / "hoplite.sock.log")
        os.chown(folder, 65534, 65534)
        error = self.err("start", "--listen", "127.0.0.1:0", "--socket", folder / "hoplite.sock")
        self.assertIn("belongs to another user", error)
        self.assertEqual(victim.read_text(), "")

    def test_facts(self):
        status = self.json("status")
        self.assertEqual(status["pid"], self.daemon["pid"])
        self.assertEqual(status["capacity_bytes"], 64 << 20)
        self.assertIn(status["node"], self.out("status"))
        (node,) = self.json("nodes")
        self.assertTrue(node["self"] and node["alive"])
        self.assertIn(node["address"], self.out("nodes"))
        self.assertIn("OBJECTS 0 complete", self.out("top"))  # not a terminal: once, as text
        self.assertEqual(self.json("top")["status"]["node"], status["node"])

    def test_a_daemon_that_is_not_let_in_says_so(self):
        started = self.run_cli("start", "--listen", "127.0.0.1:0", "--socket", self.folder / "other.sock", "--memory", "32MiB",
                               "--join", self.daemon["address"], "--json", warns=True, HOPLITE_TOKEN="another one")  # fmt: skip
        self.addCleanup(self.end, json.loads(started.stdout)["pid"])
        self.assertIn(b"not joined yet: ", started.stderr)

    def test_times_that_do_not_fit_together_are_refused(self):
        error = self.err("start", "--listen", "127.0.0.1:0", "--socket", self.folder / "other.sock", "--ping-every", "2s")
        self.assertIn("must be shorter than --dead-after", error)

    def test_the_socket_can_be_chosen(self):
        socket = self.daemon["socket"]
        elsewhere = {"XDG_RUNTIME_DIR": "/nonexistent"}
        self.assertIn("hoplite start", self.err("status", **elsewhere))
        self.run_cli("status", HOPLITE_SOCKET=socket, **elsewhere)
        self.run_cli("status", "--socket", socket, **elsewhere)
        self.run_cli("--socket", socket, "status", **elsewhere)

    def test_a_second_start_is_refused(self):
        error = self.err("start", "--listen", "127.0.0.1:0")
        self.assertIn(str(self.daemon["pid"]), error)
        error = self.err("start", "--listen", self.daemon["address"], "--socket", self.folder / "other.sock")
        self.assertIn(self.daemon["address"], error)

    def test_stop(self):
        self.assertIn(str(self.daemon["pid"]), self.out("stop"))
        self.assertFalse(alive(self.daemon["pid"]))
        self.assertFalse(pathlib.Path(self.daemon["socket"]).exists())
        self.assertIn("no daemon", self.err("stop"))

    def test_stop_says_when_it_takes_too_long(self):
        os.kill(self.daemon["pid"], signal.SIGSTOP)
        try:
            self.assertIn(f"kill -9 {self.daemon['pid']}", self.err("stop", "--timeout", "100ms"))
        finally:
            os.kill(self.daemon["pid"], signal.SIGCONT)


class WithoutDaemon(CliTest):
    def test_usage_errors(self):
        for arguments in (["bogus"], [], ["get"], ["put", "-", "--timeout", "soon"], ["local", "0"], ["start", "--memory", "x"],
                          ["completion", "fish"]):
            self.run_cli(*arguments, code=2)
        for command in (["get", "x"], ["put", "-"], ["gather", "x"], ["reduce", "x"], ["allreduce", "x"]):
            error = self.run_cli(*command, "--priority", "urgent", code=2).stderr.decode()
            self.assertIn("urgent is not one of low normal high", error)
            self.assertIn("low normal high [normal]", self.out(command[0], "--help"))
        self.assertIn("bogus", self.err("bogus", code=2))
        self.assertIn("hoplite", self.out("--version"))

    def test_a_bad_config_is_refused_before_anything_starts(self):
        config = self.folder / "hoplite.toml"
        config.write_text("listen = \"127.0.0.1:0\"\nmemmory = \"64MiB\"\n")
        error = self.err("start", "--config", config)
        self.assertIn("line 2", error)
        self.assertIn("memmory", error)

    def test_a_config_is_used(self):
        config = self.folder / "hoplite.toml"
        config.write_text(f'listen = "127.0.0.1:0"\nmemory = "32MiB"\nsocket = "{self.folder}/from config.sock"\n')
        facts = self.json("start", "--config", config)
        self.addCleanup(self.end, facts["pid"])
        self.assertEqual(facts["socket"], f"{self.folder}/from config.sock")
        self.assertEqual(self.json("status", "--socket", facts["socket"])["capacity_bytes"], 32 << 20)
        self.run_cli("stop", "--socket", facts["socket"])

    def test_foreground(self):
        daemon = subprocess.Popen([BIN / "hoplite", "start", "--foreground", "--listen", "127.0.0.1:0", "--memory", "32MiB"],
                                  env=self.environment, stderr=subprocess.DEVNULL)
        self.addCleanup(daemon.wait)
        self.addCleanup(daemon.kill)
        wait_until((self.folder / "hoplite.sock").exists, "the socket of a daemon in the foreground")
        wait_until(lambda: subprocess.run([BIN / "hoplite", "status"], env=self.environment, capture_output=True).returncode == 0,
                   "a daemon in the foreground")
        self.assertEqual(self.json("status")["pid"], daemon.pid)
        self.run_cli("stop")
        self.assertEqual(daemon.wait(PATIENCE_S), 0)

    def test_completion_scripts(self):
        bash = self.out("completion", "bash")
        subprocess.run(["bash", "-n"], input=bash.encode(), check=True)
        complete = bash + '\nCOMP_WORDS=(hoplite st); COMP_CWORD=1; _hoplite; echo "${COMPREPLY[@]}"'
        done = subprocess.run(["bash", "-c", complete], capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout.split(), ["start", "stop", "status"])
        zsh = self.out("completion", "zsh")
        for word in ("start", "--max-rate", "completion"):
            self.assertIn(word, bash)
            self.assertIn(word, zsh)

    def test_completion_of_names_runs_nothing(self):
        self.start()
        trap = self.folder / "trap"
        name = f"$(touch${{IFS}}{trap})"
        self.run_cli("put", "-", "--id", name, stdin=b"x")
        self.run_cli("put", "-", "--id", "plain", stdin=b"x")
        complete = self.out("completion", "bash") + (
            '\nCOMP_WORDS=(hoplite get ""); COMP_CWORD=2; _hoplite; printf "%s\\n" "${COMPREPLY[@]}"')
        environment = self.environment | {"PATH": f"{BIN}:{os.environ['PATH']}"}
        done = subprocess.run(["bash", "-c", complete], capture_output=True, text=True, check=True, env=environment)
        self.assertIn(name, done.stdout.splitlines(), done.stderr)
        self.assertIn("plain", done.stdout.splitlines())
        self.assertFalse(trap.exists(), "a name was run as a command")

    def local(self, *arguments):
        cluster = subprocess.Popen([BIN / "hoplite", "local", *arguments, "--json"], stdout=subprocess.PIPE, text=True,
                                   env=self.environment, start_new_session=True)
        self.addCleanup(cluster.stdout.close)
        self.addCleanup(cluster.wait)
        self.addCleanup(cluster.kill)
        return cluster, json.loads(cluster.stdout.readline())

    def test_local_leaves_nothing_behind(self):
        cluster, nodes = self.local("3", "--memory", "32MiB")
        self.assertEqual(len(nodes), 3)
        self.run_cli("put", "-", "--id", "x", "--socket", nodes[0]["socket"], stdin=b"across")
        self.assertEqual(self.run_cli("get", "x", "--socket", nodes[2]["socket"]).stdout, b"across")
        self.assertEqual(self.json("status", "--socket", nodes[1]["socket"])["members"], 3)
        os.kill(nodes[1]["pid"], signal.SIGKILL)  # trying out a death is what it is for
        wait_until(lambda: not alive(nodes[1]["pid"]), "the death of a node")
        cluster.send_signal(signal.SIGINT)
        self.assertEqual(cluster.wait(PATIENCE_S), 0)
        self.assertEqual([n["pid"] for n in nodes if alive(n["pid"])], [])
        self.assertEqual(list(self.folder.glob("hoplite-local-*")), [])

    def test_local_daemons_end_with_a_parent_that_is_killed(self):
        cluster, nodes = self.local("2", "--memory", "32MiB")
        cluster.kill()
        wait_until(lambda: not any(alive(n["pid"]) for n in nodes), "the end of orphaned daemons")

    def test_demo(self):
        demo = subprocess.run([BIN / "hoplite-demo", "--nodes", "4", "--size", "6MiB", "--rate", "20mbit"], env=self.environment,
                              capture_output=True, text=True, timeout=4 * PATIENCE_S)
        self.assertEqual(demo.returncode, 0, demo.stderr)
        for words in ("The naive way", "The tree that formed", "died; everybody else has the object", "the wire's limit",
                      "after the last array", "The sum is exactly that of nodes", "Hoplite, late arrays", "Hoplite, node killed"):
            self.assertIn(words, demo.stdout)
        self.assertNotIn("\x1b", demo.stdout)  # not a terminal
        self.assertEqual(list(self.folder.glob("hoplite-local-*")), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
