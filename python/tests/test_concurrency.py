"""Many threads and tasks with one client; nothing is left behind."""

import asyncio
import gc
import threading

import numpy as np
import pytest
from conftest import PATIENCE_S, wait_until

import hoplite


def test_threads_share_a_client(a, b):
    failures = []

    def work(number):
        try:
            for i in range(200):
                array = np.full(1 + (i * 977) % 30_000, number * 1000 + i)
                ref = a.put(array)
                np.testing.assert_array_equal((a, b)[i % 2].get(ref, timeout=PATIENCE_S), array)
                assert a.delete(ref)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_asyncio(a, b, monkeypatch):
    async def main():
        refs = [a.new_ref() for _ in range(10)]
        gets = [asyncio.ensure_future(b.get_async(ref, timeout=PATIENCE_S)) for ref in refs]
        for i, ref in enumerate(refs):
            a.put(i, id=ref)
        assert await asyncio.gather(*gets) == list(range(10))
        assert await refs[3] == 3
        assert {ref async for ref in b.as_completed(refs)} == set(refs)
        with pytest.raises(hoplite.GetTimeoutError):
            await a.get_async(a.new_ref(), timeout=0.05)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(a.get_async(a.new_ref()), 0.05)
        with pytest.raises(hoplite.GetTimeoutError):
            async for _ in a.as_completed([a.new_ref()], timeout=0.05):
                pass

    waiting = a.stats().waiting
    asyncio.run(main())
    wait_until(lambda: a.stats().waiting <= waiting, "what was given up is cancelled")


def test_a_loop_that_ends_before_its_gets(a):
    async def main():
        task = asyncio.ensure_future(a.get_async(ref))
        await asyncio.sleep(0)
        return task

    ref = a.new_ref()
    asyncio.run(main())
    a.put(1, id=ref)
    assert a.get(ref, timeout=PATIENCE_S) == 1


def test_memory_returns_to_what_it_was(hoplite_local):
    client = hoplite_local(1, memory="64MiB").client(0)

    def cycles(count):
        for i in range(count):
            ref = client.put(np.full(100 + (i % 7) * 5000, i))
            assert client.get(ref)[0] == i
            client.delete(ref)
        gc.collect()

    def used():
        stats = client.stats()
        return stats.used_bytes, stats.objects

    before = used()
    cycles(10_000)
    wait_until(lambda: used() == before, "the store is as empty as before")


def test_views_are_given_back_when_the_last_array_is_gone(hoplite_local):
    client = hoplite_local(1, memory="64MiB").client(0)
    ref = client.put(np.ones(30 << 17))
    view = client.get(ref)
    part = view[5:10]
    del view
    client.delete(ref)
    with pytest.raises(hoplite.StoreFullError):
        client.put(np.ones(40 << 17), timeout=0.1)
    np.testing.assert_array_equal(part, np.ones(5))
    del part
    client.put(np.ones(40 << 17), timeout=PATIENCE_S)
