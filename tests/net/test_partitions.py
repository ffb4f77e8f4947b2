"""Hosts that cannot reach each other for a while, and agree again afterwards."""

import re
import unittest

from hosts import MIB, Net, hosts, require_namespaces, wait_until

LEFT, RIGHT = (1, 2), (3, 4)
SIZE = 1 * MIB

setUpModule = require_namespaces


def name_with_home_elsewhere(net: Net, host: int) -> tuple[str, int]:
    """A name that nobody has put and whose home is not `host`, and the host that is its home."""
    for name in (f"name {number}" for number in range(100)):
        home = net.home(host, name)
        if home != host:
            return name, home
    raise AssertionError(f"host {host} is the home of a hundred names")


class Partitions(unittest.TestCase):
    def expect_readable(self, net: Net, host: int, object_id: str, sha256: str) -> None:
        self.assertEqual(net.get(host, object_id).sha256(), sha256, f"host {host}")

    def test_two_halves(self):
        with hosts(4) as net:
            on_both_sides = net.put(1, SIZE)
            self.expect_readable(net, 3, on_both_sides.id, on_both_sides.sha256)
            on_the_left = net.put(1, SIZE)
            net.wait_for_agreement()

            net.lab.partition(LEFT, RIGHT)
            net.wait_for_views(LEFT, alive=LEFT)
            net.wait_for_views(RIGHT, alive=RIGHT)
            for host in (2, 4):
                self.expect_readable(net, host, on_both_sides.id, on_both_sides.sha256)
            self.expect_readable(net, 2, on_the_left.id, on_the_left.sha256)
            self.expect_true_reason(net, 4, on_the_left.id)
            waiting = net.get(3, on_the_left.id, "--wait-if-lost")

            net.lab.heal()
            self.assertEqual(waiting.sha256(), on_the_left.sha256, "a get that waits needs nobody to try again")
            net.wait_for_agreement()
            for host in net.hosts:
                self.expect_readable(net, host, on_the_left.id, on_the_left.sha256)
                self.expect_readable(net, host, on_both_sides.id, on_both_sides.sha256)

    def expect_true_reason(self, net: Net, host: int, object_id: str) -> None:
        """A get of what is on the other side only: nobody here has it, and the answer says who was asked."""
        words = net.get(host, object_id, timeout="2s").failure()
        reason = re.fullmatch(rf"hoplite: (lost|timed out): object {object_id}: (.*)\n", words)
        self.assertIsNotNone(reason, words)
        if reason[1] == "timed out":
            self.assertIn(reason[2], [f"nobody has put it yet, as far as any live node knows (home {net.members(host)[home].node})" for home in RIGHT])

    def test_the_home_of_a_name_is_cut_off(self):
        with hosts(4) as net:
            name, home = name_with_home_elsewhere(net, 1)
            rest = [host for host in net.hosts if host != home]
            net.lab.partition([home])
            # At once: the put has to wait until another home has taken over, and does so by itself.
            stored = net.put(1, SIZE, name)
            for host in rest:
                self.expect_readable(net, host, name, stored.sha256)

            net.lab.heal()
            net.wait_for_agreement()
            for host in net.hosts:
                self.expect_readable(net, host, name, stored.sha256)

    def test_a_name_is_put_on_both_sides(self):
        with hosts(4) as net:
            name, home = name_with_home_elsewhere(net, 1)
            rest = [host for host in net.hosts if host != home]
            net.lab.partition([home])
            net.wait_for_views(rest, alive=rest)
            net.wait_for_views([home], alive=[home])
            versions = {net.put(1, SIZE, name).sha256, net.put(home, SIZE, name).sha256}
            self.assertEqual(len(versions), 2)

            net.lab.heal()
            net.wait_for_agreement()

            def seen() -> set[str]:
                return {net.get(host, name).sha256() for host in net.hosts}

            wait_until(lambda: len(seen()) == 1, "all hosts read the same version")
            self.assertLessEqual(seen(), versions, "one of the two, and whole")
            self.assertIn("conflict", net.logs(), "whoever lost a version can find out")


if __name__ == "__main__":
    unittest.main()
