"""Pieces of process state that any code can change, with functions that read and restore them.

This module imports no library: a library that nobody has imported has no state.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import locale
import os
import random
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

SIGNALS = tuple(signal.valid_signals() - {getattr(signal, "SIGKILL", None), getattr(signal, "SIGSTOP", None)})
HOOKS = (
    *((sys, name) for name in ("stdin", "stdout", "stderr", "excepthook", "displayhook", "unraisablehook")),
    (threading, "excepthook"),
)
TIMERS = ("ITIMER_REAL", "ITIMER_VIRTUAL", "ITIMER_PROF")
DEVICES = ("cpu", "cuda")
FLAGS = (
    *(("cudnn", name) for name in ("enabled", "benchmark", "deterministic")),
    *(("mkldnn", name) for name in ("enabled", "deterministic")),
    ("nnpack", "enabled"),
    ("quantized", "engine"),
)
PRECISIONS = ("", "cuda.matmul", "cudnn.conv", "cudnn.rnn", "mkldnn.matmul", "mkldnn.conv", "mkldnn.rnn")


class Kept:
    """Piece of state: its name, its value, and functions that read it and restore it."""

    def __init__(self, what: str, read: Callable[[], Any], put: Callable[[Any], Any]) -> None:
        self.what, self.read, self.put = what, read, put
        self.value = read()

    def put_back(self) -> bool:
        """Restore the value, and return whether it had changed."""
        if self.read() == self.value:
            return False
        self.put(self.value)
        return True


def state() -> list[Kept]:
    kept = [
        Kept("the working folder", _folder, _go_to),
        Kept("environment variables", lambda: dict(os.environ), _set_environment),
        _listed("sys.path", sys.path),
        _listed("sys.argv", sys.argv),
        _listed("sys.meta_path", sys.meta_path),
        Kept("the limit of recursion", sys.getrecursionlimit, sys.setrecursionlimit),
        Kept("filters of warnings", lambda: [*warnings.filters], _filter),
        _attribute("warnings.showwarning", warnings, "showwarning"),
        Kept("the locale", lambda: locale.setlocale(locale.LC_ALL), _localise),
        Kept("the umask", _umask, os.umask),
        Kept("the collection of garbage", gc.isenabled, lambda on: gc.enable() if on else gc.disable()),
        Kept("sys.settrace", sys.gettrace, sys.settrace),
        Kept("sys.setprofile", sys.getprofile, sys.setprofile),
        *(_attribute(f"{owner.__name__}.{name}", owner, name) for owner, name in HOOKS),
    ]
    if hasattr(signal, "pthread_sigmask"):
        block = functools.partial(signal.pthread_sigmask, signal.SIG_SETMASK)
        kept.append(Kept("blocked signals", lambda: {*signal.pthread_sigmask(signal.SIG_BLOCK, ())}, block))
    kept += [_timer(name) for name in TIMERS if hasattr(signal, name)]
    if threading.current_thread() is threading.main_thread():
        kept.append(Kept("handlers of signals", _handlers, _handle))
    for root, pieces in (("numpy", _of_numpy), ("torch", _of_torch), ("sklearn", _of_sklearn)):
        if hasattr(sys.modules.get(root), "__version__"):  # it is imported completely
            kept += pieces(sys.modules[root])
    return kept


def generators() -> list[Callable[[], Any]]:
    """Return functions that set the random number generators back to their present states."""
    back: list[Callable[[], Any]] = [functools.partial(random.setstate, random.getstate())]
    numpy: Any = sys.modules.get("numpy")
    torch: Any = sys.modules.get("torch")
    if hasattr(numpy, "random"):
        back.append(functools.partial(numpy.random.set_state, numpy.random.get_state()))
    if hasattr(torch, "default_generator"):
        state = torch.default_generator.get_state()
        back.append(functools.partial(torch.default_generator.set_state, state))
    return back


def _attribute(what: str, owner: Any, name: str) -> Kept:
    return Kept(what, lambda: getattr(owner, name, None), lambda value: setattr(owner, name, value))


def _listed(what: str, owner: list[Any]) -> Kept:
    return Kept(what, lambda: [*owner], lambda value: owner.__setitem__(slice(None), value))


def _folder() -> str:
    try:
        return str(Path.cwd())
    except OSError:  # it was deleted
        return ""


def _go_to(folder: str) -> None:
    with contextlib.suppress(OSError):
        os.chdir(folder)


def _set_environment(values: Mapping[str, str]) -> None:
    for name in os.environ.keys() - values.keys():
        del os.environ[name]
    os.environ.update(values)


def _filter(filters: list[Any]) -> None:
    warnings.filters[:] = filters  # type: ignore[index]
    warnings._filters_mutated()  # type: ignore[attr-defined]


def _localise(name: str) -> None:
    with contextlib.suppress(locale.Error):
        locale.setlocale(locale.LC_ALL, name)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _handlers() -> dict[int, Any]:
    return {number: signal.getsignal(number) for number in SIGNALS}


def _handle(handlers: Mapping[int, Any]) -> None:
    for number, handler in handlers.items():
        if handler is not None and signal.getsignal(number) is not handler:
            signal.signal(number, handler)


def _timer(name: str) -> Kept:
    """Return the state of a system timer: whether it is set, since its signal would end the process.

    A timer that was set before keeps running.
    """
    number, began = getattr(signal, name), signal.getitimer(getattr(signal, name))
    return Kept(
        f"signal.{name}",
        lambda: (signal.getitimer(number)[0] > 0, signal.getitimer(number)[1]),
        lambda value: signal.setitimer(number, *began),
    )


def _of_numpy(numpy: Any) -> list[Kept]:
    return [
        Kept("numpy's floating-point errors (seterr)", numpy.geterr, lambda value: numpy.seterr(**value)),
        Kept("numpy's floating-point errors (seterrcall)", numpy.geterrcall, numpy.seterrcall),
        Kept("numpy's buffer size", numpy.getbufsize, numpy.setbufsize),
        Kept("numpy's printing", numpy.get_printoptions, lambda value: numpy.set_printoptions(**value)),
    ]


def _of_sklearn(sklearn: Any) -> list[Kept]:
    configured = Kept(
        "scikit-learn's configuration", sklearn.get_config, lambda value: sklearn.set_config(**value)
    )
    return [configured]


def _of_torch(torch: Any) -> list[Kept]:
    def deterministic() -> tuple[bool, bool]:
        return (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
        )

    def set_deterministic(value: tuple[bool, bool]) -> None:
        torch.use_deterministic_algorithms(value[0], warn_only=value[1])

    def device() -> str:
        return str(torch.get_default_device())

    def set_device(value: str) -> None:
        torch.set_default_device(None if value == "cpu" else value)

    def autocast() -> tuple[Any, ...]:
        on = [torch.is_autocast_enabled(kind) for kind in DEVICES]
        return *on, *(torch.get_autocast_dtype(kind) for kind in DEVICES), torch.is_autocast_cache_enabled()

    def set_autocast(value: tuple[Any, ...]) -> None:
        for kind, on, dtype in zip(DEVICES, value[:2], value[2:4], strict=True):
            torch.set_autocast_enabled(kind, on)
            torch.set_autocast_dtype(kind, dtype)
        torch.set_autocast_cache_enabled(value[4])

    def flushed() -> bool:
        return not bool((torch.full((1,), 1e-39, dtype=torch.float32, device="cpu") * 1).any())

    every = torch.nn.modules.module
    hooks = {name: hook for name, hook in vars(every).items() if name.startswith("_global_")}
    hooks = {name: hook for name, hook in hooks.items() if isinstance(hook, dict)}

    def set_hooks(value: Mapping[str, Any]) -> None:
        for name, hook in hooks.items():
            hook.clear()
            hook.update(value[name])

    return [
        Kept("torch's default dtype", torch.get_default_dtype, torch.set_default_dtype),
        Kept("torch's default device", device, set_device),
        Kept("torch's recording of gradients", torch.is_grad_enabled, torch.set_grad_enabled),
        Kept("torch's search for anomalies", torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly),
        Kept("torch's autocast", autocast, set_autocast),
        Kept("torch's number of threads", torch.get_num_threads, torch.set_num_threads),
        Kept("torch's deterministic algorithms", deterministic, set_deterministic),
        Kept("torch's flushing of denormal numbers", flushed, torch.set_flush_denormal),
        Kept(
            "hooks of all torch modules", lambda: {name: {**hook} for name, hook in hooks.items()}, set_hooks
        ),
        *_precisions(torch),
        *(
            _attribute(f"torch.backends.{place}.{name}", owner, name)
            for place, name in FLAGS
            if hasattr(owner := _inner(torch.backends, place), name)
        ),
    ]


def _precisions(torch: Any) -> list[Kept]:
    """Return the precision of matrix products, which newer versions of torch set for each backend."""
    what = "torch's precision of matrix products"
    if not hasattr(torch.backends, "fp32_precision"):
        return [
            Kept(what, torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
            _attribute("torch.backends.cudnn.allow_tf32", torch.backends.cudnn, "allow_tf32"),
        ]

    def said() -> str:
        try:
            return str(torch.get_float32_matmul_precision())
        except RuntimeError:  # settings of both kinds are mixed
            return ""

    def say(precision: str) -> None:
        torch.set_float32_matmul_precision(precision or "highest")

    places = [place for place in PRECISIONS if hasattr(_inner(torch.backends, place), "fp32_precision")]
    return [Kept(what, said, say)] + [
        _attribute(
            f"torch.backends.{place}.fp32_precision".replace("..", "."),
            _inner(torch.backends, place),
            "fp32_precision",
        )
        for place in places
    ]


def _inner(owner: Any, path: str) -> Any:
    for name in filter(None, path.split(".")):
        owner = getattr(owner, name, None)
    return owner
