"""A daemon that says nothing although its connections stand; and what a failed test leaves behind."""

import contextlib
import io
import time
import unittest

from hosts import MIB, Footprint, hosts, require_namespaces

NOTICED_S = 5  # about one second on an idle machine
SILENT = 4
SIZE = 1 * MIB

setUpModule = require_namespaces


class Silence(unittest.TestCase):
    def test_a_stopped_daemon_is_noticed_and_comes_back(self):
        with hosts(4) as net:
            others = [host for host in net.hosts if host != SILENT]
            before = net.wait_for_agreement()
            only_there = net.put(SILENT, SIZE)
            copied = net.put(SILENT, SIZE)
            self.assertEqual(net.get(1, copied.id).sha256(), copied.sha256)
            for host in others:  # each depends on it, and is connected to it
                greeting = net.put(SILENT, SIZE)
                self.assertEqual(net.get(host, greeting.id).sha256(), greeting.sha256)

            net.pause(SILENT)
            silent_since = time.monotonic()
            net.wait_for_views(others, alive=others)
            self.assertLess(time.monotonic() - silent_since, NOTICED_S)
            self.assertEqual(net.get(3, copied.id).sha256(), copied.sha256, "host 1 has a copy")
            waiting = net.get(3, only_there.id, "--wait-if-lost")

            net.resume(SILENT)
            after = net.wait_for_agreement()
            self.assertEqual(after[SILENT].node, before[SILENT].node)
            self.assertGreater(after[SILENT].incarnation, before[SILENT].incarnation, "its next life")
            self.assertEqual(waiting.sha256(), only_there.sha256)
            for host in net.hosts:
                self.assertEqual(net.get(host, only_there.id).sha256(), only_there.sha256)


class Endings(unittest.TestCase):
    def test_a_failed_test_leaves_nothing_behind(self):
        printed = io.StringIO()
        with self.assertRaisesRegex(RuntimeError, "^on purpose$"), contextlib.redirect_stderr(printed), hosts(2) as net:
            footprint = Footprint(net)
            self.assertEqual(len(footprint.left()), 3 + 2 + 1, "two hosts and a switch, two daemons, a folder")
            # The worst moment: a daemon is stopped, and a get will not end for a minute.
            net.get(1, "what nobody puts")
            net.pause(2)
            raise RuntimeError("on purpose")
        self.assertEqual(footprint.left(), [])
        self.assertIn("the daemons' complaints", printed.getvalue())


if __name__ == "__main__":
    unittest.main()
