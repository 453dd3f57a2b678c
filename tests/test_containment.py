"""`contained`: whatever a user's code leaves behind in its process is undone, told or refused."""

from __future__ import annotations

import builtins
import gc
import locale
import os
import random
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import sklearn
import torch
from PIL import Image

from penultimate import registry
from penultimate.checking import check_file
from penultimate.containment import EndingError, contained
from penultimate.engine.execute import execute
from penultimate.engine.forecast.timing import _measured
from penultimate.errors import RequestError
from penultimate.files import digest_bytes
from penultimate.graph import Step
from penultimate.plugins import load_plugin
from penultimate.store import Store
from tests.plugged import plugged

DIRT: dict[str, Callable[[], object]] = {
    "the working folder": lambda: os.chdir("/"),
    "environment variables": lambda: os.environ.update(NEW_OF_A_TEST="1"),
    "sys.path": lambda: sys.path.insert(0, "/elsewhere"),
    "sys.argv": lambda: sys.argv.append("--more"),
    "the limit of recursion": lambda: sys.setrecursionlimit(5000),
    "filters of warnings": lambda: warnings.simplefilter("ignore"),
    "the umask": lambda: os.umask(0o177),
    "the locale": lambda: locale.setlocale(locale.LC_ALL, "C.UTF-8"),
    "the collection of garbage": gc.disable,
    "sys.stdout": lambda: setattr(sys, "stdout", sys.stderr),
    "handlers of signals": lambda: signal.signal(signal.SIGUSR1, signal.SIG_IGN),
    "blocked signals": lambda: signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM}),
    "signal.ITIMER_REAL": lambda: signal.alarm(600),
    "signal.ITIMER_VIRTUAL": lambda: signal.setitimer(signal.ITIMER_VIRTUAL, 600),
    "sys.settrace": lambda: sys.settrace(lambda *of: None),
    "sys.setprofile": lambda: sys.setprofile(lambda *of: None),
    "sys.unraisablehook": lambda: setattr(sys, "unraisablehook", print),
    "threading.excepthook": lambda: setattr(threading, "excepthook", print),
    "numpy's floating-point errors (seterr)": lambda: np.seterr(all="raise"),
    "numpy's printing": lambda: np.set_printoptions(precision=2),
    "torch's default dtype": lambda: torch.set_default_dtype(torch.float64),
    "torch's default device": lambda: torch.set_default_device("meta"),
    "torch's recording of gradients": lambda: torch.set_grad_enabled(False),
    "torch's autocast": lambda: torch.set_autocast_enabled("cpu", True),
    "torch's deterministic algorithms": lambda: torch.use_deterministic_algorithms(True, warn_only=True),
    "torch's flushing of denormal numbers": lambda: torch.set_flush_denormal(True),
    "hooks of all torch modules": lambda: torch.nn.modules.module.register_module_forward_hook(print),
    "torch.backends.mkldnn.enabled": lambda: setattr(torch.backends.mkldnn, "enabled", False),
    "torch.backends.cudnn.benchmark": lambda: setattr(torch.backends.cudnn, "benchmark", True),
    "scikit-learn's configuration": lambda: sklearn.set_config(assume_finite=True),
}


@pytest.mark.parametrize("what", DIRT)
def test_state_is_put_back_and_told(what: str) -> None:
    before = locale.setlocale(locale.LC_ALL)
    locale.setlocale(locale.LC_ALL, "C")
    try:
        with contained(patches=False) as left:
            DIRT[what]()
        assert left == [what]
        with contained(patches=False) as left:
            pass
        assert left == []
    finally:
        locale.setlocale(locale.LC_ALL, before)


def test_the_precision_of_matrix_products_is_put_back() -> None:
    before = torch.get_float32_matmul_precision()
    with contained(patches=False) as left:
        torch.set_float32_matmul_precision("medium")
    assert torch.get_float32_matmul_precision() == before
    assert left


def test_state_is_put_back_after_an_error_too() -> None:
    def fail() -> None:
        torch.set_default_dtype(torch.float64)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), contained(patches=False):
        fail()
    assert torch.get_default_dtype() is torch.float32


def test_random_numbers_go_on_as_if_nothing_had_been_drawn() -> None:
    def drawn() -> tuple[float, float, float]:
        return random.random(), float(np.random.mtrand._rand.rand()), float(torch.rand(()))

    with contained(patches=False) as left:
        expected = drawn()
        torch.manual_seed(3)
    assert drawn() == expected
    assert left == []


REPLACED: dict[str, Callable[[], object]] = {
    "numpy.argmax": lambda: setattr(np, "argmax", np.argmin),
    "numpy.linalg.norm": lambda: delattr(np.linalg, "norm"),
    "builtins.sorted": lambda: setattr(builtins, "sorted", list),
    "torch.nn.functional.relu": lambda: setattr(torch.nn.functional, "relu", torch.nn.functional.gelu),
    "torch.nn.modules.linear.Linear.forward": lambda: setattr(torch.nn.Linear, "forward", lambda _, x: x),
    "torch.Tensor.sum": lambda: setattr(torch.Tensor, "sum", lambda *_: 0),  # inherited until now
    "PIL.Image.Image.resize": lambda: setattr(Image.Image, "resize", lambda *_: None),
    "penultimate.store.Store.holds": lambda: setattr(Store, "holds", lambda *_: True),
}


@pytest.mark.parametrize("what", REPLACED)
def test_functions_of_libraries_are_put_back_and_refused(what: str) -> None:
    with (
        pytest.raises(RequestError, match=rf"^mine replaces {what}, on which other code rests"),
        contained("mine"),
    ):
        REPLACED[what]()
    assert np.argmax([1, 3, 2]) == 1
    assert float(torch.ones(3).sum()) == 3
    assert callable(np.linalg.norm)
    with contained() as left:
        pass
    assert left.replaced == []


def test_a_constant_is_put_back_without_a_word() -> None:
    with contained("mine"):
        Image.MAX_IMAGE_PIXELS = None
        np.pi = 3
    assert Image.MAX_IMAGE_PIXELS is not None
    assert np.pi > 3


def test_what_a_block_within_has_replaced_is_seen_by_the_one_around_it() -> None:
    """A network's file is executed in the midst of a step; what its forward replaces comes later."""

    def built_and_run() -> None:
        with contained("the file"):
            pass
        np.argmax = np.argmin

    answer = r"the step replaces numpy\.argmax"
    with pytest.raises(RequestError, match=answer), contained("the step", patches=False):
        built_and_run()
    assert np.argmax([1, 3, 2]) == 1


def test_an_exception_that_would_end_the_program_becomes_an_ordinary_one() -> None:
    class Stop(BaseException): ...

    for kind in (KeyboardInterrupt, GeneratorExit, Stop):
        answer = rf"of test_containment\.py raises {kind.__name__}"
        with pytest.raises(EndingError, match=answer), contained(patches=False):
            raise kind


def test_ctrl_c_passes_through() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), contained(patches=False):
        os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of forks beside threads
def test_a_fork_that_returns_ends_where_the_code_ends() -> None:
    with contained(patches=False):
        child = os.fork()
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of forks beside threads
def test_forks_that_return_into_code_that_forks_are_as_many_as_were_asked_for() -> None:
    reader, writer = os.pipe()
    with contained(patches=False):
        children = [child for _ in range(5) if (child := os.fork()) or os.write(writer, b"!") < 0]
    for child in children:
        assert os.waitpid(child, 0)[1] == 0
    os.close(writer)
    with os.fdopen(reader, "rb") as end:
        assert end.read() == b"!" * 5


# -- a plug-in ----------------------------------------------------------------------------------------------

MEASUREMENT = """
import os
import numpy as np
from penultimate import register
from penultimate.measures import Number

@register.measurement(version=1, per="network", needs=(), yields=None)
def misdeed(inputs, *, deed=""):
    exec(deed)
    yield Number("misdeed", 1.0, "count")
"""


@pytest.mark.parametrize(
    ("deed", "answer"),
    [
        ("np.argmax = np.argmin", r"^the code that 'misdeed' runs replaces numpy\.argmax"),
        ("raise KeyboardInterrupt", "raises KeyboardInterrupt, which would end the whole program"),
    ],
)
def test_a_step_that_does_harm_fails_in_a_sentence_and_others_do_not_feel_it(
    tmp_path: Path, deed: str, answer: str
) -> None:
    (tmp_path / "mine.py").write_text(MEASUREMENT)
    store = Store(tmp_path / "runs")
    store.prepare()
    with plugged(tmp_path / "mine.py"), pytest.raises(Exception, match=answer):
        execute(store, Step("misdeed", 1, {"deed": deed}, {"deed": deed}), lambda news: None)
    assert np.argmax([1, 3, 2]) == 1


def test_a_step_that_changes_state_is_done_and_leaves_none_of_it(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MEASUREMENT)
    store, before = Store(tmp_path / "runs"), np.geterr()
    store.prepare()
    deed = "np.seterr(all='ignore'); os.chdir('/')"
    with plugged(tmp_path / "mine.py"):
        execute(store, Step("misdeed", 1, {"deed": deed}, {"deed": deed}), lambda news: None)
    assert np.geterr() == before
    assert Path.cwd() != Path("/")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("import numpy\nnumpy.argmax = numpy.argmin\n", r"mine\.py' replaces numpy\.argmax"),
        (
            "from penultimate.metrics import moments as m\nm.ClassMoments = int\n",
            r"replaces penultimate\.metrics\.moments",
        ),
        ("raise KeyboardInterrupt\n", r"line 1 of mine\.py raises KeyboardInterrupt"),
        ("class Stop(BaseException): pass\nraise Stop\n", r"line 2 of mine\.py raises Stop"),
    ],
)
def test_a_file_that_does_harm_is_refused(tmp_path: Path, text: str, answer: str) -> None:
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(RequestError, match=answer):
        load_plugin(tmp_path / "mine.py")
    assert np.argmax([1, 3, 2]) == 1


def installed(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    """Have a package in a folder that modules are imported from, for the first time in this process."""
    (folder / name).mkdir(parents=True)
    (folder / name / "__init__.py").write_text(text)
    monkeypatch.syspath_prepend(str(folder))


@pytest.mark.parametrize("line", ["import {name}", "import {name}.inner", "from {name} import inner as it"])
def test_a_package_that_replaces_functions_when_it_is_imported_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    name, relu = f"patcher_{digest_bytes(line.encode())[:6]}", torch.nn.functional.relu
    text = "import torch\ntorch.nn.functional.relu = torch.nn.functional.gelu\n"
    installed(tmp_path / "packages", monkeypatch, name, text)
    (tmp_path / "packages" / name / "inner.py").write_text("")
    (tmp_path / "mine.py").write_text(line.format(name=name))
    answer = (
        rf"the package '{name}', which the plug-in '.*mine\.py' imports, replaces torch\.nn\.functional\.relu"
    )
    with pytest.raises(RequestError, match=answer):
        load_plugin(tmp_path / "mine.py")
    assert torch.nn.functional.relu is relu


def test_what_a_package_changes_when_it_is_imported_is_put_back_and_no_fault_of_the_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        "import os, signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nos.environ['OF_A_PACKAGE'] = '1'"
    )
    installed(tmp_path / "packages", monkeypatch, "handling", text)
    (tmp_path / "mine.py").write_text(
        "import handling\nfrom penultimate import register\n@register.loss\ndef handled(logits, targets): ..."
    )
    before = signal.getsignal(signal.SIGTERM)
    with plugged(tmp_path / "mine.py") as (plugin,):
        assert plugin.left == ()
    assert signal.getsignal(signal.SIGTERM) is before
    assert "OF_A_PACKAGE" not in os.environ


@pytest.mark.parametrize("text", ["raise SystemExit(3)", "import os; os._exit(3)", "raise KeyboardInterrupt"])
def test_a_package_that_ends_the_program_is_told_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    name = f"ending_{digest_bytes(text.encode())[:6]}"
    installed(tmp_path / "packages", monkeypatch, name, text)
    (tmp_path / "mine.py").write_text(f"import {name}")
    with pytest.raises(RequestError, match=r"ends? the whole program"):
        load_plugin(tmp_path / "mine.py")


NETWORK = """
import os, sys
import numpy as np, torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.final, self.act = nn.Linear(3, 4), nn.ReLU()

    def forward(self, images):
        {deed}
        return self.final(self.act(images).mean((2, 3)))

def build():
    return Net()
"""


@pytest.mark.parametrize(
    "deed",
    [
        "np.argmax = np.argmin",
        "torch.set_default_dtype(torch.float64)",
        "sys.exit(3)",
        "os._exit(3)",
        "raise KeyboardInterrupt",
    ],
)
def test_the_timing_of_a_network_leaves_nothing_of_it(tmp_path: Path, deed: str) -> None:
    (tmp_path / "net.py").write_text(NETWORK.format(deed=deed))
    assert _measured(f"{tmp_path / 'net.py'}:build") is None
    assert np.argmax([1, 3, 2]) == 1
    assert torch.get_default_dtype() is torch.float32


def test_a_check_tells_the_state_that_a_plugin_changes_and_the_functions_that_it_replaces(
    tmp_path: Path,
) -> None:
    (tmp_path / "mine.py").write_text(
        """
import os
import numpy as np, torch
from penultimate import register
os.environ["OF_A_PLUGIN"] = "1"

@register.loss
def untidy_of_a_test(logits, targets):
    torch.set_num_threads(1 + torch.get_num_threads())
    np.argmax = np.argmin
    return -(targets * logits.log_softmax(-1)).sum(-1)
"""
    )
    try:
        wrong = [each.sentence for each in check_file(tmp_path / "mine.py").wrong if each.check == "state"]
    finally:
        registry.forget("loss", "untidy_of_a_test")
    assert len(wrong) == 3
    assert "changes environment variables when its file is loaded" in wrong[0]
    assert "mine.py replaces numpy.argmax, on which other code rests" in wrong[1]
    assert "changes torch's number of threads when it is called" in wrong[2]
