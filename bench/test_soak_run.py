"""The soak's program: what it refuses, and that it leaves nothing behind. Needs root and the programs in HOPLITE_BENCH_BIN."""

import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import lab as labs
import processes

RUN = Path(__file__).parent / "soak" / "run"
BIN = os.environ.get("HOPLITE_BENCH_BIN")


class Words(unittest.TestCase):
    def test_nonsense_is_refused(self):
        for arguments in (["--hosts", "3"], ["--minutes", "long"], ["--seed", "x"]):
            done = subprocess.run([sys.executable, RUN, *arguments], capture_output=True)
            self.assertEqual(done.returncode, 2, arguments)


@unittest.skipUnless(os.geteuid() == 0, "namespaces need root")
@unittest.skipUnless(BIN, "HOPLITE_BENCH_BIN names no programs")
class Endings(unittest.TestCase):
    def test_ctrl_c_in_the_middle_says_what_was_found_and_leaves_nothing_behind(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        command = [sys.executable, RUN, "--minutes", "5", "--seed", "3", "--hosts", "4", "--bin", BIN, "--out", folder.name]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.kill)
        for line in child.stdout:  # its own limits end it if this never comes
            if "host" in line and "SEED" not in line:
                break  # the first fault
        inside = {path.stat().st_ino for path in labs.NETNS_DIR.glob(f"hop-p{child.pid}x*")}
        self.assertEqual(len(inside), 5, "four hosts and a switch")
        running = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if namespace(pid) in inside]
        started = {pid: processes.start_time(pid) for pid in running}
        self.assertGreaterEqual(len(started), 4)
        child.send_signal(signal.SIGINT)
        rest = child.stdout.read()
        self.assertEqual(child.wait(timeout=120), 130, rest)
        self.assertIn("soak: interrupted", rest)
        self.assertEqual(list(labs.NETNS_DIR.glob(f"hop-p{child.pid}x*")), [])
        self.assertEqual([pid for pid, start in started.items() if processes.start_time(pid) == start], [])
        self.assertTrue(list(Path(folder.name).glob("*/plot.svg")))


def namespace(pid: int) -> int:
    try:
        return os.stat(f"/proc/{pid}/ns/net").st_ino
    except OSError:
        return 0


if __name__ == "__main__":
    unittest.main()
