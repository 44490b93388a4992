"""Raw results as files, and the figures that are made of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from scaling_samples import SMALL, WHOLE, sample, seconds, series, whole_seconds

from ftnumpy.errors import UsageError
from ftnumpy.scaling import decay, findings
from ftnumpy.scaling.series import CONTROL, PROCESSES, load, save


def test_a_series_comes_back_from_its_file(tmp_path: Path) -> None:
    kept = series(SMALL, seconds)
    save(kept, tmp_path / "small.json")
    assert load(tmp_path / "small.json") == kept
    assert [path.name for path in tmp_path.iterdir()] == ["small.json"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 1}', '{"format": 1, "launches": [{}]}', '{"format": 0}'])
def test_another_file_is_refused_with_what_to_do(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(UsageError, match=r"x\.json .*remove it"):
        load(tmp_path / "x.json")


def test_decay_is_what_each_worker_loses_and_the_control_is_taken_off() -> None:
    (found,) = decay.by_workload([series(SMALL, seconds)], "stock")
    assert (found.name, found.task, found.rounds) == ("small", "operators", 4)
    decays = {mode: found.at(mode, 2).decay.median for mode in ("stock", "patched", PROCESSES, CONTROL)}
    assert decays == pytest.approx({"stock": 0.6, "patched": 0.2, PROCESSES: 0.2, CONTROL: 0.2})
    assert found.at("stock", 2).relative.median == pytest.approx(0.5)
    assert found.at("patched", 2).relative.median == pytest.approx(0)
    assert found.at("stock", 1).decay.median == 0


def test_the_machine_growing_slower_between_launches_changes_nothing() -> None:
    # Each launch of the sample is twice as slow as the one before.
    (found,) = decay.by_workload([series(SMALL, seconds, launches=5)], "stock")
    at = found.at("stock", 2)
    assert at.decay.low == at.decay.high == 0.6
    assert at.throughput.low != at.throughput.high


def test_gain_and_speedup_count_from_the_first_variant() -> None:
    (found,) = decay.by_workload([series(SMALL, seconds)], "stock")
    assert found.at("patched", 1).gain.median == pytest.approx(2)
    assert found.at("patched", 2).gain.median == pytest.approx(2 * 0.8 / 0.4)
    assert found.at("stock", 2).speedup.median == pytest.approx(0.8)
    assert found.at("patched", 2).speedup.median == pytest.approx(3.2)


def test_the_last_worker_to_end_counts() -> None:
    kept = series(SMALL, seconds, launches=1, rounds=1)
    (launch,) = kept.launches
    (two,) = [one for one in launch.samples if (one.mode, one.workers) == ("patched", 2)]
    late = replace(two, seconds=(0.1, 4.0))
    assert late.wall == 4.0 and late.throughput == 200 / 2 / 4.0


def test_a_class_is_the_geometric_mean_of_its_workloads_round_by_round() -> None:
    other = replace(SMALL, name="other")
    fourfold = series(other, lambda mode, workers: seconds(mode, workers) * (4 if mode == "stock" else 1))
    (found,) = decay.by_class([series(SMALL, seconds), fourfold], "stock")
    assert (found.name, found.rounds) == ("operators", 4)
    assert found.at("patched", 1).gain.median == pytest.approx(4), "the mean of 2 and 8"
    assert found.at("stock", 2).decay.median == pytest.approx(0.6)


def test_a_whole_programs_time_is_the_sum_of_its_parts() -> None:
    # Four parts of 100 units: two launches of two rounds, the second launch twice as slow.
    times = {(time.mode, time.workers): time for time in decay.whole(series(WHOLE, whole_seconds), 400)}
    assert times["stock", 1].seconds == pytest.approx(1 + 1 + 2 + 2)
    assert times["stock", 2].seconds == pytest.approx(6.0 * 2.5 / 2)
    assert times["patched", 2].seconds == pytest.approx(6.0 * 0.5 * 1.25 / 2)
    assert {(time.units, time.total) for time in times.values()} == {(400, 400)}
    assert CONTROL not in {mode for mode, _ in times}


def test_a_part_of_a_program_says_so() -> None:
    (half, *_) = decay.whole(series(WHOLE, whole_seconds, launches=1), 400)
    assert (half.units, half.total) == (200, 400)


def test_a_part_that_was_done_twice_counts_once() -> None:
    once = series(WHOLE, whole_seconds, launches=2)
    twice = replace(once, launches=once.launches * 2)
    assert decay.whole(twice, 400) == decay.whole(once, 400)


def test_findings_say_all_as_json() -> None:
    found = sample()
    assert (found.before, found.after, found.most, found.rounds, found.launches) == ("stock", "patched", 2, 4, 2)
    assert (found.begun, found.ended, found.load) == ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", 0.5)
    data = json.loads(findings.as_json(found))
    assert data["format"] == findings.FORMAT
    assert [one["name"] for one in data["classes"]] == ["operators", "ufunc-chain"]
    assert data["programs"][0]["times"][0]["units"] == 400
