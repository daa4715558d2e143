"""What the pages say of the games that are learned, from the records of `any_game.py`."""

from __future__ import annotations

import json
import re
import sys
from xml.etree import ElementTree

from shown import DOCS, ROOT

from pixelpong.atari.machine import cartridges

sys.path += [str(DOCS / "_ext")]
import generated


def test_the_table_of_what_is_learned_has_all_games_and_the_median_seed(tmp_path, monkeypatch):
    monkeypatch.setattr(generated, "BENCHMARKS", tmp_path)
    first = generated.describe_learned().splitlines()[2]
    assert first == "| `adventure` | – | – | – | not measured | – | – | – |"
    row = {"game": "breakout", "seconds": 15.4}
    rows = [row | {"score": it, "ci95": [it - 3, it + 3]} for it in (46.0, 40.2, 1234.5)]
    record = {"rows": rows, "stopped": {"et": "it needs time"}}
    (tmp_path / "any_game_2m.json").write_text(json.dumps(record))
    (tmp_path / "any_game.json").write_text(json.dumps({"rows": [rows[1], rows[1]]}))
    lines = {line.split("`")[1]: line for line in generated.describe_learned().splitlines()[2:]}
    assert lines.keys() == set(cartridges.scored_names()) - {"pong"}
    shown = "| 1.7 | 30.5 | 40.2 | 46.0 | 43.0 to 49.0 | 154 % | 15 |"
    assert lines["breakout"] == f"| `breakout` {shown}"
    assert "| it needs time |" in lines["et"]


def test_the_table_beside_deep_networks_has_the_last_mean_before_each_number_of_steps(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(generated, "BENCHMARKS", tmp_path)
    curve = {"steps": [250_000, 499_712, 503_808, 2_000_000], "score": [1.0, 2.5, 9.0, 40.0]}
    rows = [{"game": name, "score": 0.0, "curve": curve} for name in ("breakout", "tetris")]
    (tmp_path / "any_game_2m.json").write_text(json.dumps({"rows": rows}))
    words, _, _, _, *lines = generated.describe_beside().splitlines()
    assert words == (
        "Of 1 game, one number for each column: above DQN in 0, 1, 1; above Rainbow in 0, 0, 1; "
        "above IQN in 0, 0, 0."
    )
    cells = "2.5 · 3.1 · 4.5 · 16.3 | 9.0 · 6.7 · 15.6 · 31.6 | 40.0 · 16.3 · 32.4 · 71.6"
    assert lines == [f"| `breakout` | {cells} |"]


def test_the_table_of_seeds_has_each_length_of_each_game_with_the_median_seed(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(generated, "BENCHMARKS", tmp_path)
    row = {"game": "breakout", "steps": 503_808, "seed": 0, "score": 40.0, "best": 90.0}
    again = [row | {"seed": k, "score": s, "best": 1234.0} for k, s in ((2, 3000.0), (1, 44.0))]
    longer = row | {"steps": 5_001_216}
    for name, rows in {
        "any_game": [row, row | {"game": "tetris"}],  # tetris has no other seed
        "any_game_2m": [row | {"steps": 2_002_944}],
        "any_game_seeds": again,
        "any_game_breakout_5m": [longer],
    }.items():
        (tmp_path / f"{name}.json").write_text(json.dumps({"rows": rows}))
    assert generated.describe_seeds().splitlines()[2:] == [
        "| `breakout` | 0.5 M | 0, 1, 2 | 40.0 · 44.0 · 3,000 | 44.0 | 1,234 |",
        "| `breakout` | 5.0 M | 0 | 40.0 | 40.0 | 90 |",
    ]


def test_the_curves_are_those_of_the_record_and_lines_are_where_scores_are(tmp_path, monkeypatch):
    monkeypatch.setattr(generated, "BENCHMARKS", tmp_path)
    assert generated.describe_curves() == ""
    curve = {"steps": [100, 200, 400], "score": [1.7, 11.7, 21.7]}
    row = {"steps": 400, "score": 31.0, "error": 1.0, "curve": curve}
    rows = [row | {"game": name} for name in ("tetris", "breakout", "seaquest")]
    rows[0]["random"] = {"score": 26.0, "error": 1.3}  # 5.0 above it are 3.05 standard errors
    rows[2]["score"] = 71.0  # random play has 68.4, which is 2.6 standard errors below
    (tmp_path / "any_game_2m.json").write_text(json.dumps({"rows": rows}))
    words, _, _, *drawn, _ = generated.describe_curves().splitlines()
    assert words == (
        "Of 3 games, 2 end above random play by three standard errors. Of 2 with a known score of "
        "a person, 1 end above it; the median human-normalised score is 51 %."
    )
    picture = ElementTree.fromstring("".join(drawn))
    breakout, seaquest, tetris = picture.findall("g")
    assert [panel.find("text").text for panel in (breakout, seaquest, tetris)] == [
        "breakout", "seaquest", "tetris",
    ]  # fmt: skip
    # From random play, 1.7, at the bottom, to a person, 30.5, at the top: 46 units for 28.8 points.
    assert breakout.find("polyline").get("points") == "30.0,64.0 56.0,48.0 108.0,32.1"
    assert [line.get("d") for line in breakout.findall("path")] == ["M4 64.0H108", "M4 18.0H108"]
    assert len(seaquest.findall("path")) == 1, "a person would flatten the curve"
    assert tetris.findall("path") == []
    nothing = row | {"game": "tetris", "curve": {"steps": [], "score": []}}
    assert 'points=""' in generated.draw_curves([nothing]), "no game has ended in the training"
    assert {panel.get("transform") for panel in (breakout, seaquest, tetris)} == {
        "translate(0 0)", "translate(116 0)", "translate(232 0)",
    }  # fmt: skip


def test_the_readmes_say_in_how_many_games_something_is_learned():
    total, learned, known, passed, _ = re.findall(
        r"\d+", generated.describe_curves().split("\n")[0]
    )
    for path, (learns, passes) in {
        "README.md": (
            f"{learned} of {total} games end above random play",
            f"and {passed} of {known} above a human",
        ),
        "docs/zh/README.md": (
            f"{total} 个游戏里有 {learned} 个高于随机玩",
            f"{known} 个里有 {passed} 个高于人类",
        ),
    }.items():
        text = (ROOT / path).read_text("utf-8")
        assert learns in text, path
        assert passes in text, path
