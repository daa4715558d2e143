"""The files to launch a cluster with: what can be checked of them without one."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

FILES = Path(__file__).parents[1] / "examples" / "cluster"


def read_yaml(name):
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load((FILES / name).read_text("utf-8"))


@pytest.mark.parametrize("name", ["aws.yaml", "ssh.yaml"])
def test_ray_up_takes_the_file(name):
    ray, jsonschema = pytest.importorskip("ray"), pytest.importorskip("jsonschema")
    schema = Path(ray.__file__).with_name("autoscaler") / "ray-schema.json"
    jsonschema.validate(read_yaml(name), json.loads(schema.read_text("utf-8")))


def test_ray_up_refuses_a_file_with_a_word_that_it_does_not_know():
    ray, jsonschema = pytest.importorskip("ray"), pytest.importorskip("jsonschema")
    schema = Path(ray.__file__).with_name("autoscaler") / "ray-schema.json"
    with pytest.raises(jsonschema.ValidationError, match="min_worker"):
        jsonschema.validate(
            read_yaml("ssh.yaml") | {"min_worker": 3}, json.loads(schema.read_text("utf-8"))
        )


def test_slurm_reads_the_script():
    text = (FILES / "slurm.sh").read_text("utf-8")
    assert subprocess.run(["bash", "-n"], input=text, text=True).returncode == 0
    directives = re.findall(r"^#SBATCH --([a-z-]+)=\S+$", text, re.MULTILINE)
    assert {"nodes", "ntasks-per-node", "cpus-per-task", "time"} <= set(directives)
    assert directives == re.findall(r"^#SBATCH --([a-z-]+)", text, re.MULTILINE)


def test_the_job_for_kubernetes_names_the_version_of_ray_that_is_installed():
    ray = pytest.importorskip("ray")
    job = read_yaml("kuberay.yaml")
    cluster = job["spec"]["rayClusterSpec"]
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    assert cluster["rayVersion"] == ray.__version__
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        (container,) = group["template"]["spec"]["containers"]
        assert (
            container["volumeMounts"][0]["name"] == group["template"]["spec"]["volumes"][0]["name"]
        )


@pytest.mark.parametrize("name", ["aws.yaml", "kuberay.yaml", "slurm.sh"])
def test_the_command_that_is_launched_is_understood(name):
    """Every word of it; a value that is wrong would show as early."""
    from pixelpong.faces.cli import main

    text = (FILES / name).read_text("utf-8").replace("\\\n", " ")
    (words,) = re.findall(r"pixelpong (sweep --seeds [^'\n]*)", text)
    with pytest.raises(SystemExit) as ended:
        main([*words.split(), "--help"])
    assert ended.value.code == 0
