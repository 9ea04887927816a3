"""The examples of service/deploy: their options, probes and ports are those of the program."""

import re
import shutil
import subprocess
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from helpers import ROOT

yaml = pytest.importorskip("yaml")

DEPLOY = ROOT / "service" / "deploy"
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")


def commands() -> dict[str, str]:
    """Each example's command line."""
    unit = (DEPLOY / "fastdx-serve.service").read_text().replace("\\\n", " ")
    lines = re.findall(r"^ExecStart(?:Pre)?=(.*)$", unit, re.MULTILINE)
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return {
        "systemd": " ".join(lines),
        "compose": " ".join(compose["services"]["fastdx"]["command"]),
        "kubernetes": " ".join(container()["args"]),
    }


def container() -> dict[str, Any]:
    documents = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))
    assert [d["kind"] for d in documents] == ["Deployment", "Service", "NetworkPolicy"]
    found: dict[str, Any] = documents[0]["spec"]["template"]["spec"]["containers"][0]
    return found


@pytest.mark.parametrize("name", ["systemd", "compose", "kubernetes"])
def test_options(program: Path, name: str) -> None:
    said = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    known, used = set(OPTION.findall(said)), OPTION.findall(commands()[name])
    assert {"--config", "--keys", "--listen"} <= set(used) <= known
    assert ("--ledger" in used) == ("--budget" in used)


def test_the_cluster(start: Callable[..., str]) -> None:
    """Probes ask for paths that are there, on the port that the program listens on."""
    one = container()
    (port,) = one["ports"]
    assert f":{port['containerPort']} " in commands()["kubernetes"] + " "
    address = start("--epsilon", "1")
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        asked = one[probe]["httpGet"]
        assert (asked["port"], asked["scheme"]) == (port["name"], "HTTPS")
        with urllib.request.urlopen(f"http://{address}{asked['path']}") as answer:
            assert answer.status == 200
    mounts = [mount["mountPath"] for mount in one["volumeMounts"]]
    for path in re.findall(r"=(/\S+)", commands()["kubernetes"]):
        assert any(path.startswith(mount + "/") for mount in mounts), path


def test_compose_mounts() -> None:
    service = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["fastdx"]
    mounts = [volume.split(":")[1] for volume in service["volumes"]]
    for path in re.findall(r"=(/\S+)", commands()["compose"]):
        assert any(path == mount or path.startswith(mount + "/") for mount in mounts), path
    port = service["ports"][0].rsplit(":", 1)[1]
    assert f"0.0.0.0:{port}" in commands()["compose"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd")
def test_the_unit(tmp_path: Path) -> None:
    # The program stands where a test cannot put it.
    text = (DEPLOY / "fastdx-serve.service").read_text()
    unit = tmp_path / "fastdx-serve.service"
    unit.write_text(text.replace("/usr/local/bin/fastdx-serve", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", unit], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0 and "Unknown" not in done.stderr, done.stderr
    # The test can tell.
    unit.write_text(unit.read_text().replace("DynamicUser=", "DynamicUsr="))
    done = subprocess.run(
        ["systemd-analyze", "verify", unit], check=False, capture_output=True, text=True
    )
    assert "DynamicUsr" in done.stderr
