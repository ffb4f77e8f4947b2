"""Pairs of hosts that cannot reach each other, while a third one reaches both."""

import unittest

from hosts import MIB, Net, hosts, require_namespaces, wait_until

SMALL, LARGE = 1000, 1 * MIB
A, B = 1, 2
LOOKS = 60

setUpModule = require_namespaces


def refuse(net: Net, a: int, b: int) -> None:
    """A firewall on both hosts: whatever one sends to the other by TCP is answered with a reset."""
    for host, other in ((a, b), (b, a)):
        address = net.lab.address(other)
        reject = f"{address} ip protocol tcp reject with tcp reset"
        rules = [
            "table inet firewall {",
            f"chain from {{ type filter hook input priority 0; ip saddr {reject}; }}",
            f"chain to {{ type filter hook output priority 0; ip daddr {reject}; }}",
            "}",
        ]
        net.lab.output(host, ["nft", "\n".join(rules)])


class Pairs(unittest.TestCase):
    def expect_everything_travels(self, net: Net, when: str) -> None:
        for source, reader in ((A, B), (B, A)):
            for size in (SMALL, LARGE):
                stored = net.put(source, size)
                self.assertEqual(net.get(reader, stored.id).sha256(), stored.sha256, f"{size} B from {source}")
                name = f"{size} B from {source}, {when}"
                named = net.put(source, size, name)
                self.assertEqual(net.get(reader, name).sha256(), named.sha256, name)

    def test_a_refused_pair(self):
        with hosts(3) as net:
            before = net.wait_for_agreement()
            refuse(net, A, B)
            self.expect_everything_travels(net, "without a path")
            for look in range(LOOKS):
                for host in net.hosts:
                    members = net.members(host)
                    self.assertTrue(all(member.alive for member in members.values()), f"look {look} at host {host}")
                    self.assertEqual(members, before, "nobody comes back as somebody else")
            self.assertLess(len(net.logs().splitlines()), LOOKS, "the log is not flooded")

    def test_a_pair_whose_packets_vanish(self):
        with hosts(3) as net:
            before = net.wait_for_agreement()
            net.lab.partition((A,), (B,))
            self.expect_everything_travels(net, "without a path")
            for host in net.hosts:
                self.assertEqual(net.members(host), before)

            net.lab.heal()
            self.expect_everything_travels(net, "healed")
            wait_until(lambda: net.members(A) == before, "nothing has changed")


if __name__ == "__main__":
    unittest.main()
