#!/usr/bin/env python3
"""A laboratory of hosts on one machine, made of network namespaces.

Host i (1..N) is a namespace with one interface, eth0 = 10.77.0.i, whose veth
peer p<i> hangs on a bridge in a namespace of its own, the switch:

    h1 eth0 --- p1 |        |
    h2 eth0 --- p2 | bridge |      tbf shapes both ends of each link, so that
    h3 eth0 --- p3 |        |      a host sends and receives at its rate

Nothing leaves these namespaces, and two labs never see each other. A lab made
by `with Lab(...)` belongs to the process: it goes away with the block, also on
SIGINT and SIGTERM. One whose process was killed is removed when the next lab
is made. A lab made by `lab.py up` stays until `lab.py down`. Needs root.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import processes
import stats

MAX_HOSTS = 200  # one /24 network, with room to spare
STATE_DIR = Path("/run/hoplite-lab")  # one JSON file per lab; /run is empty after a boot
NETNS_DIR = Path("/run/netns")  # where `ip netns` keeps its names

# 256 kB is 4 ms at 500 Mbit/s: enough for the timer of tbf on a busy machine,
# little enough that a measurement of 1 MiB is not mostly a free burst. 20 ms of
# queue let TCP fill the link without the drops of a shallow buffer.
SHAPER = "tbf rate {rate} burst 256kb latency 20ms"

_own_labs = itertools.count()


class LabError(Exception):
    """The lab cannot do it; the message says what and why."""


class Lab:
    """Hosts 1..`hosts`. Not thread-safe; use it from one thread."""

    def __init__(self, hosts: int, rate: str = "none", name: str | None = None):
        """`rate` is per link and direction, as tc writes it, or "none"."""
        if not 1 <= hosts <= MAX_HOSTS:
            raise LabError(f"a lab has 1 to {MAX_HOSTS} hosts, not {hosts}")
        self.name = name or f"p{os.getpid()}x{next(_own_labs)}"
        if not re.fullmatch(r"[A-Za-z0-9_]{1,32}", self.name):
            raise LabError(f"lab name {self.name!r}: use up to 32 letters, digits and _")
        _check_rate(rate)
        self.hosts = hosts
        self._initial_rate = rate
        self._children: list[subprocess.Popen] = []
        self._trapped: list[signal.Signals] = []
        self._refusing: set[int] = set()  # hosts with rules of `reset`

    # ---- life ----------------------------------------------------------------

    def __enter__(self) -> Lab:
        self._trap_signals()
        try:
            self.up()
        except BaseException:
            self._release_signals()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.down()
        self._release_signals()

    def up(self, keep: bool = False) -> None:
        """Makes the lab; leaves nothing behind if that fails.

        With `keep` it outlives this process.
        """
        with _registry_lock():
            _remove_stale_labs()
            if self._state_file.exists():
                raise LabError(f"lab {self.name} exists already; `lab.py down --name {self.name}`")
            self._write_state(owner=os.getpid())
        try:
            self._make_links()
            for i in self._all_hosts():
                self._configure_host(i)
            if self._initial_rate != "none":
                self._shape(self._all_hosts(), self._initial_rate)
            if keep:
                self._write_state(owner=None)
        except BaseException:
            self.down()
            raise

    def down(self) -> None:
        """Ends all processes on the hosts and removes the lab. May be repeated."""
        with processes.signals_held():
            namespaces = [ns for ns in self._namespaces() if (NETNS_DIR / ns).exists()]
            for child in self._children:
                child.terminate()  # one just started may not be in its namespace yet
            processes.end_inside(NETNS_DIR / ns for ns in namespaces)
            for child in self._children:
                child.kill()
                child.wait()
            self._children.clear()
            _batch(["ip"], (f"netns del {ns}" for ns in namespaces))
            self._state_file.unlink(missing_ok=True)

    # ---- use -----------------------------------------------------------------

    def address(self, host: int) -> str:
        return f"10.77.0.{host}"

    @property
    def host_prefix(self) -> str:
        """Namespace of host i = this + str(i)."""
        return f"hop-{self.name}-h"

    def namespace(self, host: int) -> str:
        if not 1 <= host <= self.hosts:
            raise LabError(f"lab {self.name} has hosts 1 to {self.hosts}, not {host}")
        return f"{self.host_prefix}{host}"

    def argv(self, host: int, argv: Sequence[str | os.PathLike]) -> list[str]:
        """The command that runs `argv` on a host, with the same process id."""
        return ["ip", "netns", "exec", self.namespace(host), *map(os.fspath, argv)]

    def popen(self, host: int, argv: Sequence[str | os.PathLike], **options) -> subprocess.Popen:
        """Starts a process on a host; `options` are those of subprocess.Popen.

        It is ended with the lab, or by the kernel if this process (strictly:
        the calling thread) dies first. Ctrl-C in the terminal does not reach it.
        """
        options = {"start_new_session": True, "text": True} | options
        child = subprocess.Popen(self.argv(host, argv), preexec_fn=processes.die_with_parent, **options)
        self._children.append(child)
        return child

    def output(self, host: int, argv: Sequence[str | os.PathLike], timeout_s: float = 60) -> str:
        """Runs a command on a host to its end; its stdout. LabError if it fails."""
        child = self.popen(host, argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return finish(child, timeout_s)

    # ---- weather -------------------------------------------------------------

    def set_rate(self, host: int, rate: str) -> None:
        """Shapes both directions of a host's link anew; "none" unshapes it."""
        _check_rate(rate)
        self.namespace(host)
        self._shape([host], rate)

    def set_loss(self, host: int, percent: float) -> None:
        """Drops frames at random, in each direction of a host's link; 0 ends it."""
        self.namespace(host)
        if not 0 <= percent <= 100:
            raise LabError(f"loss is 0 to 100 percent, not {percent}")
        unlucky = round(percent * 100)  # of 10,000 frames
        drop = f"numgen random mod 10000 <= {unlucky - 1} drop"
        rules = [f'iifname "p{host}" {drop}', f'oifname "p{host}" {drop}'] if unlucky else []
        self._set_rules(f"loss{host}", rules)

    def link_down(self, host: int) -> None:
        """Pulls the cable: frames are lost both ways, the host sees no carrier."""
        self.namespace(host)
        # At the switch's end: taking eth0 down would also flush its neighbours.
        _run(["ip", "-n", self._switch, "link", "set", f"p{host}", "down"])

    def link_up(self, host: int) -> None:
        self.namespace(host)
        _run(["ip", "-n", self._switch, "link", "set", f"p{host}", "up"])

    def partition(self, *groups: Iterable[int]) -> None:
        """Hosts of different groups cannot reach each other any more.

        Hosts in no group reach everybody; a single group is cut off from all
        other hosts. Replaces the partition before.
        """
        sides = [set(group) for group in groups]
        if len(sides) == 1:
            sides.append(set(self._all_hosts()) - sides[0])
        for host in itertools.chain.from_iterable(sides):
            self.namespace(host)
        for a, b in itertools.combinations(sides, 2):
            if a & b:
                raise LabError(f"host {min(a & b)} is on two sides of the partition")

        def ports(side: set[int]) -> str:
            return "{ " + ", ".join(f'"p{host}"' for host in sorted(side)) + " }"

        pairs = [(a, b) for a, b in itertools.permutations(sides, 2) if a and b]
        self._set_rules(
            "partition", [f"iifname {ports(a)} oifname {ports(b)} drop" for a, b in pairs]
        )

    def cut(self, *pairs: tuple[int, int]) -> None:
        """Frames from the first host of a pair to the second are dropped; others reach both. Replaces the cuts before."""
        for host in itertools.chain.from_iterable(pairs):
            self.namespace(host)
        self._set_rules("cut", [f'iifname "p{a}" oifname "p{b}" drop' for a, b in pairs])

    def reset(self, *pairs: tuple[int, int]) -> None:
        """Connections and dials between the two hosts of a pair are refused, as by a firewall. Replaces the resets before."""
        peers: dict[int, list[str]] = {host: [] for host in self._all_hosts()}
        for a, b in pairs:
            peers[a].append(self.address(b))
            peers[b].append(self.address(a))
        for host in self._refusing | {host for pair in pairs for host in pair}:
            script = ["table ip refusals", "delete table ip refusals"]
            if peers[host]:
                rule = f"ip daddr {{ {', '.join(peers[host])} }} meta l4proto tcp reject with tcp reset"
                script += ["table ip refusals { chain out {", "type filter hook output priority 0;", rule, "}", "}"]
            _run(["ip", "netns", "exec", self.namespace(host), "nft", "-f", "-"], "\n".join(script))
        self._refusing = {host for host in peers if peers[host]}

    def heal(self) -> None:
        """Ends partition, cuts, resets and loss, and plugs all links in. Rates stay."""
        self.reset()
        _run(["ip", "netns", "exec", self._switch, "nft", "flush", "ruleset"])
        _batch(["ip", "-n", self._switch], (f"link set p{i} up" for i in self._all_hosts()))

    # ---- construction ----------------------------------------------------------

    @property
    def _switch(self) -> str:
        return f"hop-{self.name}-sw"

    @property
    def _state_file(self) -> Path:
        return STATE_DIR / f"{self.name}.json"

    def _all_hosts(self) -> range:
        return range(1, self.hosts + 1)

    def _namespaces(self) -> list[str]:
        # The switch first: its end takes all links away at once.
        return [self._switch, *map(self.namespace, self._all_hosts())]

    def _make_links(self) -> None:
        _batch(["ip"], (f"netns add {ns}" for ns in self._namespaces()))
        commands = ["link add br0 type bridge mcast_snooping 0", "link set br0 up"]
        for i in self._all_hosts():
            commands += [
                f"link add p{i} type veth peer name eth0 address {_mac(i)} "
                f"netns {self.namespace(i)}",
                f"link set p{i} addrgenmode none",
                f"link set p{i} master br0 up",
            ]
        _batch(["ip", "-n", self._switch], commands)

    def _configure_host(self, host: int) -> None:
        # Permanent neighbours: no ARP in the first measurement, and none of the
        # 1024 table places that the kernel shares among all namespaces.
        others = (i for i in self._all_hosts() if i != host)
        _batch(
            ["ip", "-n", self.namespace(host)],
            [
                "link set lo up",
                "link set eth0 addrgenmode none",
                f"addr add {self.address(host)}/24 dev eth0",
                "link set eth0 up",
                *(f"neigh add {self.address(i)} lladdr {_mac(i)} dev eth0" for i in others),
            ],
        )

    def _shape(self, hosts: Iterable[int], rate: str) -> None:
        qdisc = "noqueue" if rate == "none" else SHAPER.format(rate=rate)
        hosts = list(hosts)
        _batch(["tc", "-n", self._switch], (f"qdisc replace dev p{i} root {qdisc}" for i in hosts))
        for i in hosts:
            _batch(["tc", "-n", self.namespace(i)], [f"qdisc replace dev eth0 root {qdisc}"])

    def _set_rules(self, table: str, rules: list[str]) -> None:
        """Replaces one nft table of the switch by rules for forwarded frames."""
        script = [f"table bridge {table}", f"delete table bridge {table}"]
        if rules:
            hook = "type filter hook forward priority 0;"
            script += [f"table bridge {table} {{ chain frames {{", hook, *rules, "}", "}"]
        _run(["ip", "netns", "exec", self._switch, "nft", "-f", "-"], "\n".join(script))

    # ---- ownership -------------------------------------------------------------

    def _write_state(self, owner: int | None) -> None:
        state = {
            "name": self.name,
            "hosts": self.hosts,
            "rate": self._initial_rate,
            "owner": owner,
            "owner_started": owner and processes.start_time(owner),
        }
        self._state_file.write_text(json.dumps(state))

    def _trap_signals(self) -> None:
        """Lets SIGTERM and SIGHUP unwind the stack as SIGINT does already."""
        if threading.current_thread() is not threading.main_thread():
            return

        def leave(number: int, _frame: object) -> None:
            raise SystemExit(128 + number)

        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, leave)
                self._trapped.append(number)

    def _release_signals(self) -> None:
        while self._trapped:
            signal.signal(self._trapped.pop(), signal.SIG_DFL)


def attach(name: str) -> Lab:
    """A lab that exists already, made by another process."""
    for state in all_labs():
        if state["name"] == name:
            return Lab(state["hosts"], state["rate"], name)
    raise LabError(f"there is no lab {name}; `lab.py list` shows those there are")


def all_labs() -> list[dict]:
    """State of each lab on this machine, as written when it was made."""
    return [json.loads(path.read_text()) for path in sorted(STATE_DIR.glob("*.json"))]


def finish(child: subprocess.Popen, timeout_s: float = 60) -> str:
    """Waits for a process and returns its stdout; LabError if it fails or hangs."""
    command = " ".join(child.args)
    try:
        out, err = child.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
        raise LabError(f"not done after {timeout_s} s: {command}") from None
    if child.returncode:
        raise LabError(f"exit code {child.returncode}: {command}\n{(err or out or '').strip()}")
    return out


def is_stale(state: dict) -> bool:
    """Whether the process a lab belongs to is gone (kept labs belong to nobody)."""
    owner = state["owner"]
    return owner is not None and processes.start_time(owner) != state["owner_started"]


def _remove_stale_labs() -> None:
    for state in filter(is_stale, all_labs()):
        Lab(state["hosts"], name=state["name"]).down()


@contextlib.contextmanager
def _registry_lock() -> Iterator[None]:
    STATE_DIR.mkdir(parents=True, exist_ok=True)
    with open(STATE_DIR / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _check_rate(rate: str) -> None:
    try:
        stats.parse_rate(rate)
    except ValueError as error:
        raise LabError(f"rate {error}") from None


def _mac(host: int) -> str:
    return f"02:00:0a:4d:00:{host:02x}"  # locally administered, then 10.77.0.i


def _run(argv: list[str], stdin: str = "") -> None:
    try:
        done = subprocess.run(argv, input=stdin, capture_output=True, text=True)
    except FileNotFoundError:
        raise LabError(f"{argv[0]} is not installed (Debian: iproute2, nftables)") from None
    if done.returncode:
        raise LabError(f"{' '.join(argv)}: {done.stderr.strip()}")


def _batch(tool: list[str], commands: Iterable[str]) -> None:
    """Many commands of ip or tc in one process: 200 hosts take seconds, not minutes."""
    _run([*tool, "-batch", "-"], "".join(f"{command}\n" for command in commands))


# ---- the command -----------------------------------------------------------------

EXAMPLES = """examples:
  bench/lab.py up 8 --rate 500mbit      make hosts 1..8
  bench/lab.py exec 1 -- iperf3 -s      run a command on host 1
  bench/lab.py rate 3 100mbit           host 3 becomes slow
  bench/lab.py loss 3 5                 and loses 5 % of its frames
  bench/lab.py partition 1,2 3,4        1 and 2 cannot reach 3 and 4
  bench/lab.py heal                     no loss, no partition, all links up
  bench/lab.py down                     remove the lab
"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name: str, text: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=text)
        if name != "list":
            command.add_argument("--name", default="lab", help="which lab (default: %(default)s)")
        return command

    def add_for_host(name: str, text: str) -> argparse.ArgumentParser:
        command = add(name, text)
        command.add_argument("host", type=int, metavar="I", help="host, from 1")
        return command

    command = add("up", "make a lab that stays until `down`")
    command.add_argument("hosts", type=int, metavar="N", help=f"hosts, up to {MAX_HOSTS}")
    command.add_argument("--rate", default="none", help='of each link, "500mbit" or "none"')
    add("down", "end the processes on all hosts and remove the lab")
    add("list", "the labs on this machine")
    command = add_for_host("exec", "run a command on a host")
    command.add_argument("argv", nargs="+", metavar="-- CMD", help="after two dashes")
    command = add_for_host("rate", "change the rate of a host's link, both ways")
    command.add_argument("rate", help='"100mbit" or "none"')
    command = add_for_host("loss", "lose frames of a host at random, both ways")
    command.add_argument("percent", type=float, help="0 ends it")
    add_for_host("linkdown", "pull a host's cable")
    add_for_host("linkup", "plug it in again")
    command = add("partition", "let hosts of different groups not reach each other")
    command.add_argument(
        "groups", nargs="+", metavar="I,J,...", help="one group alone is cut off from all others"
    )
    add("heal", "end partition and loss, plug all links in; rates stay")
    return parser


def _list_labs() -> None:
    rows = []
    for state in all_labs():
        owner = "stale" if is_stale(state) else state["owner"] or "kept"
        rows.append((state["name"], state["hosts"], state["rate"], owner))
    print(stats.table(("lab", "hosts", "rate", "owner pid"), rows) if rows else "no labs")


def _exec(lab: Lab, options: argparse.Namespace) -> None:
    argv = lab.argv(options.host, options.argv)
    os.execvp(argv[0], argv)


def _partition(lab: Lab, options: argparse.Namespace) -> None:
    try:
        groups = [[int(host) for host in group.split(",")] for group in options.groups]
    except ValueError:
        raise LabError("partition: write groups like 1,2 3,4") from None
    lab.partition(*groups)


ACTIONS = {
    "down": lambda lab, options: lab.down(),
    "exec": _exec,
    "rate": lambda lab, options: lab.set_rate(options.host, options.rate),
    "loss": lambda lab, options: lab.set_loss(options.host, options.percent),
    "linkdown": lambda lab, options: lab.link_down(options.host),
    "linkup": lambda lab, options: lab.link_up(options.host),
    "partition": _partition,
    "heal": lambda lab, options: lab.heal(),
}


def main() -> int:
    options = _parser().parse_args()
    try:
        if options.command == "list":
            _list_labs()
        elif options.command == "up":
            Lab(options.hosts, options.rate, options.name).up(keep=True)
        else:
            ACTIONS[options.command](attach(options.name), options)
    except LabError as error:
        print(f"lab.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
