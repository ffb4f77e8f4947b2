"""Tests of report.py and of the rows' settings; nothing is measured."""

import unittest
from dataclasses import replace

import report
import rows
import stats
from report import Failure, Figure, at_least, at_most
from rows import MIB, Run


def figure(value: float, goal) -> Figure:
    return Figure("row", "work", stats.summarize([value]), "x limit", goal, {"Hoplite": [value]})


class Verdicts(unittest.TestCase):
    def test_goals_have_a_direction(self):
        for value, goal, verdict in (
            (1.05, at_most(1.05), "ok"),
            (1.06, at_most(1.05), "missed"),
            (0.95, at_least(0.95), "ok"),
            (0.94, at_least(0.95), "missed"),
            (9.99, None, "-"),
        ):
            self.assertEqual(figure(value, goal).verdict, verdict, f"{value} {goal}")

    def test_the_median_counts(self):
        values = stats.summarize([1.0, 1.0, 1.0, 5.0, 5.0])
        self.assertEqual(replace(figure(1, at_most(1.1)), value=values).verdict, "ok")

    def test_numbers_as_people_read_them(self):
        for value, unit, text in (
            (1.0514, "x limit", "1.051x limit"),
            (30123.4, "/s", "30,123/s"),
            (14.26, "MiB", "14.3 MiB"),
        ):
            self.assertEqual(report.format_value(value, unit), text)


class Output(unittest.TestCase):
    def test_table_has_a_line_for_each(self):
        lines = report.table([figure(1, at_most(2)), Failure("row", "work", "why\nmore")]).splitlines()
        self.assertEqual(len(lines), 4)
        self.assertIn("ok", lines[2])
        self.assertIn("failed  why", lines[3])

    def test_json_has_the_repetitions_and_the_verdict(self):
        found = report.as_json([figure(3, at_most(2)), Failure("other", "work", "why")], {"load": 0})
        one, other = found["figures"]
        self.assertEqual(one["samples"], {"Hoplite": [3]})
        self.assertEqual(one["verdict"], "missed")
        self.assertEqual(other["failed"], "why")

    def test_the_environment_is_named(self):
        self.assertLessEqual({"load", "cores", "kernel", "congestion_control", "commit"}, set(report.environment()))


class Rows(unittest.TestCase):
    def test_every_row_has_a_goal_and_a_name_of_its_own(self):
        found = rows.all_rows()
        self.assertGreater(len(found), 10)
        for name, row in found.items():
            self.assertEqual(name, row.name)
            self.assertTrue(row.goals, name)

    def test_goals_are_for_the_usual_settings_only(self):
        row = rows.all_rows()["broadcast"]
        value = stats.summarize([1.0])
        for setting, judged in (
            (row.setting, True),
            (replace(row.setting, reps=9), True),
            (replace(row.setting, size=MIB), False),
            (replace(row.setting, hosts=3), False),
            (replace(row.setting, rate="1gbit"), False),
        ):
            goal = Run(row, setting).figure(value, "x limit", {}).goal
            self.assertEqual(goal is not None, judged, str(setting))

    def test_the_limit_is_that_of_one_link(self):
        setting = rows.all_rows()["broadcast"].setting
        self.assertAlmostEqual(setting.limit(), 0.5613, places=3)
        self.assertIsNone(replace(setting, rate="none").limit())


if __name__ == "__main__":
    unittest.main()
