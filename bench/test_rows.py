"""Tests of what the rows calculate. Run: python3 -m unittest discover -s bench"""

import unittest
from pathlib import Path
from unittest import mock

import rows
import stats
from lab import LabError
from peers import gloo, mpi
from rows import MIB, Run, Setting, allreduce, collective, reduce


def chain(*nodes: str) -> list[dict]:
    """Slots of a chain, the root first, as `reduce_status` answers."""
    slots = [{"node": node, "slice": 0, "parent": i - 1} for i, node in enumerate(nodes)]
    del slots[0]["parent"]
    return slots


class Victims(unittest.TestCase):
    def test_the_middle_of_a_chain(self):
        self.assertEqual(reduce.middle_of_tree(chain(*"abcde"), but_not="a"), "c")

    def test_the_order_of_slots_does_not_matter(self):
        slots = [
            {"node": "c", "slice": 0, "parent": 2},
            {"node": "e", "slice": 0, "parent": 4},
            {"node": "b", "slice": 0, "parent": 3},
            {"node": "a", "slice": 0},
            {"node": "d", "slice": 0, "parent": 0},
        ]
        self.assertEqual(reduce.middle_of_tree(slots, but_not="a"), "c")

    def test_never_the_one_that_gets_the_result(self):
        self.assertEqual(reduce.middle_of_tree(chain("a", "here", "b"), but_not="here"), "b")

    def test_a_star_has_only_leaves(self):
        slots = [{"node": "here", "slice": 0}, *({"node": node, "slice": 0, "parent": 0} for node in "abc")]
        self.assertIn(reduce.middle_of_tree(slots, but_not="here"), "abc")

    def test_a_reduce_without_others_is_an_error(self):
        for slots in ([], chain("here")):
            with self.assertRaises(LabError):
                reduce.middle_of_tree(slots, but_not="here")


class Runs(unittest.TestCase):
    def run_of(self, size: int) -> Run:
        return Run(rows.all_rows()["relay-killed"], Setting(8, "500mbit", size, reps=3))

    def test_small_objects_warm_up_most_pairs_of_hosts(self):
        for size, times in {MIB: 16, 32 * MIB: 2}.items():
            once = mock.Mock()
            self.run_of(size).warm_up(once)
            self.assertEqual(once.call_count, times, size)

    def test_a_death_comes_half_way_through_what_was_undisturbed_so_far(self):
        calm, halves = iter([2.0, 4.0, 3.0]), []

        def killing(half_s: float) -> tuple[float, str]:
            halves.append(half_s)
            return 6.0, "killed"

        with mock.patch.object(Run, "say"):
            figure = self.run_of(32 * MIB).with_deaths(lambda: next(calm), killing, "a relay")
        self.assertEqual(halves, [1.0, 1.5, 1.5])
        self.assertEqual((figure.value.median, figure.unit), (2.0, rows.UNDISTURBED))
        self.assertEqual(figure.samples, {"undisturbed": [2.0, 4.0, 3.0], "a relay killed": [6.0, 6.0, 6.0]})


class References(unittest.TestCase):
    SAMPLES = {"Hoplite": [1.0, 2.0, 9.0], "Open MPI tuned": [4.0, 4.0, 5.0], "Gloo": [3.0, 8.0, 8.0]}

    def test_each_unit_has_its_own(self):
        for unit, seconds in {"x limit": 0.5, "x the best": 4.0, "x Open MPI tuned": 4.0, "x Gloo": 8.0}.items():
            self.assertEqual(collective.reference(unit, self.SAMPLES, 0.5, "reduce"), seconds, unit)

    def test_tiny_objects_are_allowed_the_time_to_wake_daemons(self):
        for operation, seconds in {"bcast": 6.0005, "reduce": 6.0005, "allreduce": 6.001}.items():
            self.assertAlmostEqual(collective.reference("x allowed", self.SAMPLES, None, operation), seconds, 6, operation)

    def test_an_unshaped_link_has_no_limit(self):
        row = rows.all_rows()["reduce"]
        run = Run(row, Setting(8, "none", MIB))
        (figure,) = collective.figures(run, "reduce", self.SAMPLES, None, ["Gloo: not installed"])
        self.assertEqual((figure.unit, figure.goal), ("x the best", None))
        self.assertAlmostEqual(figure.value.median, 0.5)
        self.assertIn("Gloo: not installed", figure.note)

    def test_the_bound_of_an_allreduce(self):
        setting = Setting(8, "500mbit", 32 * MIB)
        self.assertAlmostEqual(allreduce.bound(setting), 0.982, places=3)
        self.assertIsNone(allreduce.bound(Setting(8, "none", MIB)))


class Peers(unittest.TestCase):
    def test_candidates_are_forced(self):
        for operation in ("bcast", "reduce", "allreduce"):
            candidates = mpi.candidates(operation, 32 * MIB)
            self.assertGreaterEqual(len(candidates), len(mpi.SEGMENTS))
            candidates |= mpi.candidates(operation, 1024)
            for words, settings in candidates.items():
                self.assertEqual(settings["coll_tuned_use_dynamic_rules"], 1, words)
                self.assertIn(f"coll_tuned_{operation}_algorithm", settings, words)

    def test_the_fastest_is_chosen(self):
        def run(*_args, settings: dict, **_options) -> list[float]:
            return [1.0 if settings["coll_tuned_reduce_algorithm_segmentsize"] == 64 * 1024 else 2.0]

        self.assertNotIn("segments of 64 KiB", mpi.candidates("reduce", 64 * 1024), "that would be one")

        with mock.patch.object(mpi, "run", run):
            words, settings = mpi.best(None, Path(), "reduce", MIB)
        self.assertEqual(words, "segments of 64 KiB")
        self.assertEqual(settings, mpi.pipeline("reduce", 64 * 1024))

    def wanted(self, row: str, *, with_peers: bool, gloo_is: str = "") -> collective.Peers:
        row = rows.all_rows()[row]
        run = Run(row, Setting(8, "500mbit", row.setting.size, with_peers=with_peers))
        stack = mock.Mock()
        with (
            mock.patch.object(mpi, "best", lambda *_args, **_options: ("fast", {})),
            mock.patch.object(gloo, "installed", lambda: gloo_is),
            mock.patch.object(Run, "say"),
        ):
            return collective.peers_of(run, None, "reduce", stack)

    def test_only_peers_that_a_goal_needs(self):
        self.assertEqual(list(self.wanted("reduce", with_peers=False).turns), [])
        self.assertEqual(list(self.wanted("reduce-1mib", with_peers=False).turns), ["Open MPI tuned"])
        for row in ("reduce-1kib", "reduce-256kib", "allreduce-1mib"):
            found = self.wanted(row, with_peers=False, gloo_is=gloo.TORCH)
            self.assertEqual(list(found.turns), ["Open MPI", "Open MPI tuned", "Gloo"], row)

    def test_a_missing_gloo_is_said(self):
        self.assertIn("Gloo: not installed", self.wanted("reduce", with_peers=True).words)


class Table(unittest.TestCase):
    def test_every_row_can_be_told_from_the_others(self):
        names = list(rows.all_rows())
        self.assertEqual(len(names), len(set(names)))
        for row in rows.all_rows().values():
            self.assertTrue(row.goals, row.name)
            stats.parse_rate(row.setting.rate)


if __name__ == "__main__":
    unittest.main()
