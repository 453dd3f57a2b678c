"""Weights that are downloaded: one short try for a host, none for what is here, and no waiting."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import safetensors.torch
import timm
import torch
from huggingface_hub import constants
from torchvision import models

from penultimate.errors import RequestError
from penultimate.networks import downloads
from penultimate.networks.architectures import download
from penultimate.networks.sources import read_source


@pytest.fixture
def closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a hub at a port at which nobody listens, in an empty home and without proxies."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setattr(constants, "ENDPOINT", address)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
        monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path / "torch"))
        downloads._refused.cache_clear()
        yield address
    downloads._refused.cache_clear()


@pytest.mark.parametrize("name", ["test_vit", "resnet18.a1_in1k", "hf-hub:owner/name"])
def test_a_hub_that_cannot_be_reached_is_said_at_once(closed: str, name: str) -> None:
    began = time.monotonic()
    port = closed.rpartition(":")[2]
    with pytest.raises(RequestError) as error:
        download(read_source(f"timm:{name}"))
    assert f"the weights of timm:{name} cannot be downloaded: 127.0.0.1, port {port}, cannot be" in str(
        error.value
    )
    assert f"timm:{name}(weights='FILE'), or pretrained=False" in str(error.value)
    assert time.monotonic() - began < downloads.PATIENCE


def test_a_host_is_tried_once_in_a_process(closed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def connect(address: tuple[str, int], timeout: float) -> socket.socket:
        tried.append(address)
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", connect)
    for name in ("test_vit", "test_resnet", "test_efficientnet"):
        with pytest.raises(RequestError, match=r"cannot be reached \(no answer in 4 seconds\)"):
            download(read_source(f"timm:{name}"))
    assert len(tried) == 1


def test_a_host_that_keeps_silent_is_not_waited_for(closed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "PATIENCE", 0.1)

    def connect(*_: object) -> socket.socket:
        time.sleep(0.5)
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", connect)
    began = time.monotonic()
    assert "no answer" in downloads.unreachable("http://a.invalid")
    assert time.monotonic() - began < 0.4


def test_weights_of_torchvision_are_tried_at_their_own_host(
    closed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = models.ResNet18_Weights.DEFAULT
    monkeypatch.setattr(type(weights), "url", property(lambda self: f"{closed}/resnet18-0.pth"))
    for source in ("torchvision:resnet18", "torchvision:resnet18(weights='IMAGENET1K_V1')"):
        with pytest.raises(RequestError, match=r"of torchvision:resnet18 cannot be downloaded: 127\.0\.0\.1"):
            download(read_source(source))


def test_what_is_here_is_loaded_without_a_network(
    closed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "unreachable", lambda url: pytest.fail("no host is to be tried"))
    known = timm.models.get_pretrained_cfg("test_resnet")
    assert known is not None
    folder = tmp_path / "hub" / f"models--{known.hf_hub_id.replace('/', '--')}"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs/main").write_text("a" * 40)
    (folder / "snapshots" / ("a" * 40)).mkdir(parents=True)
    state = timm.create_model("test_resnet").state_dict()
    safetensors.torch.save_file(state, folder / "snapshots" / ("a" * 40) / "model.safetensors")
    began = time.monotonic()
    found = download(read_source("timm:test_resnet")).state_dict()
    assert all(torch.equal(found[name], value) for name, value in state.items())
    assert time.monotonic() - began < 2
    assert constants.HF_HUB_OFFLINE is False
    net = models.resnet18()
    (tmp_path / "torch/checkpoints").mkdir(parents=True)
    torch.save(net.state_dict(), tmp_path / "torch/checkpoints/resnet18-f37072fd.pth")
    assert torch.equal(download(read_source("torchvision:resnet18")).fc.weight, net.fc.weight)


def test_offline_by_wish_nothing_is_tried(closed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "unreachable", lambda url: pytest.fail("no host is to be tried"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(RequestError, match="the weights of timm:test_vit cannot be downloaded"):
        download(read_source("timm:test_vit"))


def test_a_proxy_is_tried_in_place_of_the_host(closed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", closed)
    said = downloads.unreachable("https://weights.invalid/w.pth")
    assert said.startswith("127.0.0.1, port ")
    assert "(the proxy for weights.invalid), cannot be reached" in said
    monkeypatch.setenv("no_proxy", "localhost")
    with socket.create_server(("127.0.0.1", 0)) as open_port:
        monkeypatch.setenv("https_proxy", f"127.0.0.1:{open_port.getsockname()[1]}")
        assert downloads.unreachable("https://weights.invalid/w.pth") == ""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("http_proxy", "http://proxy.invalid:1")
    assert "the proxy" not in downloads.unreachable(closed)


def test_a_network_that_there_is_not_is_no_question_of_hosts(closed: str) -> None:
    for source, answer in {
        "timm:resnet181": "timm has no network 'resnet181'",
        "torchvision:resnet181": "torchvision has no network 'resnet181'",
        "torchvision:resnet18(weights='IMAGENET1K_V9')": "torchvision has no weights 'IMAGENET1K_V9'",
    }.items():
        with pytest.raises(RequestError, match=answer):
            download(read_source(source))
