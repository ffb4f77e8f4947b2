"""Tests of the soak's judge and its plots. Run: python3 -m unittest discover -s bench"""

import os
import unittest
import xml.etree.ElementTree

from soak import samples
from soak.judge import DECIDE_AFTER_S, Call, Judge
from soak.truth import Attempt, Faults, Object, Removal

LATER = 10_000.0


class World:
    """One object that was put on host 1 at 10 and is there since 11."""

    def __init__(self, minted_on: int | None = 1, **options: bool):
        self.faults = Faults()
        self.judge = Judge(self.faults, **options)
        self.thing = Object("x", minted_on, 10)
        self.put_at(10, tag=1)

    def put_at(self, at: float, tag: int, outcome: str = "ok", host: int = 1) -> Attempt:
        attempt = Attempt(tag, host, 100, at, at + 1, outcome)
        self.thing.attempts.append(attempt)
        return attempt

    def removed_at(self, at: float, outcome: str = "known") -> None:
        self.thing.removals.append(Removal(at, at + 1, outcome))

    def fault(self, kind: str, host: int, began: float, settled: float) -> None:
        self.faults.begin(kind, [host], began).settled = settled

    def call(self, at: float, ok: bool, words: str, timeout_s: float = 40, took_s: float | None = None, host: int = 2) -> Call:
        took_s = (timeout_s if words.startswith("timed_out") else 1) if took_s is None else took_s
        return Call(host, "something", at, at + took_s, timeout_s, ok, words)

    def get(self, at: float, words: str, ok: bool = True, waits: bool = False, **more: float) -> list[str]:
        self.judge.get(self.thing, self.call(at, ok, words, **more), waits_if_lost=waits)
        return self.verdict()

    def fails(self, at: float, words: str, waits: bool = False, **more: float) -> list[str]:
        return self.get(at, words, ok=False, waits=waits, **more)

    def put(self, at: float, words: str, ok: bool, host: int = 2) -> list[str]:
        attempt = Attempt(99, host, 100, at)
        self.thing.attempts.append(attempt)
        self.judge.put(self.thing, attempt, self.call(at, ok, words, host=host))
        return self.verdict()

    def verdict(self) -> list[str]:
        self.judge.decide(LATER)
        return self.judge.violations


LOST, NOT_FOUND, DELETED = "lost every copy has died", "timed_out nobody has put it yet", "deleted by somebody else"
EXISTS = "exists the id names an object"


class Reads(unittest.TestCase):
    def test_what_was_put_is_right(self):
        self.assertEqual(World().get(20, "tag 1"), [])

    def test_what_nobody_put_is_wrong(self):
        self.assertIn("nobody has put", World().get(20, "tag 2")[0])

    def test_what_was_given_up_or_refused_is_wrong(self):
        for outcome in ("abandoned", "exists", "store_full", "deleted"):
            world = World()
            world.put_at(12, 2, outcome)
            self.assertEqual(len(world.get(20, "tag 2")), 1, outcome)

    def test_a_put_without_an_answer_may_be_read(self):
        for outcome in ("timed_out", "unavailable"):
            world = World()
            world.put_at(12, 2, outcome)
            self.assertEqual(world.get(20, "tag 2"), [], outcome)

    def test_deleted_bytes_do_not_come_back(self):
        world = World()
        world.removed_at(15)
        self.assertIn("came back", world.get(20, "tag 1")[0])

    def test_a_read_beside_the_delete_may_win(self):
        world = World()
        world.removed_at(15)
        self.assertEqual(world.get(15.5, "tag 1"), [])

    def test_a_partition_excuses_reads_in_it_and_none_after_it(self):
        for settled, violations in ((30, 0), (18, 1)):
            world = World()
            world.removed_at(15)
            world.fault("partition", 2, 17, settled)
            self.assertEqual(len(world.get(20, "tag 1")), violations)

    def test_a_kill_excuses_no_old_bytes(self):
        world = World()
        world.removed_at(15)
        world.fault("kill", 3, 17, 30)
        self.assertEqual(len(world.get(20, "tag 1")), 1)

    def test_old_bytes_after_a_new_put(self):
        world = World(minted_on=None)
        world.put_at(15, 2)
        self.assertIn("old bytes", world.get(20, "tag 1")[0])
        self.assertEqual(len(world.get(20, "tag 2")), 1, "the new ones are right")

    def test_two_sums_of_one_target_are_wrong(self):
        world = World()
        world.thing.count = 1
        self.assertEqual(world.get(20, "sum 1"), [])
        self.assertEqual(world.get(21, "sum 1"), [])
        self.assertIn("other sources", world.get(22, "sum 2")[0])


class Losses(unittest.TestCase):
    def test_lost_while_its_host_lives_is_wrong(self):
        self.assertIn("is not lost", World().fails(20, LOST)[0])

    def test_lost_with_its_host_is_true(self):
        world = World()
        world.fault("kill", 1, 15, 18)
        self.assertEqual(world.fails(20, LOST), [])

    def test_another_hosts_death_is_no_reason(self):
        world = World()
        world.fault("kill", 3, 15, 18)
        self.assertEqual(len(world.fails(20, LOST)), 1)

    def test_lost_across_a_partition_until_it_has_healed(self):
        for settled, violations in ((25, 0), (18, 1)):
            world = World()
            world.fault("partition", 1, 15, settled)
            self.assertEqual(len(world.fails(20, LOST)), violations)

    def test_who_waits_for_lost_objects_is_not_told(self):
        world = World()
        world.fault("kill", 1, 15, 18)
        self.assertIn("waits for lost", world.fails(20, LOST, waits=True)[0])

    def test_what_nobody_put_cannot_be_lost(self):
        world = World()
        world.thing.attempts.clear()
        self.assertIn("nobody has put what was lost", world.fails(20, LOST)[0])

    def test_not_found_is_wrong_in_calm_only(self):
        self.assertIn("was not found", World().fails(20, NOT_FOUND)[0])
        world = World()
        world.fault("slow", 5, 40, 50)
        self.assertEqual(world.fails(20, NOT_FOUND), [])

    def test_a_slow_machine_may_miss_short_deadlines(self):
        self.assertEqual(World().fails(20, NOT_FOUND, timeout_s=2), [])

    def test_not_found_when_it_was_deleted_is_true(self):
        world = World()
        world.removed_at(15)
        self.assertEqual(world.fails(20, NOT_FOUND), [])


class Deletes(unittest.TestCase):
    def test_deleted_by_nobody_is_wrong(self):
        self.assertIn("nobody has deleted", World().fails(20, DELETED)[0])

    def test_deleted_is_true_after_a_delete(self):
        world = World()
        world.removed_at(15)
        self.assertEqual(world.fails(20, DELETED), [])

    def test_a_name_that_was_put_again_is_not_deleted(self):
        world = World(minted_on=None)
        world.removed_at(15)
        world.put_at(17, 2)
        self.assertIn("put again", world.fails(20, DELETED)[0])

    def test_an_object_that_exists_is_known_to_its_delete(self):
        for words, violations in (("known", 0), ("unknown", 1)):
            world = World()
            removal = Removal(20)
            world.thing.removals.append(removal)
            world.judge.remove(world.thing, removal, world.call(20, True, words))
            self.assertEqual(len(world.verdict()), violations, words)


class Puts(unittest.TestCase):
    def test_exists_needs_another_put(self):
        self.assertEqual(World().put(20, EXISTS, ok=False), [])
        world = World()
        world.thing.attempts[0].outcome = "store_full"
        self.assertIn("nobody else", world.put(20, EXISTS, ok=False)[0])

    def test_two_puts_cannot_both_be_accepted(self):
        self.assertIn("although tag 1 exists", World().put(20, "", ok=True)[0])

    def test_a_lost_object_can_be_put_again(self):
        world = World()
        world.fault("kill", 1, 15, 18)
        self.assertEqual(world.put(20, "", ok=True), [])

    def test_a_deleted_name_can_be_put_again_but_a_minted_id_cannot(self):
        for minted_on, violations in ((None, 0), (1, 1)):
            world = World(minted_on)
            world.removed_at(15)
            self.assertEqual(len(world.put(20, "", ok=True)), violations, minted_on)

    def test_a_deleted_name_must_be_free(self):
        for words in (DELETED, EXISTS):
            for names_again, violations in ((True, 1), (False, 0)):
                world = World(minted_on=None, names_again=names_again)
                world.removed_at(15)
                self.assertEqual(len(world.put(20, words, ok=False)), violations, words)

    def test_failures_need_reasons(self):
        for words, complaint in {
            "internal_error something went wrong": "nothing explains",
            "cancelled by nobody in the soak": "nothing explains",
            "store_full there is no room": "without numbers",
            "timed_out waiting for room": "before its time",
            "exists": "without a reason",
        }.items():
            world = World()
            call = world.call(20, False, words, took_s=1)
            world.judge.put(world.thing, world.put_at(20, 99), call)
            self.assertTrue(any(complaint in violation for violation in world.verdict()), words)

    def test_a_reduce_has_a_deadline_of_its_own(self):
        for count, violations in ((0, 1), (1, 0)):
            world = World()
            world.thing.count = count
            self.assertEqual(len(world.fails(20, NOT_FOUND, timeout_s=20, took_s=11)), violations)

    def test_unavailable_needs_a_fault_at_this_host(self):
        for host, violations in ((2, 0), (3, 1)):
            world = World()
            world.fault("kill", host, 19, 30)
            self.assertEqual(len(world.put(20, "unavailable the daemon is gone", ok=False)), violations)


class Time(unittest.TestCase):
    def test_suspicions_wait_for_what_is_noticed_later(self):
        world = World()
        world.judge.get(world.thing, world.call(20, False, LOST))
        world.judge.decide(21 + DECIDE_AFTER_S - 0.1)
        self.assertEqual(world.judge.violations, [])
        world.fault("given up", 1, 19, 25)
        self.assertEqual((world.verdict(), world.judge.excused), ([], 1))

    def test_what_hangs_is_wrong(self):
        world = World()
        world.judge.hangs(1, "get x", 20, 120)
        self.assertEqual(len(world.verdict()), 1)


class Plots(unittest.TestCase):
    def series(self) -> samples.Samples:
        found = samples.Samples(began=100)
        for second in range(10):
            found.add("memory, MiB", 1, 7 if second < 5 else 8, 100 + second, float(second))
        return found

    def test_another_process_is_another_line(self):
        self.assertEqual([len(series.points) for series in self.series().series], [5, 5])

    def test_sparkline(self):
        self.assertEqual(samples.sparkline([0, 50, None, 100]), "▁▅ █")
        self.assertEqual(samples.sparkline([]), "")
        self.assertEqual(samples.sparkline([0, 0]), "▁▁")

    def test_table_names_the_largest(self):
        self.assertIn("0.0 .. 9.0, at most 9.0", samples.table(self.series(), 10))

    def test_svg_is_xml_and_has_every_line_and_fault(self):
        text = samples.svg(self.series(), 10, [(2, 4, "kill <1>")])
        tree = xml.etree.ElementTree.fromstring(text)
        tags = [element.tag.rpartition("}")[2] for element in tree.iter()]
        self.assertEqual(tags.count("polyline"), 2)
        self.assertIn("kill <1>", "".join(tree.itertext()))

    def test_a_process_is_measured(self):
        self.assertGreater(samples.memory(os.getpid()), 1)
        self.assertGreater(samples.descriptors(os.getpid()), 2)


if __name__ == "__main__":
    unittest.main()
