"""The worker of bench/worker for what is measured from Python: commands on standard input, answers in JSON.

Runs with the interpreter that has the package: build/venv/bin/python bench/python_worker.py SOCKET
"""

import json
import sys
import time

import hoplite
import numpy as np


class Worker:
    def __init__(self, socket):
        self.client = hoplite.Client(socket, timeout=60.0)

    def put_rate(self, size, count):
        data, put = bytes(size), self.client.put
        begin = time.perf_counter()
        refs = [put(data) for _ in range(count)]
        seconds = time.perf_counter() - begin
        self.client.delete(refs)
        return seconds

    def get_rate(self, size, count):
        refs = [self.client.put(i.to_bytes(size, "little")) for i in range(1000)]
        get = self.client.get
        begin = time.perf_counter()
        for i in range(count):
            get(refs[i % 1000])
        seconds = time.perf_counter() - begin
        self.client.delete(refs)
        return seconds

    def timed_puts(self, size, count):
        array = np.ones(size, np.uint8)
        seconds = []
        for _ in range(count):
            begin = time.perf_counter()
            ref = self.client.put(array)
            seconds.append(time.perf_counter() - begin)
            assert (self.client.get(ref) == array).all()
            self.client.delete(ref)
        return seconds

    def timed_gets(self, size, count):
        array = np.ones(size, np.uint8)
        ref = self.client.put(array)
        seconds = []
        for _ in range(count):
            begin = time.perf_counter()
            got = self.client.get(ref)
            seconds.append(time.perf_counter() - begin)
            assert got.size == size
        assert (got == array).all()
        del got
        self.client.delete(ref)
        return seconds


def main():
    worker = Worker(sys.argv[1])
    print(json.dumps({"ready": sys.argv[1]}), flush=True)
    for line in sys.stdin:
        command, *numbers = line.split()
        try:
            answer = {"seconds": getattr(worker, command)(*map(int, numbers))}
        except (hoplite.HopliteError, AssertionError) as error:
            answer = {"error": repr(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
