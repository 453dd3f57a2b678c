"""Fresh processes: what they are given, that they end, and that nothing of them stays."""

import os
import signal
import subprocess
import sys
import time

import pytest

from penultimate.child import Child


def tell(connection, question):
    connection.send(eval(question))


def replace(connection):
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


def test_a_child_has_the_environment_and_the_folder_of_its_parent_and_changes_neither(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIVEN", "by the parent")
    child = Child(replace)
    assert child.connection.recv() == "done"
    assert child.fate() == "ended with code 0"
    asked = "[__import__('os').environ.get(name) for name in ('GIVEN', 'MORE', 'LEFT')]"
    assert answer(asked, variables={"MORE": "by the call"}) == ["by the parent", "by the call", None]
    assert answer("__import__('os').getcwd()") == str(tmp_path)


def test_a_file_of_the_current_folder_replaces_no_module(tmp_path):
    for name in ("types", "json", "torch", "multiprocessing"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('this file was imported')")
    code = (
        "from penultimate.child import Child\n"
        "child = Child(print); child.process.join(); print(child.process.exitcode)"
    )
    told = subprocess.run([sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert told.stdout.endswith("0\n"), told.stderr


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
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout
    return bool(state) and not state.startswith("Z")


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
