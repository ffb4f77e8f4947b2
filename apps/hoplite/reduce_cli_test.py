"""hoplite reduce, allreduce, gather and typed puts against real daemons. Run by ctest; HOPLITE_BIN is the folder of the
programs."""

import array
import os
import pathlib
import signal
import subprocess
import unittest

from cli_test import BIN, CliTest, wait_until


def floats(*values):
    return array.array("f", values).tobytes()


def catches(pid, number):
    """Whether the process has a handler for the signal."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
    return int(caught.split()[1], 16) >> (number - 1) & 1


class TypedObjects(CliTest):
    def setUp(self):
        super().setUp()
        self.start()

    def test_put_says_what_the_bytes_are(self):
        self.out("put", "-", "--id", "w", "--type", "f32", "--shape", "2,3", stdin=floats(*range(6)))
        self.assertIn("f32 2x3", self.out("ls"))
        (listed,) = self.json("ls")["objects"]
        self.assertEqual((listed["name"], listed["type"], listed["shape"]), ("w", "f32", [2, 3]))

    def test_a_shape_that_does_not_fit_is_refused(self):
        error = self.err("put", "-", "--type", "f32", "--shape", "2,4", stdin=floats(*range(6)))
        self.assertIn("32 bytes, but the object has 24", error)
        self.assertIn("not a whole number", self.err("put", "-", "--type", "f64", stdin=b"abc"))
        for shape in ("", ",", "2,", "2x3", "-1", "2,,3", "a"):
            self.run_cli("put", "-", "--shape", shape, code=2)
        self.run_cli("put", "-", "--type", "f31", code=2)

    def test_gather(self):
        self.out("put", "-", "--id", "one", stdin=b"1")
        self.out("put", "-", "--id", "dir/two", stdin=b"22")
        self.assertEqual(self.out("gather", "one", "dir/two").splitlines(), ["one  1 B", "dir/two  2 B"])
        folder = self.folder / "made for it"
        files = [o["file"] for o in self.json("gather", "one", "dir/two", "-o", folder)["objects"]]
        self.assertEqual([pathlib.Path(f).read_bytes() for f in files], [b"1", b"22"])
        self.assertEqual(sorted(p.name for p in folder.iterdir()), sorted(os.path.basename(f) for f in files))
        self.assertIn("one", [p.name for p in folder.iterdir()])

    def test_a_gather_that_fails_names_the_object_and_leaves_no_half_of_a_file(self):
        self.out("put", "-", "--id", "one", stdin=b"1")
        self.out("put", "-", "--id", "gone", stdin=b"1")
        self.out("rm", "gone")
        folder = self.folder / "out"
        self.assertIn("gone = ", self.err("gather", "one", "never", "gone", "-o", folder, "--timeout", "30s"))
        self.assertLessEqual({p.name for p in folder.iterdir()}, {"one"})
        self.assertIn("never = ", self.err("gather", "one", "never", "--timeout", "100ms"))

    def test_usage_errors_of_reduce(self):
        for arguments in ([], ["--first", "0", "a"], ["--op", "xor", "a"], ["--type", "f31", "a"], ["a", "a"],
                          ["--type", "bytes", "a"], ["--op", "mean", "--type", "i32", "a"], ["--first", "2", "a"],
                          ["--on-lost", "cry", "a"], ["--status", "x", "a"], ["--status", "x", "--op", "sum"], ["--add", "x"],
                          ["--add", "x", "--first", "1", "a"], ["--status", "x", "--priority", "low"], ["--add", "x", "--status", "y"], ["--id", "a", "a"],
                          ["--timeout", "soon", "a"]):  # fmt: skip
            self.run_cli("reduce", *arguments, code=2)
        self.run_cli("allreduce", code=2)
        self.run_cli("allreduce", "--method", "luck", "a", code=2)
        self.assertIn("a = ", self.err("reduce", "a", "a", code=2))

    def test_completion(self):
        bash = self.out("completion", "bash")
        for words, expected in (("reduce --op m", "min max mean median"), ("allreduce --type bf", "bf16"),
                                ("allreduce --method s", "slices"), ("reduce --sta", "--status"),
                                ("get --priority h", "high"), ("put --prio", "--priority")):  # fmt: skip
            last = len(words.split())
            complete = bash + f'\nCOMP_WORDS=(hoplite {words}); COMP_CWORD={last}; _hoplite; echo "${{COMPREPLY[@]}}"'
            done = subprocess.run(["bash", "-c", complete], capture_output=True, text=True, check=True)
            self.assertEqual(done.stdout.split(), expected.split(), words)
        zsh = self.out("completion", "zsh")
        self.assertIn("(sum product min max mean median)", zsh)


class Reduces(CliTest):
    def setUp(self):
        super().setUp()
        self.first = self.start("--socket", self.folder / "first.sock")
        self.second = self.start("--socket", self.folder / "second.sock", "--join", self.first["address"])
        self.environment["HOPLITE_SOCKET"] = self.first["socket"]
        # Until then, names may move to the second one's hands.
        wait_until(lambda: self.json("status")["members"] == 2, "both to know of each other")

    def put(self, name, *values, node=None):
        self.out("put", "-", "--id", name, "--type", "f32", "--socket", (node or self.first)["socket"], stdin=floats(*values))

    def test_reduce(self):
        self.put("a", 1, 2, 3)
        id = self.out("reduce", "--op", "sum", "--type", "f32", "--id", "total", "a", "b")
        self.assertRegex(id, "^[0-9a-f]{32}$")
        waiting = self.out("reduce", "--status", "total")
        self.assertIn("waiting for 1 of 2 sources", waiting)
        self.assertIn("awaited", waiting)
        self.put("b", 10, 20, 30, node=self.second)
        self.assertEqual(self.run_cli("get", "total", "--timeout", "60s").stdout, floats(11, 22, 33))
        report = self.json("reduce", "--status", "total")
        self.assertEqual((report["id"], report["phase"], report["count"], report["awaited"]), (id, "done", 2, 0))
        self.assertEqual([s["state"] for s in report["sources"]], ["used", "used"])
        self.assertEqual(sorted(s["order"] for s in report["sources"]), [1, 2])

    def test_wait_and_first(self):
        self.put("a", 5)
        self.put("c", 7)
        report = self.json("reduce", "--op", "max", "--first", "2", "a", "b", "c", "--wait", "--timeout", "60s")
        self.assertEqual(report["phase"], "done")
        self.assertEqual(self.run_cli("get", report["id"]).stdout, floats(7))

    def test_gather_of_more_than_the_store_holds(self):
        size = 20 << 20
        for number, node in enumerate((self.first, self.first, self.first, self.second)):
            self.out("put", "-", "--id", f"part{number}", "--socket", node["socket"], stdin=bytes([number]) * size)
        names = [f"part{number}" for number in range(4)]
        files = self.json("gather", *names, "-o", self.folder / "parts", "--timeout", "60s",
                          "--socket", self.second["socket"])["objects"]
        for number, file in enumerate(files):
            self.assertEqual(pathlib.Path(file["file"]).read_bytes(), bytes([number]) * size)

    def test_a_reduce_whose_coordinator_dies_before_any_source_came_is_lost(self):
        coordinator = self.json("status", "--socket", self.second["socket"])["node"]
        names = (f"sum{number}" for number in range(100))
        for name in names:
            self.out("reduce", "--id", name, "never", "ever")
            if self.json("reduce", "--status", name)["coordinator"] == coordinator:
                break
        os.kill(self.second["pid"], signal.SIGKILL)
        error = self.err("get", name, "--timeout", "60s")
        self.assertIn("coordinated its reduce", error)
        self.assertIn("coordinated its reduce", self.err("reduce", "--status", name))

    def test_more_sources(self):
        self.put("a", 5)
        self.out("reduce", "--id", "total", "--first", "2", "--more-follow", "a")
        self.put("b", 6)
        self.out("reduce", "--add", "total", "b")
        self.assertEqual(self.run_cli("get", "total", "--timeout", "60s").stdout, floats(11))

    def test_failures_name_the_source(self):
        self.put("a", 5)
        self.put("b", 5, 6)
        error = self.err("reduce", "a", "b", "--wait", "--timeout", "60s")
        self.assertTrue("b = " in error or "a = " in error, error)
        self.assertIn("timed out", self.err("reduce", "a", "never", "--wait", "--timeout", "200ms"))
        self.assertIn("nothing = ", self.err("reduce", "--status", "nothing"))

    def test_an_interrupted_wait_leaves_the_reduce_alone(self):
        waiting = subprocess.Popen([BIN / "hoplite", "reduce", "--wait", "--id", "total", "a", "b"], env=self.environment,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
        self.addCleanup(waiting.kill)
        waiting.stdout.readline()  # the id: the reduce has begun
        wait_until(lambda: catches(waiting.pid, signal.SIGINT), "its signal handler")
        waiting.send_signal(signal.SIGINT)
        _, error = waiting.communicate(timeout=60)
        self.assertEqual(waiting.returncode, 1)
        self.assertIn(b"the reduce continues", error)
        self.put("a", 1)
        self.put("b", 2)
        self.assertEqual(self.run_cli("get", "total", "--timeout", "60s").stdout, floats(3))

    def test_allreduce(self):
        self.put("a", 1, 2)
        self.put("b", 3, 4, node=self.second)
        for method in ("cost", "whole", "slices"):
            id = self.out("allreduce", "--method", method, "a", "b", "--wait", "--timeout", "60s")
            for node in (self.first, self.second):
                self.assertEqual(self.run_cli("get", id, "--socket", node["socket"], "--timeout", "60s").stdout, floats(4, 6))


if __name__ == "__main__":
    unittest.main(verbosity=2)
