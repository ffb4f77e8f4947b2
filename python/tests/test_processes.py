"""Daemons that come and go with processes; forks; kill -9; Ctrl-C; closing."""

import multiprocessing as mp
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from conftest import PATIENCE_S, alive, run_python, wait_until

import hoplite


def test_init_starts_a_daemon_and_shutdown_ends_it():
    client = hoplite.init(memory="64MiB")
    pid = hoplite.stats().pid
    assert os.environ["HOPLITE_SOCKET"] == client.socket
    ref = hoplite.put(np.arange(100_000))
    view = hoplite.get(ref)
    with pytest.raises(hoplite.HopliteError, match="before"):
        hoplite.init()
    hoplite.shutdown()
    wait_until(lambda: not alive(pid), "the daemon ends")
    assert "HOPLITE_SOCKET" not in os.environ
    assert not os.path.exists(os.path.dirname(client.socket))
    np.testing.assert_array_equal(view, np.arange(100_000))
    with pytest.raises(hoplite.ConnectionLostError, match="init"):
        hoplite.put(1)
    with pytest.raises(ConnectionError, match="closed"):
        client.put(1)
    hoplite.shutdown()


def test_init_attaches_to_the_daemon_that_is_there(shared_cluster, monkeypatch):
    monkeypatch.setenv("HOPLITE_SOCKET", shared_cluster.sockets[0])
    hoplite.init()
    assert hoplite.stats().pid == shared_cluster.pids[0]
    hoplite.shutdown()
    assert alive(shared_cluster.pids[0])
    monkeypatch.setenv("HOPLITE_SOCKET", "/nowhere/hoplite.sock")
    with pytest.raises(hoplite.ConnectionLostError):
        hoplite.init()


def test_a_process_joins_a_cluster(hoplite_local):
    cluster = hoplite_local(2)
    address = cluster.client(0).stats().address
    cluster.client(0).put("from the cluster", id="joined")
    hoplite.init(join=address, memory="64MiB")
    assert hoplite.get("joined", timeout=PATIENCE_S) == "from the cluster"
    hoplite.shutdown()
    with pytest.raises(ValueError, match="listen="):
        hoplite.init(join="10.1.2.3:7411")


START = """
import hoplite, sys, time
hoplite.init(memory="64MiB")
print(hoplite.stats().pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, None], ids=["kill -9", "SIGTERM", "the end"])
def test_the_daemon_ends_with_its_process(how):
    command = [sys.executable, "-c", START]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            daemon = int(process.stdout.readline())
            assert alive(daemon)
            if how is None:
                process.stdin.close()
            else:
                process.send_signal(how)
            process.wait(PATIENCE_S)
            wait_until(lambda: not alive(daemon), "the daemon ends with the process")
        finally:
            process.kill()


def test_the_daemon_is_tied_to_the_process_not_to_the_thread():
    thread = threading.Thread(target=lambda: hoplite.init(memory="64MiB"))
    thread.start()
    thread.join()
    assert hoplite.get(hoplite.put(1)) == 1


def test_a_forked_child_is_told_to_init():
    hoplite.init(memory="64MiB")
    ref = hoplite.put(np.arange(1000))
    view = hoplite.get(ref)

    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            said = []
            try:
                hoplite.get(ref)
            except hoplite.ConnectionLostError as error:
                said.append(str(error))
            said.append(str(int(view.sum())))
            hoplite.init()  # attaches to the parent's daemon
            said.append(str(int(hoplite.get(ref, timeout=PATIENCE_S).sum())))
            hoplite.shutdown()
            os.write(write, "\n".join(said).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        told, kept, got = pipe.read().splitlines()
    os.waitpid(pid, 0)
    assert "forked" in told
    assert "hoplite.init()" in told
    assert kept == got == str(sum(range(1000)))
    assert hoplite.get(ref).sum() == sum(range(1000))  # ours still works


def square(ref):
    hoplite.init()
    return hoplite.put(hoplite.get(ref, timeout=PATIENCE_S) ** 2)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing(method):
    hoplite.init(memory="64MiB")
    ref = hoplite.put(np.arange(5))
    with mp.get_context(method).Pool(1) as pool:
        np.testing.assert_array_equal(hoplite.get(pool.apply(square, (ref,)), timeout=PATIENCE_S), np.arange(5) ** 2)
    assert hoplite.get(ref).sum() == 10  # the daemon is still there


def test_a_forked_child_that_lives_on_does_not_keep_the_daemon():
    code = START.replace("sys.stdin.read()", "import os\nif os.fork() == 0: sys.stdin.read()\nos._exit(0)")
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        daemon = int(process.stdout.readline())
        assert process.wait(PATIENCE_S) == 0
        wait_until(lambda: not alive(daemon), "the daemon ends with the parent")
    finally:
        process.communicate()


def test_pending_calls_hear_of_the_daemons_death(hoplite_local):
    cluster = hoplite_local(1)
    client = cluster.client(0)
    ref = client.put(np.arange(1000))
    view = client.get(ref)
    heard = []

    def wait_for(call):
        try:
            call()
        except hoplite.HopliteError as error:
            heard.append(error)

    calls = [
        lambda: client.get(client.new_ref()),
        lambda: client.wait([client.new_ref()]),
        lambda: list(client.as_completed([client.new_ref()])),
        lambda: client.get([client.new_ref()]),
    ]
    threads = [threading.Thread(target=wait_for, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    wait_until(lambda: client.stats().waiting >= len(calls), "the calls wait")
    cluster.kill(0)
    for thread in threads:
        thread.join(PATIENCE_S)
    assert [type(error) for error in heard] == [hoplite.ConnectionLostError] * len(calls)
    assert view.sum() == sum(range(1000))
    with pytest.raises(hoplite.ConnectionLostError):
        client.put(1)


def test_a_node_dies(hoplite_local):
    cluster = hoplite_local(4)
    a, b = cluster.client(0), cluster.client(2)
    lost, kept = b.put(np.arange(100_000), id=a.new_ref()), a.put(1)
    cluster.kill(2)
    with pytest.raises(hoplite.ObjectLostError, match=lost.id):
        a.get(lost, timeout=PATIENCE_S)
    assert cluster.client(3).get(kept, timeout=PATIENCE_S) == 1


def test_closing_ends_what_is_under_way(hoplite_local):
    client = hoplite_local(1).client(0)
    errors = []

    def wait():
        try:
            client.get(client.new_ref())
        except hoplite.ConnectionLostError as error:
            errors.append(error)

    thread = threading.Thread(target=wait)
    waiting = client.stats().waiting
    thread.start()
    wait_until(lambda: client.stats().waiting > waiting, "the get waits")
    client.close()
    thread.join(PATIENCE_S)
    assert len(errors) == 1
    assert client.closed


INTERRUPTED = """
import hoplite, os, signal, sys, threading, time
client = hoplite.Client(sys.argv[1])
other = hoplite.Client(sys.argv[1])
calls = {
    "get": lambda: client.get(client.new_ref()),
    "list": lambda: client.get([client.new_ref()]),
    "wait": lambda: client.wait([client.new_ref()]),
    "completed": lambda: list(client.as_completed([client.new_ref()])),
    "put": lambda: client.put(bytes(250 << 20)),
}
before = other.stats().waiting
def interrupt():
    while other.stats().waiting == before:
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)
thread = threading.Thread(target=interrupt)
thread.start()
begin = time.monotonic()
try:
    calls[sys.argv[2]]()
except KeyboardInterrupt:
    print("interrupted")
thread.join()
"""


@pytest.mark.parametrize("call", ["get", "list", "wait", "completed", "put"])
def test_ctrl_c_ends_every_wait(hoplite_local, call):
    cluster = hoplite_local(1)  # where nothing else waits
    if call == "put":
        cluster.client(0).put(bytes(200 << 20))
    assert run_python(INTERRUPTED, cluster.sockets[0], call) == "interrupted\n"


def test_a_view_outlives_everything():
    with hoplite.local(1) as cluster:
        view = cluster.client(0).get(cluster.client(0).put(np.arange(1_000_000)))
        part = view[::1000].reshape(10, 100)
        del view
    np.testing.assert_array_equal(part.reshape(-1), np.arange(0, 1_000_000, 1000))


def test_the_end_of_a_program_that_cleans_nothing_up():
    out = run_python(
        "import hoplite, numpy as np\n"
        "hoplite.init(memory='64MiB')\n"
        "cluster = hoplite.local(1)\n"
        "client = cluster.client(0)\n"
        "view = client.get(client.put(np.ones(100000)))\n"
        "ref = client.new_ref()\n"
        "completed = iter(client.as_completed([client.put(1), ref]))\n"
        "next(completed)\n"
        "print(hoplite.stats().pid, *cluster.pids, cluster._folder.path)\n"
    )
    *pids, folder = out.split()
    for pid in map(int, pids):
        wait_until(lambda pid=pid: not alive(pid), "the daemons end")
    assert not os.path.exists(folder)
