"""Runs small versions of the rows that need no installed peers: they must end, clean up and check bytes.

Needs root and the programs of the build whose folder HOPLITE_BENCH_BIN names. Figures are not judged: that is for `make bench`.
"""

import json
import os
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import lab as labs

BENCH = Path(__file__).parent
BIN = os.environ.get("HOPLITE_BENCH_BIN")


def command(*arguments: str) -> list[str]:
    return [str(BENCH / "run"), "--bin", BIN, "--no-peers", "--reps", "1", *arguments]


@unittest.skipUnless(os.geteuid() == 0, "namespaces need root")
@unittest.skipUnless(BIN, "HOPLITE_BENCH_BIN names no programs")
class SmallRows(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.json = Path(folder.name) / "results.json"

    def run_rows(self, *arguments: str) -> list[dict]:
        done = subprocess.run(
            command(*arguments, "--json", str(self.json)), capture_output=True, text=True, timeout=240
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(self.json.read_text())["figures"]

    def test_transfers(self):
        rows = ("broadcast", "staggered")
        figures = self.run_rows(*rows, "--hosts", "4", "--rate", "100mbit", "--size", "8MiB")
        self.assertEqual([figure["row"] for figure in figures], list(rows))
        for figure in figures:
            # Faster than the wire would mean that the clock, or the lab, is wrong.
            self.assertGreater(figure["value"]["median"], 0.9, figure["row"])
            self.assertEqual(figure["verdict"], "-", "these are not the settings of the goals")

    def test_a_death(self):
        # Slow enough that a busy machine, too, finds a relay before the transfer is over.
        (figure,) = self.run_rows("relay-killed", "--hosts", "4", "--rate", "50mbit", "--size", "32MiB")
        self.assertEqual(set(figure["samples"]), {"undisturbed", "a relay killed"})

    def test_sums(self):
        rows = ("reduce", "allreduce", "reduce-first4", "gather")
        figures = self.run_rows(*rows, "--hosts", "4", "--rate", "100mbit", "--size", "8MiB")
        self.assertEqual([figure["row"] for figure in figures], list(rows))
        for figure in figures:
            self.assertGreater(figure["value"]["median"], 0.5 if figure["row"] == "reduce-first4" else 0.9, figure["row"])

    def test_late_sources(self):
        (figure,) = self.run_rows("reduce-staggered", "--hosts", "4", "--rate", "100mbit", "--size", "8MiB")
        self.assertEqual(list(figure["samples"]), ["Hoplite"])

    def test_a_source_dies(self):
        (figure,) = self.run_rows("reduce-killed", "--hosts", "5", "--rate", "50mbit", "--size", "16MiB")
        self.assertEqual(set(figure["samples"]), {"undisturbed", "a source's node killed"})

    def test_round_trips(self):
        (figure,) = self.run_rows("pingpong-unshaped", "--size", "4KiB")
        self.assertEqual(set(figure["samples"]), {"Hoplite", "bare chain"})
        self.assertGreater(figure["samples"]["Hoplite"][0], 0)

    def test_many_objects_at_once(self):
        figures = self.run_rows("rush", "--objects", "500")
        self.assertGreater(figures[0]["value"]["median"], 0)
        self.assertEqual(figures[1]["value"]["median"], 0, "gets that failed")

    def test_puts_and_deletes_while_a_node_is_away(self):
        figures = {figure["work"].rpartition(": ")[2]: figure["value"]["median"] for figure in self.run_rows("churn", "--minutes", "0.2")}
        self.assertGreater(figures["puts, and as many deletes"], 0)
        self.assertIn("deleted objects that came back", figures)

    def test_a_simulated_turnover(self):
        figures = self.run_rows("turnover", "--hosts", "10", "--objects", "20", "--minutes", "0.2")
        self.assertGreater(figures[0]["value"]["median"], 0)

    def test_local(self):
        figures = self.run_rows("local-put", "--size", "1MiB")
        self.assertGreater(figures[0]["value"]["median"], 0)


@unittest.skipUnless(os.geteuid() == 0, "namespaces need root")
@unittest.skipUnless(BIN, "HOPLITE_BENCH_BIN names no programs")
class Endings(unittest.TestCase):
    def test_ctrl_c_leaves_nothing_behind(self):
        child = subprocess.Popen(
            command("broadcast", "--hosts", "2", "--rate", "1mbit", "--size", "64MiB"), stderr=subprocess.PIPE, text=True
        )
        self.addCleanup(child.stderr.close)
        self.addCleanup(child.kill)
        name = f"p{child.pid}x0"
        deadline = time.monotonic() + 30
        while not (labs.STATE_DIR / f"{name}.json").exists():
            self.assertLess(time.monotonic(), deadline, "no lab was made")
            time.sleep(0.02)
        child.send_signal(signal.SIGINT)
        self.assertEqual(child.wait(timeout=60), 130)
        self.assertEqual(list(labs.NETNS_DIR.glob(f"hop-{name}-*")), [])


class Words(unittest.TestCase):
    def test_help_and_list_name_every_row(self):
        for option in ("--help", "--list"):
            text = subprocess.check_output([BENCH / "run", option], text=True)
            for row in ("broadcast-1mib", "relay-killed", "reduce-killed", "allreduce-1mib", "gather", "pingpong-busy-poll", "loaded", "memory", "micro"):
                self.assertIn(row, text)

    def test_nonsense_is_refused(self):
        for arguments in (["no-such-row"], ["--size", "big"], ["--rate", "fast"], ["--hosts", "0"], ["--reps", "0"], ["--objects", "1"], ["--minutes", "0"]):
            done = subprocess.run([BENCH / "run", *arguments], capture_output=True)
            self.assertEqual(done.returncode, 2, arguments)


if __name__ == "__main__":
    unittest.main()
