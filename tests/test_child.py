"""Fresh processes: what they are given, that they end, and that nothing of them stays."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from penultimate.child import Child


def tell(connection, question):
    connection.send(eval(question))


def replace(connection):
    np.sum = len
    np.seterr(all="raise")
    os.environ["LEFT"] = "1"
    os.chdir("/")
    connection.send("done")


def sleep(connection):
    connection.send(subprocess.Popen(["sleep", "600"]).pid)
    time.sleep(600)


def answer(*arguments, **settings):
    child = Child(tell, *arguments, **settings)
    try:
        return child.connection.recv()
    finally:
        child.end()


def test_a_child_has_the_environment_the_folder_and_the_path_of_its_parent(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIVEN", "by the parent")
    asked = "__import__('os').getcwd(), __import__('os').environ['GIVEN'], __import__('os').environ['MORE']"
    assert answer(asked, variables={"MORE": "by the call"}) == (str(tmp_path), "by the parent", "by the call")


def test_a_file_of_the_current_folder_replaces_no_module(monkeypatch, tmp_path):
    for name in ("types", "json", "torch", "multiprocessing"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('this file was imported')")
    code = (
        "from penultimate.child import Child\n"
        "child = Child(print); child.process.join(); print(child.process.exitcode)"
    )
    told = subprocess.run([sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert told.stdout.endswith("0\n"), told.stderr


def test_what_a_child_does_to_its_process_meets_no_other(tmp_path):
    child = Child(replace)
    assert child.connection.recv() == "done"
    assert child.fate() == "ended with code 0"
    assert np.sum([1, 2]) == 3
    told = answer("__import__('numpy').sum([1, 2]), __import__('numpy').geterr()['over']")
    assert told == (3, "warn")
    assert answer("__import__('os').environ.get('LEFT')") is None


def test_a_child_that_is_killed_says_how():
    child = Child(sleep)
    child.connection.recv()
    assert child.process.pid is not None
    os.kill(child.process.pid, signal.SIGKILL)
    with pytest.raises(EOFError):
        child.connection.recv()
    assert child.fate() == "was killed by signal 9"
    child.end()


def runs(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_child_and_what_it_started_end_with_a_parent_that_is_killed():
    code = (
        "import time\nfrom penultimate.child import Child\nfrom tests.test_child import sleep\n"
        "child = Child(sleep); print(child.process.pid, child.connection.recv(), flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pids = [int(text) for text in parent.stdout.readline().split()]
    assert len(pids) == 2
    parent.kill()
    parent.communicate()
    until = time.monotonic() + 10
    while any(map(runs, pids)) and time.monotonic() < until:
        time.sleep(0.1)
    assert not any(map(runs, pids))
