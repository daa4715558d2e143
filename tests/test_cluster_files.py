"""The files to launch a cluster with: what can be checked of them without one."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

FILES = Path(__file__).parents[1] / "examples" / "cluster"


def test_ray_up_takes_the_files_and_refuses_a_word_that_it_does_not_know():
    yaml, ray, jsonschema = map(pytest.importorskip, ("yaml", "ray", "jsonschema"))
    schema = Path(ray.__file__).with_name("autoscaler") / "ray-schema.json"
    check = jsonschema.Draft7Validator(json.loads(schema.read_text("utf-8"))).validate
    for name in ("aws.yaml", "ssh.yaml"):
        file = yaml.safe_load((FILES / name).read_text("utf-8"))
        check(file)
        with pytest.raises(jsonschema.ValidationError, match="min_worker"):
            check(file | {"min_worker": 3})


def test_slurm_reads_the_script():
    text = (FILES / "slurm.sh").read_text("utf-8")
    assert subprocess.run(["bash", "-n"], input=text, text=True).returncode == 0
    directives = re.findall(r"^#SBATCH --([a-z-]+)=\S+$", text, re.MULTILINE)
    assert {"nodes", "ntasks-per-node", "cpus-per-task", "time"} <= set(directives)


def test_the_job_for_kubernetes_names_the_version_of_ray_that_is_installed():
    yaml, ray = pytest.importorskip("yaml"), pytest.importorskip("ray")
    job = yaml.safe_load((FILES / "kuberay.yaml").read_text("utf-8"))
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    assert job["spec"]["rayClusterSpec"]["rayVersion"] == ray.__version__
