"""Tests of lab.py on real namespaces; they need root and take a few seconds."""

import contextlib
import os
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

import lab as labs
from lab import Lab, LabError

BENCH = Path(__file__).parent

# A refused connection proves that frames travel both ways; needs no server.
PROBE = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], 9), timeout=0.3)
except ConnectionRefusedError:
    print("reached")
except OSError:
    print("silence")
"""

# Makes a lab with a sleeper on host 1, says its name and the sleeper's id, waits.
HOLDER = """
import signal, time
from lab import Lab
signal.signal(signal.SIGINT, signal.default_int_handler)  # even if started with `&`
with Lab(hosts=2) as lab:
    sleeper = lab.popen(1, ["sleep", "1000"])
    print(lab.name, sleeper.pid, flush=True)
    time.sleep(1000)
"""


def reaches(lab: Lab, a: int, b: int) -> bool:
    return lab.output(a, [sys.executable, "-c", PROBE, lab.address(b)]) == "reached\n"


LISTENER = """
import socket, time
listener = socket.create_server(("", 7), backlog=16)
print("listening", flush=True)
time.sleep(1000)
"""

DIALLER = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], 7), timeout=5)
    print("connected")
except ConnectionRefusedError:
    print("refused")
"""

# Sends one datagram; the other side counts them by itself.
SENDER = "import socket, sys; socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', (sys.argv[1], 9))"
ARRIVED = "print(open('/proc/net/snmp').read().split('Udp:')[2].split()[1])"  # NoPorts


@contextlib.contextmanager
def listening(lab: Lab, host: int):
    child = lab.popen(host, [sys.executable, "-c", LISTENER], stdout=subprocess.PIPE)
    assert child.stdout.readline() == "listening\n"
    yield
    child.kill()
    child.wait()
    child.stdout.close()


def dial(lab: Lab, a: int, b: int) -> str:
    return lab.output(a, [sys.executable, "-c", DIALLER, lab.address(b)])


def arrived(lab: Lab, a: int, b: int) -> int:
    """How many of one datagram from a arrive at b."""
    before = int(lab.output(b, [sys.executable, "-c", ARRIVED]))
    lab.output(a, [sys.executable, "-c", SENDER, lab.address(b)])
    eventually(lambda: int(lab.output(b, [sys.executable, "-c", ARRIVED])) > before, timeout_s=1)
    return int(lab.output(b, [sys.executable, "-c", ARRIVED])) - before


def namespaces_of(name: str) -> list[str]:
    return [path.name for path in labs.NETNS_DIR.glob(f"hop-{name}-*")]


def is_running(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def eventually(condition, timeout_s: float = 5) -> bool:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@unittest.skipUnless(os.geteuid() == 0, "namespaces need root")
class Weather(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lab = Lab(hosts=4, rate="100mbit")
        cls.enterClassContext(cls.lab)

    def tearDown(self):
        self.lab.heal()

    def test_hosts_reach_each_other(self):
        self.assertTrue(reaches(self.lab, 1, 4))

    def test_a_cut_has_a_direction(self):
        self.lab.cut((1, 2), (3, 4), (4, 3))
        for a, b, reached in ((1, 2, False), (2, 1, False), (3, 4, False), (1, 3, True), (2, 4, True)):
            self.assertEqual(reaches(self.lab, a, b), reached, "an answer has to come back, too")
        self.assertEqual(arrived(self.lab, 2, 1), 1)
        self.assertEqual(arrived(self.lab, 1, 2), 0)
        self.lab.cut()
        self.assertTrue(reaches(self.lab, 1, 2))

    def test_resets_are_refusals_between_two(self):
        with listening(self.lab, 2), listening(self.lab, 3):
            self.assertEqual(dial(self.lab, 1, 2), "connected\n")
            self.lab.reset((1, 2))
            self.assertEqual(dial(self.lab, 1, 2), "refused\n")
            self.assertEqual(dial(self.lab, 3, 2), "connected\n")
            self.lab.reset((2, 3))
            self.assertEqual((dial(self.lab, 1, 2), dial(self.lab, 3, 2)), ("connected\n", "refused\n"))
            self.lab.heal()
            self.assertEqual(dial(self.lab, 3, 2), "connected\n")

    def test_partition_and_heal(self):
        self.lab.partition([1, 2], [3])
        self.assertTrue(reaches(self.lab, 1, 2))
        self.assertFalse(reaches(self.lab, 1, 3))
        self.assertFalse(reaches(self.lab, 3, 2))
        self.assertTrue(reaches(self.lab, 3, 4), "4 is in no group")
        self.lab.partition([4])
        self.assertFalse(reaches(self.lab, 3, 4))
        self.assertTrue(reaches(self.lab, 1, 3), "replaces the partition before")
        self.lab.heal()
        self.assertTrue(reaches(self.lab, 3, 4))

    def test_link_down_and_up(self):
        self.lab.link_down(2)
        self.assertFalse(reaches(self.lab, 1, 2))
        self.lab.link_up(2)
        self.assertTrue(eventually(lambda: reaches(self.lab, 1, 2)))

    def test_loss(self):
        self.lab.set_loss(2, 100)
        self.assertFalse(reaches(self.lab, 1, 2))
        self.assertTrue(reaches(self.lab, 1, 3))
        self.lab.set_loss(2, 0)
        self.assertTrue(reaches(self.lab, 1, 2))

    def test_rate_is_set_at_both_ends(self):
        def rates() -> list[str]:
            at_host = self.lab.output(1, ["tc", "qdisc", "show", "dev", "eth0"])
            switch = self.lab.namespace(1).replace("-h1", "-sw")
            command = ["tc", "-n", switch, "qdisc", "show", "dev", "p1"]
            return [at_host, subprocess.check_output(command, text=True)]

        for rate, words in (("30mbit", "rate 30Mbit"), ("none", "noqueue")):
            self.lab.set_rate(1, rate)
            for shown in rates():
                self.assertIn(words, shown)

    def test_nonsense_is_refused(self):
        for action in (
            lambda: self.lab.set_rate(1, "fast"),
            lambda: self.lab.set_rate(5, "1mbit"),
            lambda: self.lab.set_loss(1, 101),
            lambda: self.lab.partition([1, 2], [2]),
            lambda: self.lab.popen(0, ["true"]),
            lambda: self.lab.output(1, ["false"]),
            lambda: Lab(hosts=201),
            lambda: Lab(hosts=2, name="a/b"),
        ):
            self.assertRaises(LabError, action)


@unittest.skipUnless(os.geteuid() == 0, "namespaces need root")
class Endings(unittest.TestCase):
    def hold(self) -> tuple[subprocess.Popen, str, int]:
        """A process that has a lab: the process, the lab's name, its sleeper."""
        holder = subprocess.Popen(
            [sys.executable, "-c", HOLDER],
            cwd=BENCH,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # the traceback of KeyboardInterrupt
            text=True,
        )
        self.addCleanup(holder.stdout.close)
        self.addCleanup(holder.wait)
        self.addCleanup(holder.kill)
        name, sleeper = holder.stdout.readline().split()
        return holder, name, int(sleeper)

    def test_signals_clean_up(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(signal=number.name):
                holder, name, sleeper = self.hold()
                self.assertEqual(len(namespaces_of(name)), 3)
                holder.send_signal(number)
                self.assertNotEqual(holder.wait(timeout=10), 0)
                self.assertEqual(namespaces_of(name), [])
                self.assertFalse(is_running(sleeper))

    def test_a_killed_owner_leaves_no_process_and_the_next_lab_clears_the_rest(self):
        holder, name, sleeper = self.hold()
        holder.kill()
        holder.wait()
        self.assertTrue(eventually(lambda: not is_running(sleeper)))
        self.assertNotEqual(namespaces_of(name), [])
        with Lab(hosts=1):
            self.assertEqual(namespaces_of(name), [])

    def test_processes_that_left_their_parent_end_too(self):
        with Lab(hosts=1) as lab:
            script = "trap '' TERM; setsid sleep 1000 >/dev/null 2>&1 & echo $!"
            orphan = int(lab.output(1, ["sh", "-c", script]))
            self.assertTrue(is_running(orphan))
        self.assertFalse(is_running(orphan))

    def test_two_labs_coexist(self):
        with Lab(hosts=2) as one, Lab(hosts=2) as two:
            one.partition([1])
            self.assertTrue(reaches(two, 1, 2))
        self.assertEqual(namespaces_of(one.name) + namespaces_of(two.name), [])


if __name__ == "__main__":
    unittest.main()
