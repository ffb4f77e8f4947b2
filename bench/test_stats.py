"""Tests of stats.py. Run: python3 -m unittest discover -s bench"""

import unittest

import stats


class Parsers(unittest.TestCase):
    def test_sizes(self):
        for text, size in {
            "0": 0, "64": 64, "64B": 64, "1KiB": 1024, "48MiB": 48 << 20,
            "1.5 gib": 3 << 29, "10MB": 10_000_000, " 2 kB ": 2000,
        }.items():  # fmt: skip
            self.assertEqual(stats.parse_size(text), size, text)

    def test_rates(self):
        self.assertEqual(stats.parse_rate("300mbit"), 300_000_000)
        self.assertEqual(stats.parse_rate("1.5Gbit"), 1_500_000_000)
        self.assertIsNone(stats.parse_rate("none"))

    def test_malformed_is_refused(self):
        for text in ("", "MiB", "-1", "1 TiB", "1MiB2", "3mbit", "0x10", "1..5"):
            with self.assertRaises(ValueError, msg=text):
                stats.parse_size(text)
        for text in ("", "500", "500MiB", "-1mbit", "0mbit", "nan", "fast"):
            with self.assertRaises(ValueError, msg=text):
                stats.parse_rate(text)

    def test_format_inverts_parse(self):
        for size in (0, 1, 1000, 1024, 1536, 1 << 20, 48 << 20, 3 << 30):
            self.assertEqual(stats.parse_size(stats.format_size(size)), size)


class Calculations(unittest.TestCase):
    def test_limit_is_that_of_the_design(self):
        self.assertAlmostEqual(stats.limit(32 << 20, 500_000_000), 0.561, places=3)
        self.assertAlmostEqual(stats.limit(1 << 20, 500_000_000), 0.0175, places=4)

    def test_summary(self):
        summary = stats.summarize([3.0, 1.0, 2.0, 10.0])
        self.assertEqual(summary, stats.Summary(median=2.5, min=1.0, max=10.0, count=4))
        self.assertAlmostEqual(summary.spread, 3.6)
        with self.assertRaises(ValueError):
            stats.summarize([])

    def test_ratio_to_a_limit_and_to_another_measurement(self):
        self.assertAlmostEqual(stats.ratio([2, 4, 6], 2.0).median, 2.0)
        against = stats.ratio([2, 4, 6], [1, 2, 300])
        self.assertAlmostEqual(against.median, 2.0)
        self.assertAlmostEqual(against.max, 3.0)


class Texts(unittest.TestCase):
    def test_seconds(self):
        for seconds, text in {
            2: "2 s", 0.5613: "561.3 ms", 0.0175: "17.5 ms", 21.4e-6: "21.4 us", 0: "0 us",
        }.items():  # fmt: skip
            self.assertEqual(stats.format_seconds(seconds), text)

    def test_table_is_aligned(self):
        text = stats.table(("work", "ratio"), [("broadcast", 1.05), ("x", "12")])
        self.assertEqual(
            text.splitlines(),
            [
                "work       ratio",
                "---------  -----",
                "broadcast   1.05",
                "x             12",
            ],
        )

    def test_a_row_of_the_wrong_length_is_a_bug(self):
        with self.assertRaises(ValueError):
            stats.table(("a", "b"), [("only one",)])


if __name__ == "__main__":
    unittest.main()
