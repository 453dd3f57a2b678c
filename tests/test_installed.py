"""What is installed from a wheel does what the checkout does."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from tests.golden.portable import PORTABLE
from tests.pinned import RUNTIME, closure

ROOT = Path(__file__).parents[1]
PLUGIN = """\
from penultimate import register

@register.loss
def halved(logits, targets):
    \"\"\"Softmax cross-entropy, halved.\"\"\"
    return -(targets * logits.log_softmax(-1)).sum(-1) / 2
"""


def run(*command: str | Path, cwd: Path) -> str:
    answer = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **PORTABLE},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """An sdist of the files that git knows, and a wheel built from the sdist."""
    folder = tmp_path_factory.mktemp("built")
    listed = run("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT).splitlines()
    for name in listed:
        if (ROOT / name).is_file():
            (folder / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / "tree" / name)
    backend = "from setuptools import build_meta; build_meta.build_{kind}({to!r})"
    run(sys.executable, "-c", backend.format(kind="sdist", to=str(folder)), cwd=folder / "tree")
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    run(sys.executable, "-c", backend.format(kind="wheel", to=str(folder)), cwd=unpacked)
    (wheel,) = folder.glob("*.whl")
    return {"sdist": sdist, "wheel": wheel, "folder": folder}


@pytest.fixture(scope="module")
def installed(built: dict[str, Path]) -> Path:
    """The command in an environment that has the wheel, and of this one only what the wheel depends on."""
    place = built["folder"] / "environment"
    run(sys.executable, "-m", "venv", "--without-pip", place, cwd=built["folder"])
    (site,) = place.glob("lib/python*/site-packages")
    here = Path(sysconfig.get_paths()["purelib"])
    for name in closure(RUNTIME, "Linux on x86-64" if sys.platform == "linux" else "macOS on arm64"):
        tops = {file.parts[0] for file in metadata.files(name) or [] if file.parts[0] != ".."}
        for top in tops - {"__pycache__"}:
            if not (site / top).exists():
                (site / top).symlink_to(here / top)
    pip = (sys.executable, "-m", "pip", "--python", place / "bin" / "python")
    run(*pip, "install", "--no-deps", "--no-index", "--quiet", built["wheel"], cwd=built["folder"])
    where = "import penultimate; print(penultimate.__file__)"
    assert run(place / "bin" / "python", "-c", where, cwd=built["folder"]).startswith(str(place))
    return place / "bin" / "penultimate"


@pytest.mark.long
def test_the_wheel_holds_every_file_of_the_package(built: dict[str, Path]) -> None:
    held = set(zipfile.ZipFile(built["wheel"]).namelist())
    listed = run("git", "ls-files", "src/penultimate", cwd=ROOT).splitlines()
    assert {name.removeprefix("src/") for name in listed if (ROOT / name).is_file()} <= held
    assert any(name.endswith("licenses/LICENSE") for name in held)


@pytest.mark.long
@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "claims", "--reference"),
        ("show", "figure2", "--reference"),
        ("list", "exhibits"),
        ("list", "measurements"),
        ("plan", "smoke"),
        ("check", "halved.py"),
        ("check", "examples:margins"),
    ],
    ids=" ".join,
)
def test_what_is_installed_prints_what_the_checkout_prints(
    installed: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    (tmp_path / "halved.py").write_text(PLUGIN)
    checkout = run(sys.executable, "-m", "penultimate.cli", *arguments, cwd=tmp_path)
    assert run(installed, *arguments, cwd=tmp_path) == checkout
    assert len(checkout.splitlines()) > 3


@pytest.mark.long
def test_what_is_installed_writes_the_reference_report_of_the_checkout(
    installed: Path, tmp_path: Path
) -> None:
    pages = []
    for command in ((installed,), (sys.executable, "-m", "penultimate.cli")):
        run(*command, "report", "--reference", "--to", "page.html", cwd=tmp_path)
        pages.append((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert pages[0] == pages[1]
    assert len(pages[0].encode()) < 10_000_000
    assert "figure5" in pages[0]


@pytest.mark.long
def test_what_is_installed_runs_smoke_as_the_checkout_does(
    installed: Path, tmp_path: Path, finished_smoke: Path
) -> None:
    assert re.search(r"\d+ steps in", run(installed, "run", "smoke", cwd=tmp_path))
    ours, theirs = (
        {path.parent.name: path.read_bytes() for path in folder.glob("runs/steps/*/rows.jsonl")}
        for folder in (tmp_path, finished_smoke)
    )
    assert ours == theirs
    assert len(ours) > 50
