import os
import subprocess
import sys
import time

import pytest
from hypothesis import settings

import hoplite

# No folder of examples in the checkout; the seed of a failure is printed.
settings.register_profile("hoplite", database=None, print_blob=True)
settings.load_profile("hoplite")

PATIENCE_S = 60  # for what takes milliseconds on an idle machine


def wait_until(condition, what):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited in vain: {what}")
        time.sleep(0.01)


def alive(pid):
    """Whether the process still runs; a zombie does not."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def run_python(code, *arguments, **environment):
    """Runs a program in a process of its own; what it printed."""
    result = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
        env={**os.environ, **environment},
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture(autouse=True)
def of_our_own(monkeypatch, tmp_path):
    """No test meets a daemon that it did not start."""
    monkeypatch.delenv("HOPLITE_SOCKET", raising=False)
    monkeypatch.delenv("HOPLITE_TOKEN", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    yield
    hoplite.shutdown()


@pytest.fixture(scope="session")
def shared_cluster():
    """Two nodes for tests that do no harm."""
    with hoplite.local(2) as cluster:
        yield cluster


@pytest.fixture
def a(shared_cluster):
    return shared_cluster.client(0)


@pytest.fixture
def b(shared_cluster):
    return shared_cluster.client(1)
