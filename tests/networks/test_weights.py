"""Weights from files: wrappers come off, what does not fit is named, and nothing in a file is executed."""

from __future__ import annotations

import argparse
import gzip
import io
import os
import pickle
import tarfile
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import Tensor, nn

from penultimate.errors import RequestError
from penultimate.networks.state import tensors_of_state
from penultimate.networks.weights import load_weights, read_weights

State = dict[str, Tensor]


def small(classes: int = 4, width: int = 6) -> nn.Module:
    net = nn.Sequential()
    net.add_module("stem", nn.Sequential(nn.Conv2d(3, width, 3), nn.BatchNorm2d(width), nn.ReLU()))
    net.add_module("head", nn.Linear(width, classes))
    return net


def prefixed(state: State, prefix: str) -> State:
    return {f"{prefix}{name}": value for name, value in state.items()}


WRAPPED: dict[str, Callable[[State], Any]] = {
    "bare": lambda state: state,
    "state_dict": lambda state: {"epoch": 3, "state_dict": state, "args": argparse.Namespace(lr=0.1)},
    "model": lambda state: {"model": state, "optimizer": {"state": {}}},
    "DataParallel": lambda state: {"state_dict": prefixed(state, "module.")},
    "compiled": lambda state: prefixed(state, "_orig_mod."),
    "both": lambda state: {"model": prefixed(state, "module._orig_mod.")},
    "compiled inside": lambda state: {k.replace("stem.", "stem._orig_mod."): v for k, v in state.items()},
    "Lightning": lambda state: {"state_dict": prefixed(state, "model."), "loops": {}},
    "old": lambda state: {k: v for k, v in state.items() if "num_batches" not in k},
}


@pytest.mark.parametrize("how", WRAPPED)
def test_the_usual_wrappers_come_off(how: str, tmp_path: Path) -> None:
    given, taken = small(), small()
    torch.save(WRAPPED[how](given.state_dict()), tmp_path / "w.pth")
    load_weights(taken, read_weights(tmp_path / "w.pth"), tmp_path / "w.pth")
    for name, value in given.named_parameters():
        assert torch.equal(taken.get_parameter(name), value)


def test_averaged_weights_are_taken_by_option(tmp_path: Path) -> None:
    plain, averaged = small(), small()
    ema = {"n_averaged": torch.tensor(7), **prefixed(averaged.state_dict(), "module.")}
    for key in ("model_ema", "state_dict_ema"):
        torch.save({"model": plain.state_dict(), key: ema}, tmp_path / "w.pth")
        for wanted, flag in ((plain, False), (averaged, True)):
            taken = small()
            load_weights(taken, read_weights(tmp_path / "w.pth", flag), tmp_path / "w.pth")
            assert torch.equal(taken.head.weight, wanted.head.weight)
    torch.save({"model": plain.state_dict(), "epoch": 1}, tmp_path / "w.pth")
    with pytest.raises(RequestError, match=r"holds no averaged weights .*; it holds model, epoch"):
        read_weights(tmp_path / "w.pth", ema=True)


def misfit(state: State, net: nn.Module | None = None) -> str:
    with pytest.raises(RequestError) as error:
        load_weights(net or small(), state, Path("best.pth"))
    return str(error.value)


def test_what_does_not_fit_is_named() -> None:
    state = small().state_dict()
    without = {name: value for name, value in state.items() if name != "head.bias"}
    start = "'best.pth' does not hold weights of this network (Sequential): "
    assert misfit(without) == f"{start}of its 9 tensors 8 fit, 1 is missing (head.bias)"
    more = {**state, **{f"tail.{place}": torch.zeros(3) for place in range(6)}}
    beside = "6 more are there that it does not have (tail.0, tail.1, tail.2, tail.3, ...)"
    assert misfit(more) == f"{start}all 9 of its tensors fit, and {beside}"
    renamed = {**without, "tail.bias": torch.zeros(4)}
    assert misfit(renamed).endswith("(head.bias), and 1 more is there that it does not have (tail.bias)")
    said = misfit({**state, "head.weight": torch.zeros(9, 6), "head.bias": torch.zeros(9)})
    shapes = "head.weight is [9, 6], not [4, 6], head.bias is [9], not [4]"
    assert f"of its 9 tensors 7 fit, 2 are of another shape ({shapes})" in said
    assert "a final layer for 9 classes? num_classes=9" in said
    assert "is it of another architecture?" not in said
    other = nn.Sequential(nn.Conv2d(3, 8, 1), nn.BatchNorm2d(8), nn.Linear(8, 2)).state_dict()
    said = misfit(other)
    assert "of its 8 tensors none fits, 8 are missing (stem.0.weight, " in said
    assert said.endswith("; is it of another architecture?")
    assert said.count("stem.") <= 4


def test_a_network_without_a_value_is_told(tmp_path: Path) -> None:
    state = small().state_dict()
    state["stem.0.weight"][0] = float("nan")
    assert "'stem.0.weight' holds values that are not finite" in misfit(state)


class Hostile:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.mark}",)


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("ending", ["pth", "pt", "ckpt", "bin"])
def test_of_a_hostile_pickle_nothing_runs(tmp_path: Path, ending: str, zipped: bool) -> None:
    mark, file = tmp_path / "ran", tmp_path / f"w.{ending}"
    content = {"state_dict": small().state_dict(), "args": Hostile(mark)}
    if zipped:
        torch.save(content, file)
    else:
        file.write_bytes(pickle.dumps(Hostile(mark)))
    with pytest.raises(RequestError, match=r"(?s)holds more than tensors.*nothing in it was run") as error:
        read_weights(file)
    assert not mark.exists()
    assert not zipped or "system" in str(error.value)


def test_a_whole_pickled_module_is_refused_with_the_way_out(tmp_path: Path) -> None:
    torch.save(small(), tmp_path / "w.pth")
    with pytest.raises(RequestError, match=r"torch\.save\(model\.state_dict\(\), FILE\), or safetensors"):
        read_weights(tmp_path / "w.pth")


def test_files_that_hold_no_weights_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.safetensors").write_bytes(b"\xff" * 40)
    (tmp_path / "empty.pth").write_bytes(b"")
    torch.save(torch.ones(3), tmp_path / "tensor.pth")
    torch.save({"epoch": 3, "model_ema": small().state_dict()}, tmp_path / "ema.pth")
    with zipfile.ZipFile(tmp_path / "zip.pth", "w") as archive:
        archive.writestr("../../evil", "x")
    safetensors.torch.save_file({"w": torch.ones(2)}, tmp_path / "cut.safetensors")
    whole = (tmp_path / "cut.safetensors").read_bytes()
    (tmp_path / "cut.safetensors").write_bytes(whole[:-4])
    for name, answer in {
        "a.safetensors": "does not hold weights",
        "cut.safetensors": "does not hold weights",
        "empty.pth": "does not hold weights",
        "zip.pth": "does not hold weights",
        "none.pth": "No such file",
        "tensor.pth": "does not hold weights but a Tensor",
        "ema.pth": "Averaged weights are taken by ema=True",
    }.items():
        with pytest.raises(RequestError, match=answer):
            read_weights(tmp_path / name)


# -- what stands before the names ---------------------------------------------------------------------------

OTHERS: State = {"criterion.weight": torch.ones(4), "epoch": torch.tensor(3)}
ELSEWHERE: dict[str, Callable[[State], Any]] = {
    "Lightning with a loss": lambda state: {"state_dict": {**prefixed(state, "model."), **OTHERS}},
    "backbone": lambda state: {"state_dict": {**prefixed(state, "backbone."), "neck.weight": torch.ones(2)}},
    "encoder of two": lambda state: {
        **prefixed(state, "encoder_q."),
        **{f"encoder_k.{name}": value[:1] for name, value in list(state.items())[:3]},
    },
    "deep": lambda state: {"a": {"b": {"c": prefixed(state, "module.net.body._orig_mod.")}}, "d": OTHERS},
    "a loss beside bare names": lambda state: {**state, "loss_fn.pos_weight": torch.ones(4)},
    "averaged ones beside": lambda state: {
        "model": state,
        "model_ema": prefixed({name: 2 * value for name, value in state.items()}, "module."),
    },
    "averaged ones in one": lambda state: {
        **prefixed(state, "net."),
        **prefixed({name: 2 * value for name, value in state.items()}, "ema_net.module."),
    },
    "wrapped inside": lambda state: {
        name.replace("stem.", "stem.module.", 1): value for name, value in state.items()
    },
}


@pytest.mark.parametrize("how", ELSEWHERE)
def test_names_fit_once_what_stands_before_them_is_off(how: str, tmp_path: Path) -> None:
    given, taken = small(), small()
    torch.save(ELSEWHERE[how](given.state_dict()), tmp_path / "w.pth")
    load_weights(taken, read_weights(tmp_path / "w.pth"), tmp_path / "w.pth")
    for name, value in given.state_dict().items():
        assert torch.equal(taken.state_dict()[name], value)


def test_what_is_left_out_is_said() -> None:
    state = small().state_dict()
    told = load_weights(small(), {**prefixed(state, "backbone."), **OTHERS}, Path("runs/best.pth"))
    assert told == (
        "the tensors under 'backbone.' of 'best.pth' were loaded; criterion.weight, epoch were left out"
    )
    assert load_weights(small(), prefixed(state, "backbone."), Path("best.pth")) == ""
    two = {f"model / {name}": value for name, value in state.items()}
    two |= {f"model_ema / {name}": 2 * value for name, value in state.items()}
    assert load_weights(small(), two, Path("w.pth")).endswith("; all of 'model_ema' was left out")


def test_a_network_that_holds_the_files_as_its_only_part_takes_its_weights() -> None:
    inner, outer = small(), nn.Module()
    outer.net = small()
    load_weights(outer, prefixed(inner.state_dict(), "backbone."), Path("w.pth"))
    assert torch.equal(outer.net.head.weight, inner.head.weight)


def test_several_networks_in_a_file_are_told_apart_by_part(tmp_path: Path) -> None:
    student, teacher = small(), small()
    both = {
        "flat": {
            **prefixed(student.state_dict(), "student.module."),
            **prefixed(teacher.state_dict(), "teacher.module."),
        },
        "nested": {"student": student.state_dict(), "teacher": prefixed(teacher.state_dict(), "backbone.")},
    }
    for name, content in both.items():
        file = tmp_path / f"{name}.pth"
        torch.save(content, file)
        with pytest.raises(RequestError, match=r"2 times, under 'student.*' and 'teacher.*part='student"):
            load_weights(small(), read_weights(file), file)
        taken = small()
        load_weights(taken, read_weights(file, part="teacher"), file)
        assert torch.equal(taken.head.weight, teacher.head.weight)
        with pytest.raises(RequestError, match="no weights under part='techer'; it holds"):
            read_weights(file, part="techer")
    alike = {**prefixed(student.state_dict(), "a."), **prefixed(student.state_dict(), "b.")}
    load_weights(small(), alike, Path("w.pth"))


def test_a_part_that_does_not_fill_the_network_is_refused() -> None:
    state = small().state_dict()
    trunk = {name: value for name, value in state.items() if not name.startswith("head")}
    said = misfit({**prefixed(trunk, "backbone."), **OTHERS})
    assert "under 'backbone.', of its 9 tensors 7 fit, 2 are missing (head.weight, head.bias)" in said
    deeper = {**prefixed(state, "backbone."), "backbone.stem.3.weight": torch.ones(2)}
    assert "under 'backbone.', all 9 of its tensors fit, and 1 more is there" in misfit(deeper)
    averaged = prefixed(state, "ema_model.")
    assert "no weights of this network but averaged ones ('ema_model.'); ema=True takes them" in misfit(
        averaged
    )


def test_a_checkpoint_that_refers_to_itself_ends(tmp_path: Path) -> None:
    given, taken = small(), small()
    content: dict[str, Any] = {"epoch": 1}
    content["state_dict"], content["model"] = content, {"net": content}
    torch.save(content, tmp_path / "w.pth")
    with pytest.raises(RequestError, match="holds no weights by name; it holds epoch, state_dict, model"):
        read_weights(tmp_path / "w.pth")
    (tmp_path / "none.safetensors").write_bytes(safetensors.torch.save({}))
    with pytest.raises(RequestError, match="holds no weights by name; it holds nothing"):
        read_weights(tmp_path / "none.safetensors")
    content["model"]["weights"] = given.state_dict()
    torch.save(content, tmp_path / "w.pth")
    load_weights(taken, read_weights(tmp_path / "w.pth"), tmp_path / "w.pth")
    assert torch.equal(taken.head.weight, given.head.weight)


@pytest.mark.parametrize(
    ("change", "answer"),
    [
        (lambda value: value.to(torch.complex64), "is complex64, where the network has float32"),
        (
            lambda value: (10 * value).to(torch.int8),
            "is int8, where the network has float32; weights that were",
        ),
        (lambda value: value > 0, "is bool, where the network has float32"),
        (lambda value: value.to("meta"), "has a shape and no values: it is on the meta device"),
        (lambda value: value.to_sparse(), r"is a sparse tensor; save its to_dense\(\)"),
        (
            lambda value: torch.quantize_per_tensor(value, 0.1, 0, torch.qint8),
            r"is quantised \(qint8\); save its dequantize\(\)",
        ),
        (
            lambda value: torch.zeros(value.shape, dtype=torch.uint8).view(torch.float4_e2m1fn_x2),
            "is float4_e2m1fn_x2, with which torch does not compute; keep it in float32",
        ),
        (
            lambda value: torch.zeros(value.shape, dtype=torch.uint8).view(torch.uint4),
            "is uint4, with which torch does not compute; keep it in float32",
        ),
        (lambda value: torch.zeros(value.shape, dtype=torch.bits8), "is bits8, with which torch does not"),
        (
            lambda value: value[:, ::2].to(torch.int8),
            r"of another shape \(head.weight is \[\d+, \d+\] of int8, not .*\); weights that were quantised",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:torch.quantize")
def test_tensors_of_another_kind_are_refused(change: Callable[[Tensor], Tensor], answer: str) -> None:
    net, state = small(), small().state_dict()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    state["head.weight"] = change(state["head.weight"])
    assert "head.weight" in misfit(state, net)
    with pytest.raises(RequestError, match=answer):
        load_weights(net, state, Path("w.pth"))
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())


@pytest.mark.parametrize("kind", [torch.float4_e2m1fn_x2, torch.int4, torch.bits8])
def test_a_network_of_numbers_that_share_a_byte_is_refused(kind: torch.dtype) -> None:
    net, state = small(), small().state_dict()
    packed = torch.zeros(net.head.weight.shape, dtype=torch.uint8).view(kind)
    net.head.weight = nn.Parameter(packed, requires_grad=False)
    with pytest.raises(RequestError, match=r"'head.weight' is \w+ in the network itself, with which torch"):
        load_weights(net, state, Path("w.pth"))
    with pytest.raises(RequestError, match=r"'head.weight' of \w+ is \w+, with which torch does not compute"):
        tensors_of_state(net)


class Odd(nn.Module):
    """A network with statistics, a complex weight, a mask, a counter and an extra state."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(4)
        self.phase = nn.Parameter(torch.ones(4, dtype=torch.complex64))
        self.register_buffer("mask", torch.full((3, 3), -torch.inf).triu(1))
        self.scale = 1.0

    def get_extra_state(self) -> dict[str, float]:
        return {"scale": self.scale}

    def set_extra_state(self, state: dict[str, float]) -> None:
        self.scale = state["scale"]


@pytest.mark.parametrize(
    ("name", "value", "answer"),
    [
        ("phase", torch.full((4,), complex(0, torch.nan)), "'phase' holds values that are not finite"),
        ("phase", torch.full((4,), complex(torch.inf, 0)), "'phase' holds values that are not finite"),
        (
            "norm.weight",
            torch.full((4,), 1e300, dtype=torch.float64),
            "'norm.weight' holds values that are too large for float32",
        ),
        ("mask", torch.full((3, 3), torch.nan), "'mask' holds values that are not finite"),
        ("mask", torch.full((3, 3), -torch.inf), "'mask' holds values that are not finite"),
        ("norm.running_mean", torch.full((4,), torch.nan), "'norm.running_mean' holds values that are not"),
        (
            "norm.running_var",
            torch.tensor([1, 1, -0.5, 1]),
            r"'norm.running_var' holds variances below 0, such as -0\.5",
        ),
        ("_extra_state", {}, r"which refuses them \(KeyError: 'scale'\)"),
        ("_extra_state", None, r"which refuses them \(TypeError: "),
    ],
)
def test_values_that_no_training_leaves_are_named(name: str, value: Any, answer: str, tmp_path: Path) -> None:
    torch.save(Odd().state_dict() | {name: value}, tmp_path / "w.pth")
    with pytest.raises(RequestError, match=answer):
        load_weights(Odd(), read_weights(tmp_path / "w.pth"), tmp_path / "w.pth")


@pytest.mark.parametrize("counter", [torch.tensor(7), torch.tensor([7]), torch.arange(3)])
def test_masks_of_minus_infinity_and_counters_of_another_shape_are_no_fault(counter: Tensor) -> None:
    net, state = Odd(), Odd().state_dict()
    state["norm.running_var"] = torch.tensor([0.0, -0.0, 1.0, 2.0])
    state["norm.num_batches_tracked"] = counter
    load_weights(net, state, Path("w.pth"))
    assert torch.equal(net.norm.running_var, state["norm.running_var"])
    assert net.norm.num_batches_tracked == (7 if counter.numel() == 1 else 0)


@pytest.mark.parametrize("kind", ["F4_E2M1", "F6_E3M2", "I4"])
def test_types_that_safetensors_does_not_know_are_named(kind: str, tmp_path: Path) -> None:
    header = f'{{"w":{{"dtype":"{kind}","shape":[8],"data_offsets":[0,6]}}}}'.encode()
    (tmp_path / "w.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(6))
    with pytest.raises(RequestError, match=rf"of a type that is not read \({kind}\); save them as float32"):
        read_weights(tmp_path / "w.safetensors")


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16, torch.float64, torch.float8_e4m3fn])
def test_floating_numbers_of_any_length_are_taken(kind: torch.dtype, tmp_path: Path) -> None:
    state = {
        name: value.to(kind) if value.is_floating_point() else value
        for name, value in small().state_dict().items()
    }
    torch.save(state, tmp_path / "w.pth")
    net = small()
    load_weights(net, read_weights(tmp_path / "w.pth"), tmp_path / "w.pth")
    assert torch.equal(net.head.weight, state["head.weight"].float())


# -- what is no checkpoint ----------------------------------------------------------------------------------


def cut(content: bytes, share: float = 0.5) -> bytes:
    return content[: int(share * len(content))]


def saved(content: Any, old: bool = False) -> bytes:
    file = io.BytesIO()
    torch.save(content, file, _use_new_zipfile_serialization=not old)
    return file.getvalue()


def zipped(**files: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return file.getvalue()


def in_tar(content: bytes) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        entry = tarfile.TarInfo("w.pth")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    return file.getvalue()


def in_numpy(**arrays: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays) if arrays else np.save(file, np.zeros(3))
    return file.getvalue()


def scripted() -> bytes:
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.save(torch.jit.script(nn.Linear(2, 2)), file)
    return file.getvalue()


LFS = "version https://git-lfs/spec/v1\noid sha256:4d7a2\nsize 102\n"
STATE = {"head.weight": torch.zeros(40, 40)}
NO_CHECKPOINTS: dict[str, tuple[Callable[[], bytes], str]] = {
    "lfs": (LFS.encode, "it is a pointer of Git LFS.*git lfs pull"),
    "annex": (lambda: b"/annex/objects/SHA256E-s12--ab.pth\n", "pointer of git-annex.*git annex get"),
    "empty": (lambda: b"", r"it is empty \(0 bytes\); copy or download it again"),
    "zeros": (lambda: bytes(9000), "begins with only zeros"),
    "html": (lambda: b"\n<!doctype html>\n<html><body>404</body></html>", "it is an HTML page"),
    "xml": (lambda: b"<?xml version='1.0'?><Error>AccessDenied</Error>", "it is XML"),
    "json": (lambda: b'{"error": "Repository is gated"}', r"it is JSON \(Repository is gated\)"),
    "index": (
        lambda: b'{"weight_map": {"a": "model-00001.safetensors"}}',
        "index of weights that lie in sev",
    ),
    "text": (lambda: b"epoch,accuracy\n1,0.5\n", "it is text that begins with 'epoch,accuracy'"),
    "cut zip": (lambda: cut(saved(STATE)), "it is cut short"),
    "cut old": (lambda: cut(saved(STATE, old=True)), "it is cut short or damaged"),
    "cut old at its head": (lambda: saved(STATE, old=True)[:40], "it is cut short or damaged"),
    "a pickle of one byte": (lambda: b"\x80", "it is cut short or damaged"),
    "safetensors cut in their header": (
        lambda: safetensors.torch.save(STATE)[:60],
        "it is cut short or damaged",
    ),
    "cut safetensors": (lambda: cut(safetensors.torch.save(STATE)), "it is cut short or damaged"),
    "script": (scripted, r"TorchScript archive.*torch\.jit\.load\(FILE\)\.state_dict\(\)"),
    "other zip": (lambda: zipped(readme=b"x"), "zip archive of readme, not a checkpoint: unpack it"),
    "keras": (lambda: zipped(**{"model.weights.h5": b"x", "config.json": b"{}"}), "network of Keras"),
    "gzip": (lambda: gzip.compress(saved(STATE)), r"compressed \(gzip\): unpack it with gunzip"),
    "tar": (lambda: in_tar(saved(STATE)), "tar archive: unpack it with tar -xf"),
    "npy": (in_numpy, "it is a NumPy array"),
    "npz": (lambda: in_numpy(a=np.zeros(3)), "archive of NumPy arrays"),
    "h5": (lambda: b"\x89HDF\r\n\x1a\n" + bytes(50), "it is HDF5, in which Keras"),
    "onnx": (lambda: b"\x08\x08\x12\x07pytorch:\x02\x00" + bytes(50), "ONNX network.*onnx:FILE"),
    "tflite": (lambda: b"\x1c\x00\x00\x00TFL3" + bytes(50), "network of TensorFlow Lite"),
    "picture": (lambda: b"\x89PNG\r\n\x1a\n" + bytes(50), "it is a picture"),
    "plain pickle": (lambda: pickle.dumps({"a": 1.0}), "a pickle, but not one that torch.save wrote"),
    "pickle of arrays": (lambda: pickle.dumps({"a": np.zeros(2)}), "holds more than tensors.*numpy"),
    "bytes": (lambda: b"\xff" * 40, "it is neither a checkpoint nor safetensors"),
}


@pytest.mark.parametrize("ending", ["pth", "safetensors"])
@pytest.mark.parametrize("kind", NO_CHECKPOINTS)
def test_what_is_no_checkpoint_is_told_for_what_it_is(kind: str, ending: str, tmp_path: Path) -> None:
    content, answer = NO_CHECKPOINTS[kind]
    file = tmp_path / f"w.{ending}"
    file.write_bytes(content())
    with pytest.raises(RequestError, match=rf"w\.{ending}' does not hold weights: .*{answer}") as error:
        read_weights(file)
    assert "pickle" in kind or "pickle" not in str(error.value)


def test_a_folder_is_no_file_of_weights(tmp_path: Path) -> None:
    (tmp_path / "last.ckpt").touch()
    with pytest.raises(RequestError, match=r"it is a folder: name the file in it; it has last\.ckpt"):
        read_weights(tmp_path)


@pytest.mark.parametrize("old", [True, False])
def test_a_file_is_read_by_its_bytes_whatever_its_name(old: bool, tmp_path: Path) -> None:
    (tmp_path / "checkpoint.safetensors").write_bytes(saved(STATE, old))
    (tmp_path / "safetensors.pth").write_bytes(safetensors.torch.save(STATE))
    for name in ("checkpoint.safetensors", "safetensors.pth"):
        assert torch.equal(read_weights(tmp_path / name)["head.weight"], STATE["head.weight"])
