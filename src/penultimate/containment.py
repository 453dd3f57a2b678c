"""What a user's code leaves behind in its process, undone: `contained` runs the code, and all is as before.

State that the code changed (the working folder, the default dtype, filters of warnings and the like) is put
back. Functions of libraries that it replaced are put back too and refused, since what it computed rests on
them. No library is imported here: one that nobody has imported has no state.
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
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

from penultimate.errors import PenultimateError, RequestError

ROOTS = ("numpy", "torch", "sklearn", "scipy", "PIL", "torchvision", "timm", "penultimate")
"""Packages whose functions other steps rest on."""
ALONE = ("builtins", "math", "random", "statistics", "os", "json", "copy", "itertools", "functools")
"""Modules of the standard library that are looked at as well."""
STOPS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals whose handlers may raise KeyboardInterrupt."""
SIGNALS = tuple(signal.valid_signals() - {getattr(signal, "SIGKILL", None), getattr(signal, "SIGSTOP", None)})
STREAMS = ("stdin", "stdout", "stderr", "excepthook", "displayhook")
DEVICES = ("cpu", "cuda")
FLAGS = (
    *(("cudnn", name) for name in ("enabled", "benchmark", "deterministic")),
    *(("mkldnn", name) for name in ("enabled", "deterministic")),
    ("nnpack", "enabled"),
    ("quantized", "engine"),
)
PRECISIONS = ("", "cuda.matmul", "cudnn.conv", "cudnn.rnn", "mkldnn.matmul", "mkldnn.conv", "mkldnn.rnn")
UNSEEN = ("distributed", "onnx", "testing", "export", "fx", "jit", "ao", "package", "tests")
"""Parts of packages of which nothing here makes use."""
CONSTANT = (bool, int, float, str, bytes, tuple, frozenset, type(None))

OF_PACKAGES = ("environment variables", "filters of warnings", "sys.meta_path")
"""State that packages change when they are imported."""
Functions: TypeAlias = dict[ModuleType | type, dict[str, Any]]

_LEAVE = os._exit
_entered = False
_looking: list[Functions] = []


class PassingError(BaseException):
    """An exception that is raised inside a user's code by this package, and passes through."""


class EndingError(PenultimateError):
    """A user's code raised an exception that would have ended the program, such as KeyboardInterrupt."""

    def __init__(self, error: BaseException) -> None:
        frames = traceback.extract_tb(error.__traceback__)
        place = f"line {frames[-1].lineno} of {Path(frames[-1].filename).name} " if frames else "it "
        super().__init__(
            f"{place}raises {type(error).__name__}, which would end the whole program; raise an ordinary"
            " exception, such as ValueError"
        )


class Left(list[str]):
    """What a user's code had changed when it ended, in words; `replaced` are functions of libraries."""

    def __init__(self) -> None:
        super().__init__()
        self.replaced: list[str] = []

    def sentence(self, who: str) -> str:
        """What was changed, and what to do about it."""
        if self.replaced:
            listed = ", ".join(self.replaced[:3]) + (", ..." if len(self.replaced) > 3 else "")
            return (
                f"{who} replaces {listed}, on which other code rests; it was put back. Write a function or a"
                " class of your own, and call that"
            )
        return f"{who} changes {', '.join(self)} for everything that runs after it; change it back"


def has_run() -> bool:
    """Whether this process has executed any code of a user's."""
    return _entered


@contextlib.contextmanager
def contained(who: str = "", *, patches: bool = True) -> Iterator[Left]:
    """Run a user's code in the block; afterwards the state of the process is as it was before.

    `who` names the code in messages; with it, functions of libraries that the code replaced are refused by a
    RequestError, and without it they are only told in what is yielded. Without `patches` they are looked for
    only if a block within this one does. An exception that would end the program comes out as EndingError,
    and a fork that the code has left to return ends here.
    """
    global _entered
    _entered |= patches
    process, left, came = os.getpid(), Left(), list[int]()
    with _noted(came):
        before, generators, imported = _state(), _drawn(), len(sys.modules)
        functions: Functions = {}
        _looking.append(functions)
        if patches:
            found = _functions()
            for lacking in _looking:  # those around this block, in which no such code has run until now
                lacking.update({} if lacking else found)
        try:
            yield left
        except (Exception, SystemExit, GeneratorExit, PassingError):
            raise
        except BaseException as error:
            if came or os.getpid() != process:
                raise
            raise EndingError(error) from error
        finally:
            if os.getpid() != process:
                _LEAVE(0)
            _looking.pop()
            left += [piece.what for piece in before if piece.put_back()]
            if len(sys.modules) > imported:
                left[:] = [what for what in left if what not in OF_PACKAGES]
            for put_back in generators:
                put_back()
            left.replaced += _functions_put_back(functions)
    if left.replaced and who:
        raise RequestError(left.sentence(who))


@contextlib.contextmanager
def _noted(came: list[int]) -> Iterator[None]:
    """Note the signals that raise KeyboardInterrupt, to tell them from an exception that the code raises."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def noting(handler: Callable[..., Any]) -> Callable[..., Any]:
        def note(number: int, frame: Any) -> None:
            came.append(number)
            handler(number, frame)

        return note

    before = {number: handler for number in STOPS if callable(handler := signal.getsignal(number))}
    noting_now = {number: noting(handler) for number, handler in before.items()}
    for number, handler in noting_now.items():
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# -- state --------------------------------------------------------------------------------------------------


class _Kept:
    """A piece of state: what it is called, its value, how it is read and how it is put back."""

    def __init__(self, what: str, read: Callable[[], Any], put: Callable[[Any], Any]) -> None:
        self.what, self.read, self.put = what, read, put
        self.value = read()

    def put_back(self) -> bool:
        """Put the value back; whether it was another."""
        if self.read() == self.value:
            return False
        self.put(self.value)
        return True


def _state() -> list[_Kept]:
    kept = [
        _Kept("the working folder", _folder, _go_to),
        _Kept("environment variables", lambda: dict(os.environ), _set_environment),
        _listed("sys.path", sys.path),
        _listed("sys.argv", sys.argv),
        _listed("sys.meta_path", sys.meta_path),
        _Kept("the limit of recursion", sys.getrecursionlimit, sys.setrecursionlimit),
        _Kept("filters of warnings", lambda: [*warnings.filters], _filter),
        _attribute("warnings.showwarning", warnings, "showwarning"),
        _Kept("the locale", lambda: locale.setlocale(locale.LC_ALL), _localise),
        _Kept("the umask", _umask, os.umask),
        _Kept("the collection of garbage", gc.isenabled, lambda on: gc.enable() if on else gc.disable()),
        *(_attribute(f"sys.{name}", sys, name) for name in STREAMS),
    ]
    if threading.current_thread() is threading.main_thread():
        kept.append(_Kept("handlers of signals", _handlers, _handle))
    for root, pieces in (("numpy", _of_numpy), ("torch", _of_torch), ("sklearn", _of_sklearn)):
        if hasattr(sys.modules.get(root), "__version__"):  # whole, and not just being imported
            kept += pieces(sys.modules[root])
    return kept


def _drawn() -> list[Callable[[], Any]]:
    """What puts the generators of random numbers back."""
    back: list[Callable[[], Any]] = [functools.partial(random.setstate, random.getstate())]
    numpy: Any = sys.modules.get("numpy")
    torch: Any = sys.modules.get("torch")
    if hasattr(numpy, "random"):
        back.append(functools.partial(numpy.random.set_state, numpy.random.get_state()))
    if hasattr(torch, "default_generator"):
        state = torch.default_generator.get_state()
        back.append(functools.partial(torch.default_generator.set_state, state))
    return back


def _attribute(what: str, owner: Any, name: str) -> _Kept:
    return _Kept(what, lambda: getattr(owner, name, None), lambda value: setattr(owner, name, value))


def _listed(what: str, owner: list[Any]) -> _Kept:
    return _Kept(what, lambda: [*owner], lambda value: owner.__setitem__(slice(None), value))


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


def _of_numpy(numpy: Any) -> list[_Kept]:
    return [
        _Kept("numpy's floating-point errors (seterr)", numpy.geterr, lambda value: numpy.seterr(**value)),
        _Kept("numpy's floating-point errors (seterrcall)", numpy.geterrcall, numpy.seterrcall),
        _Kept("numpy's buffer size", numpy.getbufsize, numpy.setbufsize),
        _Kept("numpy's printing", numpy.get_printoptions, lambda value: numpy.set_printoptions(**value)),
    ]


def _of_sklearn(sklearn: Any) -> list[_Kept]:
    configured = _Kept(
        "scikit-learn's configuration", sklearn.get_config, lambda value: sklearn.set_config(**value)
    )
    return [configured]


def _of_torch(torch: Any) -> list[_Kept]:
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
        _Kept("torch's default dtype", torch.get_default_dtype, torch.set_default_dtype),
        _Kept("torch's default device", device, set_device),
        _Kept("torch's recording of gradients", torch.is_grad_enabled, torch.set_grad_enabled),
        _Kept("torch's search for anomalies", torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly),
        _Kept("torch's autocast", autocast, set_autocast),
        _Kept("torch's number of threads", torch.get_num_threads, torch.set_num_threads),
        _Kept("torch's deterministic algorithms", deterministic, set_deterministic),
        _Kept("torch's flushing of denormal numbers", flushed, torch.set_flush_denormal),
        _Kept(
            "hooks of all torch modules", lambda: {name: {**hook} for name, hook in hooks.items()}, set_hooks
        ),
        *_precisions(torch),
        *(
            _attribute(f"torch.backends.{place}.{name}", owner, name)
            for place, name in FLAGS
            if hasattr(owner := _inner(torch.backends, place), name)
        ),
    ]


def _precisions(torch: Any) -> list[_Kept]:
    """In which precision matrices are multiplied: a setting for each backend, or three in older versions."""
    what = "torch's precision of matrix products"
    if not hasattr(torch.backends, "fp32_precision"):
        return [
            _Kept(what, torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
            _attribute("torch.backends.cudnn.allow_tf32", torch.backends.cudnn, "allow_tf32"),
        ]

    def said() -> str:
        try:
            return str(torch.get_float32_matmul_precision())
        except RuntimeError:  # it is mixed of settings of both kinds
            return ""

    def say(precision: str) -> None:
        torch.set_float32_matmul_precision(precision or "highest")

    places = [place for place in PRECISIONS if hasattr(_inner(torch.backends, place), "fp32_precision")]
    return [_Kept(what, said, say)] + [
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


# -- functions of libraries ---------------------------------------------------------------------------------


def _functions() -> Functions:
    """Everything that the public modules of libraries define now, and their classes."""
    found: Functions = {}
    for name, module in [*sys.modules.items()]:
        if not isinstance(module, ModuleType) or not _is_looked_at(name):
            continue
        found[module] = {**vars(module)}
        for value in found[module].values():
            if isinstance(value, type) and value.__module__ == name:
                found[value] = {**vars(value)}
    return found


def _is_looked_at(name: str) -> bool:
    root, _, rest = name.partition(".")
    if root not in ROOTS:
        return name in ALONE
    return not rest.startswith(UNSEEN) and "._" not in name


def _functions_put_back(before: Functions) -> list[str]:
    """Put back what was replaced; the names of the functions and classes among it.

    A constant is put back without a word: images that are cut off are read while a user's code wants them.
    """
    replaced: list[str] = []
    for owner, known in before.items():
        now = {**vars(owner)}
        for name, value in known.items():
            current = now.get(name)
            if current is value or not _counts(name, value) or _is_wrapped_by_its_library(current, value):
                continue
            with contextlib.suppress(AttributeError, TypeError):
                setattr(owner, name, value)
                if not isinstance(value, CONSTANT):
                    replaced.append(f"{_called(owner)}.{name}")
        for name in now.keys() - known.keys() if isinstance(owner, type) else ():
            if any(name in vars(base) for base in owner.__mro__[1:]) and _counts(name, now[name]):
                with contextlib.suppress(AttributeError, TypeError):
                    delattr(owner, name)
                    replaced.append(f"{_called(owner)}.{name}")
    return replaced


def _is_wrapped_by_its_library(current: Any, value: Any) -> bool:
    """Whether a library has wrapped a function of its own, as torch does when a part of it is imported."""
    if getattr(current, "__wrapped__", None) is not value:
        return False
    root = str(getattr(value, "__module__", "")).partition(".")[0]
    home = Path(getattr(sys.modules.get(root), "__file__", None) or os.devnull).parent
    return Path(getattr(getattr(current, "__code__", None), "co_filename", "")).is_relative_to(home)


def _counts(name: str, value: Any) -> bool:
    """Whether an attribute is a function, a class or a constant, and no note that a library keeps."""
    if isinstance(value, CONSTANT):
        return name.isupper() or name in ("pi", "e", "inf", "nan")
    return callable(value) or isinstance(value, property | classmethod | staticmethod)


def _called(owner: ModuleType | type) -> str:
    return owner.__name__ if isinstance(owner, ModuleType) else f"{owner.__module__}.{owner.__qualname__}"
