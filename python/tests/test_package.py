"""The package as users get it: the wheel in an empty environment, its programs, types, help and fixtures."""

import inspect
import os
import pathlib
import pydoc
import subprocess
import sys
import venv

import pytest
from conftest import PATIENCE_S

import hoplite

EXAMPLE = """
import os
import numpy as np, hoplite
hoplite.init(memory="64MiB")
refs = [hoplite.put(np.full(4, i, np.float32)) for i in range(3)]
print(hoplite.get(hoplite.reduce(refs)).tolist())
ours = os.path.dirname(hoplite.__file__)
for pid in ("self", hoplite.stats().pid):
    for line in open(f"/proc/{pid}/maps"):
        name = os.path.basename(line.split()[-1])
        if name.startswith(("libspdlog", "libfmt", "libcrypto", "libxxhash", "libhwy")) and "_hashlib" not in name:
            if "hoplite.libs" in line or pid != "self":
                assert "hoplite.libs" in line, line
                print("own", name.partition("-")[0].partition(".")[0])
"""


def test_the_wheel_is_all_that_is_needed(tmp_path):
    """Its libraries come with it, and nothing is compiled: there are no tools on PATH."""
    wheel = os.environ.get("HOPLITE_WHEEL")
    if wheel is None:
        pytest.skip("HOPLITE_WHEEL does not name the wheel to test: `make wheel`, or tools/python test")
    venv.create(tmp_path / "empty", with_pip=True)
    tools = tmp_path / "empty" / "bin"
    environment = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    environment |= {"PATH": str(tools), "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}

    def run(*command):
        result = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=10 * PATIENCE_S)
        assert result.returncode == 0, (command, result.stdout, result.stderr)
        return result.stdout

    run(tools / "python", "-m", "pip", "install", "--quiet", wheel)
    total, *libraries = run(tools / "python", "-c", EXAMPLE).splitlines()
    assert total == "[3.0, 3.0, 3.0, 3.0]"
    assert {"own libspdlog", "own libcrypto"} <= set(libraries)
    installed = run(tools / "python", "-m", "pip", "list", "--format=freeze").split()
    names = {line.partition("==")[0] for line in installed} - {"pip", "setuptools"}
    assert names == {"hoplite", "numpy"}
    for program in ("hoplite", "hoplited"):
        assert run(tools / program, "--version") == f"{program} {hoplite.__version__}\n"


def test_the_programs_know_each_other(tmp_path):
    hoplite.init(memory="64MiB")
    hoplite.put(b"bytes of the package", id="from python")
    program = os.path.join(os.path.dirname(sys.executable), "hoplite")
    run = subprocess.run([program, "get", "from python"], capture_output=True, timeout=PATIENCE_S)
    assert run.stdout == b"bytes of the package", run.stderr
    (tmp_path / "file").write_bytes(b"0123")
    subprocess.run([program, "put", str(tmp_path / "file"), "--id", "from the shell"], check=True, timeout=PATIENCE_S)
    assert hoplite.get("from the shell", timeout=PATIENCE_S) == b"0123"
    subprocess.run([program, "put", str(tmp_path / "file"), "--type", "i16", "--id", "numbers"], check=True, timeout=PATIENCE_S)
    assert hoplite.get("numbers", timeout=PATIENCE_S).tolist() == [0x3130, 0x3332]


USER_CODE = """
import asyncio
import numpy as np
import hoplite

async def later(client: hoplite.Client, refs: list[hoplite.Ref]) -> None:
    async for ref in client.as_completed(refs):
        print(await ref)

def main() -> bool:
    hoplite.init(memory="1GiB")
    ref: hoplite.Ref = hoplite.put(np.ones(3), id="x", timeout=1.0)
    ready, rest = hoplite.wait([ref], num_returns=1)
    values: list[object] = hoplite.get(ready + rest)
    total = hoplite.reduce([ref], "mean", num_sources=1)
    status = hoplite.reduce_status(total).phase.upper()
    with hoplite.local(2) as cluster, hoplite.scope() as scope:
        scope.keep(cluster.client(0).put(values))
        asyncio.run(later(cluster.client(1), [ref]))
    try:
        hoplite.get("name", timeout=1, priority="high")
    except hoplite.GetTimeoutError as error:
        print(str(error), status, hoplite.stats().used_bytes + 1)
    return hoplite.delete(ref)
"""


def test_user_code_passes_mypy_strict(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "user.py").write_text(USER_CODE)
    mypy = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "user.py"]

    def check():
        return subprocess.run(mypy, cwd=tmp_path, capture_output=True, text=True, timeout=10 * PATIENCE_S)

    good = check()
    assert good.returncode == 0, good.stdout
    wrong = {
        'hoplite.reduce([ref], "average")': "arg-type",
        "hoplite.wait(3)": "arg-type",
        "hoplite.put(1, lifetim=3)": "call-arg",
        "hoplite.delete([ref]).bit_count()": "attr-defined",
    }
    (tmp_path / "user.py").write_text("import hoplite\nref = hoplite.ref('x')\n" + "\n".join(wrong))
    found = check().stdout.splitlines()
    for number, code in enumerate(wrong.values(), 3):
        assert any(line.startswith(f"user.py:{number}: error:") and f"[{code}]" in line for line in found), (number, found)


def test_everything_public_is_explained():
    for name in hoplite.__all__:
        thing = getattr(hoplite, name)
        assert inspect.getdoc(thing), name
    for name, method in inspect.getmembers(hoplite.Client, inspect.isfunction):
        if not name.startswith("_"):
            assert inspect.getdoc(method), name
            assert name == "close" or hasattr(hoplite, name), name
    text = pydoc.render_doc(hoplite.get, renderer=pydoc.plaintext)
    assert "get(refs" in text
    assert "self" not in text.splitlines()[2]
    assert ">>> hoplite.get(" in text


def test_nothing_that_the_user_did_not_ask_for_is_imported():
    code = "import sys, hoplite; print(sorted({'torch', 'ray', 'dask', 'ml_dtypes', 'asyncio', 'pytest'} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "torch" not in out
    assert "ray" not in out
    assert "pytest" not in out


def test_the_fixture_is_a_cluster(hoplite_cluster):
    ref = hoplite_cluster.client(0).put(1)
    assert len(hoplite_cluster) == 3
    assert hoplite_cluster.client(2).get(ref, timeout=PATIENCE_S) == 1
    assert hoplite_cluster.log(0)
    assert pathlib.Path(hoplite_cluster.sockets[1]).is_socket()
