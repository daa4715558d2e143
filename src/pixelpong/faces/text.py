"""Reports as a few lines of text, made from the same dictionaries as ``--json`` prints."""

from __future__ import annotations

import statistics
from typing import Any

from pixelpong.faces.display import duration, signed

Report = dict[str, Any]


def describe_outcome(report: Report) -> str:
    """How a training ended."""
    words = {"interrupted": "interrupted", "until_return": "won"}
    reason = words.get(report["reason"], f"budget of {report['reason']} spent")
    more = "" if report["reason"] == "interrupted" else f" --updates {2 * report['update']}"
    verdict = report["verdict"]
    return ("" if verdict is None else describe_verdict(verdict) + "\n") + (
        f"{reason}: update {report['update']}, {report['episodes']:,} episodes, "
        f"{report['steps']:,} steps in {duration(report['wall_seconds'])}, "
        f"mean of the last 100 returns {signed(report['mean_return_100'])}\n"
        f"params {report['params_sha256']}\n"
        f"saved in {report['run']}; go on with: pixelpong resume {report['run']}{more}"
    )


def describe_verdict(verdict: Report) -> str:
    """Whether the target return is reached, and after how long."""
    ways = [name for name in ("greedy", "sampled") if verdict[name]]
    lines = [describe_returns(name, verdict[name]) for name in ways]
    if verdict["is_won"]:
        lines.append(
            f"it wins: {signed(verdict['target'], 1)} reached at update {verdict['update']}, after "
            f"{verdict['steps']:,} steps and {duration(verdict['seconds'])}, evaluations in it"
        )
    else:
        lines.append(f"it does not win yet: the target is {signed(verdict['target'], 1)}")
    return "\n".join(lines)


def describe_returns(name: str, evaluation: Report) -> str:
    """One way of play: how well, and how sure that is."""
    low, high = evaluation["ci95"]
    return (
        f"{name:8} mean return {signed(evaluation['mean_return'])}  "
        f"95 % interval {signed(low)} to {signed(high)}  deviation {evaluation['std']:.2f}  "
        f"({len(evaluation['returns'])} episodes)"
    )


def describe_evaluation(report: Report) -> str:
    """Greedy and sampled play, a line each."""
    lines = [
        f"{report['run']}, update {report['update']}, on {report['environment']}, "
        f"seed {report['seed']}",
        *(describe_returns(way, report[way]) for way in ("greedy", "sampled")),
    ]
    if report["sticky"] == 0 and report["frame_skip"][0] == report["frame_skip"][1]:
        lines.append("this protocol draws nothing: all greedy episodes are one and the same")
    return "\n".join(lines)


def describe_run(report: Report) -> str:
    """What a run has reached."""
    rows = {
        "run": report["run"],
        "update": report["update"],
        "episodes": f"{report['episodes']:,}",
        "steps": f"{report['steps']:,}",
        "mean of the last 100 returns": signed(report["mean_return_100"]),
        "running mean": signed(report["running_mean"]),
        "training time": duration(report["wall_seconds"]),
        "params": report["params_sha256"],
        "optimizer": report["optimizer_sha256"],
        "engine": report["engine"],
        "emulator": report["emulator"] or "none: a toy",
        "checkpoints": ", ".join(map(str, report["checkpoints"])),
        "machine": ", ".join(map(str, report["machine"].values())),
        "versions": _listed(report["versions"]),
        "configuration": _listed(report["config"]),
    }
    width = max(map(len, rows))
    return "\n".join(f"{name:{width}}  {value}" for name, value in rows.items())


def _listed(values: Report) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items() if value is not None)


def describe_throughput(report: Report) -> str:
    """A row a measurement: steps a second, ratio to bare ALE, and its spread."""
    lines = [f"{report['workers']} workers, medians of {report['rounds']} rounds"]
    for name, rate in report["steps_per_second"].items():
        line = f"{name:11} {rate:8,.0f} steps/s"
        if name in report["ratios"]:
            low, high = report["spread"][name]
            line += f"   {report['ratios'][name]:.3f} of bare ALE ({low:.3f} to {high:.3f})"
        lines.append(line)
    for mode, values in report.get("ray_over_threads", {}).items():
        low, middle, high = min(values), statistics.median(values), max(values)
        lines.append(f"{mode:11} {middle:.3f} of the threads on Ray ({low:.3f} to {high:.3f})")
    return "\n".join(lines)


def describe_solved_seed(result: Report) -> str:
    """One seed of ``bench solve``."""
    word = "won" if result["is_won"] else "not won"
    greedy = f", greedy {signed(result['greedy']['mean_return'])}" if result["greedy"] else ""
    return (
        f"seed {result['seed']}: {word} after {result['steps']:,} steps, {result['seconds']:.0f} s "
        f"({result['ale_bound_seconds']:.0f} s ALE-bound){greedy}, at most "
        f"{result['peak_memory_mb']:.0f} MB"
    )


_UNITS = {"seconds": "s", "steps": "steps", "ale_bound_seconds": "s ALE-bound"}


def describe_solve(report: Report) -> str:
    """Every seed, and the medians of those that won."""
    lines = [describe_solved_seed(result) for result in report["seeds"]]
    summary = report["summary"]
    lines.append(f"{summary['won']} of {summary['seeds']} won")
    if summary["won"]:
        for name, unit in _UNITS.items():
            low, high = summary[name]["ci95"]
            median = summary[name]["median"]
            lines.append(f"median {median:,.0f} {unit} ({low:,.0f} to {high:,.0f})")
        within = summary["within_twice_the_median"]
        lines.append(f"{within} within twice the median time of those that won")
    for peer in report.get("peers", []):
        limit = f"not within {peer['minutes_limit']:g} minutes"
        when = f"after {peer['seconds']:.0f} s" if peer["is_won"] else limit
        lines.append(
            f"{peer['name']}: {when}, {peer['steps']:,} steps at "
            f"{peer['steps_per_second']:,.0f} steps/s, "
            f"mean return {signed(peer['mean_return_100'])}"
        )
    return "\n".join(lines)


def describe_forecast(report: Report) -> str:
    """How long it takes to win on this machine."""
    rates = report["steps_per_second"]
    pace = (
        f"{report['workers']} workers: {rates['fast']:,.0f} steps/s of training, ALE alone "
        f"{rates['ale']:,.0f}\n"
    )
    if not report["recorded_steps"]:
        return pace + "no recorded seed has won, so nobody can say how long it takes"
    low, high = report["range"]
    return pace + (
        f"time to win, if it wins: {duration(report['seconds'])}, from {duration(low)} to "
        f"{duration(high)}, at the steps of the recorded seeds that won "
        f"({len(report['recorded_steps'])}); see benchmarks/ for those that did not"
    )
