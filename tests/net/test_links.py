"""Links that go down and come up in the middle of a broadcast, and one that loses packets."""

import time
import unittest

from hosts import MIB, Broadcast, cut_a_relay, hosts, require_namespaces

SIZE = 8 * MIB
LONG_OUTAGE_S = 3  # the verdict "dead" takes about a second
SHORT_OUTAGE_S = 0.3
# TCP tries again after 0.2, 0.6 and 1.4 s: what is lost for longer than this may be taken for dead before it is repaired.
TOO_LONG_S = 0.5

setUpModule = require_namespaces


def sleep_until(when: float) -> None:
    time.sleep(max(0, when - time.monotonic()))


class Links(unittest.TestCase):
    def test_a_relay_is_cut_off_for_longer_than_the_verdict_takes(self):
        with hosts(5) as net:
            before = net.wait_for_agreement()
            broadcast, relay, since = cut_a_relay(net, SIZE)
            others = [host for host in net.hosts if host != relay]

            broadcast.expect_arrives(host for host in others if host != 1)
            net.wait_for_views(others, alive=others)
            sleep_until(since + LONG_OUTAGE_S)
            self.assertTrue(broadcast.gets[relay].is_under_way(), "it has neither the object nor a reason to give up")

            net.lab.link_up(relay)
            broadcast.expect_arrives([relay])
            after = net.wait_for_agreement()
            for host in net.hosts:
                self.assertEqual(after[host].node, before[host].node, "nobody was started again")
            self.assertGreater(after[relay].incarnation, before[relay].incarnation, "a verdict is final: this is its next life")

    def test_a_short_outage_is_nobodys_death(self):
        with hosts(5) as net:
            for _ in range(5):
                before = net.wait_for_agreement()
                broadcast, relay, since = cut_a_relay(net, SIZE)
                sleep_until(since + SHORT_OUTAGE_S)
                net.lab.link_up(relay)
                outage_s = time.monotonic() - since
                broadcast.expect_arrives(broadcast.gets)
                if outage_s < TOO_LONG_S:
                    break
            else:
                self.fail("this machine is too busy for an outage as short as that")
            self.assertEqual(net.wait_for_agreement(), before, "the same nodes in the same lives")

    def test_a_host_that_loses_packets(self):
        with hosts(5) as net:
            net.lab.set_loss(3, percent=5)
            broadcast = Broadcast(net, SIZE)
            broadcast.expect_arrives(broadcast.gets)
            net.lab.set_loss(3, percent=0)
            net.wait_for_agreement()


if __name__ == "__main__":
    unittest.main()
