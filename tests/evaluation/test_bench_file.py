"""Bench files: what they stand for, how settings follow the noise, and how mistakes in them are answered."""

from pathlib import Path

import pytest

from laplaceconfidence.evaluation.bench_file import (
    Bench,
    bench_names,
    is_bench_file,
    load_bench,
    read_bench_file,
)
from laplaceconfidence.evaluation.noises import Noise
from laplaceconfidence.exceptions import DataFormatError, InvalidInputError

DATA = """
[[data]]
source = "digits"
noises = ["symmetric:0.20", "asymmetric:0.4"]
"""


def load(folder: Path, text: str, **sources: str) -> Bench:
    path = folder / "table.toml"
    path.write_text(text)
    return load_bench(str(path), sources).bench()


def names(bench: Bench) -> list[str]:
    return [contender.name for contender in bench.contenders]


def test_a_list_is_a_sweep_and_several_are_combined(tmp_path: Path) -> None:
    bench = load(
        tmp_path,
        DATA
        + "[[contender]]\nname = 'LC'\nestimator = 'laplace'\nn_neighbors = [2, 10]\nalpha = [0.5, 0.99]\n",
    )
    assert names(bench) == [
        f"LC, n_neighbors={k}, alpha={alpha}" for k in (2, 10) for alpha in ("0.5", "0.99")
    ]
    last = bench.contenders[-1]
    assert last.settings == last.swept == {"n_neighbors": 10, "alpha": 0.99}
    assert {one.group for one in bench.contenders} == {"LC"}
    assert bench.seeds == (0, 1, 2)
    assert bench.data[0].noises == ("symmetric:0.2", "asymmetric:0.4")


def test_several_estimators_in_one_entry_and_all_of_them(tmp_path: Path) -> None:
    from laplaceconfidence.confidence.registry import ESTIMATORS

    two = load(tmp_path, DATA + "[[contender]]\nestimator = ['laplace', 'knn-vote']\nn_neighbors = 7\n")
    assert [(one.name, one.settings) for one in two.contenders] == [
        ("laplace", {"n_neighbors": 7}),
        ("knn-vote", {"n_neighbors": 7}),
    ]
    assert names(load(tmp_path, DATA + "[[contender]]\nestimator = 'all'\n")) == list(ESTIMATORS)


def test_a_contender_may_have_other_settings_under_another_noise(tmp_path: Path) -> None:
    entry = "[[contender]]\nname = 'LC'\nestimator = 'laplace'\nn_neighbors = {}\nnoises = ['{}']\n"
    bench = load(tmp_path, DATA + entry.format(50, "symmetric:0.2") + entry.format(2, "asymmetric:0.4"))
    first, second = bench.contenders
    assert first.is_measured("digits", "symmetric:0.2")
    assert not first.is_measured("digits", "asymmetric:0.4")
    assert second.settings == {"n_neighbors": 2}
    with pytest.raises(InvalidInputError, match="different from that of another contender"):
        load(tmp_path, DATA + 2 * entry.format(50, "symmetric:0.2"))


def test_settings_are_given_to_methods_by_name_and_to_all_that_have_them(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    text = "[settings.all]\nwarmup = 3\n[settings.dividemix]\nwarmup = 4\nramp = 5\n" + DATA
    text += "[[contender]]\nmethod = ['cross_entropy', 'dividemix', 'laplace']\n"
    text += "[[contender]]\nname = 'own'\nmethod = 'laplace'\nwarmup = 9\n"
    assert [one.settings for one in load(tmp_path, text).contenders] == [
        {},
        {"warmup": 4, "ramp": 5},
        {"warmup": 3},
        {"warmup": 9},
    ]
    for wrong, said in (
        ("[settings.divide_mix]\nramp = 1\n", "Did you mean 'dividemix'"),
        ("[settings.laplace]\nramp = 1\n", "a setting of 'laplace'"),
        ("[settings.all]\nwarm_up = 1\n", "Did you mean 'warmup'"),
    ):
        with pytest.raises(InvalidInputError, match=said):
            load(tmp_path, wrong + DATA + "[[contender]]\nmethod = 'laplace'\n")


def test_sources_come_from_the_file_or_the_command(tmp_path: Path) -> None:
    text = """
        [[data]]
        name = "Photographs"
        [[data.test]]
        name = "own"
        split = "test"
        [[data.test]]
        name = "other"
        [[contender]]
        estimator = "laplace"
        """
    with pytest.raises(InvalidInputError, match="--data 'Photographs=PATH'"):
        load(tmp_path, text)
    with pytest.raises(InvalidInputError, match="--data 'other=PATH'"):
        load(tmp_path, text, Photographs="a")
    with pytest.raises(InvalidInputError, match="Did you mean 'Photographs'"):
        load(tmp_path, text, Photograph="a")
    (table,) = load(tmp_path, text, Photographs="a", other="b").data
    assert table.source == "a"
    assert [(test.name, test.source) for test in table.test] == [("own", "a"), ("other", "b")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "must state 'data'"),
        (DATA, "must state 'contender'"),
        (DATA + "[[contender]]\nname = 'x'\n", "either 'method' or 'estimator'"),
        (DATA + "[[contender]]\nestimator = 'knn-votes'\n", "Did you mean 'knn-vote'"),
        (DATA + "[[contender]]\nestimator = 'knn-vote'\nn_neighbours = 3\n", "Did you mean 'n_neighbors'"),
        (DATA + "[[contender]]\nestimator = 'laplace'\nalpha = []\n", "one or more"),
        (DATA + "[[contender]]\nestimator = 'laplace'\nrandom_state = 1\n", "seeds of the bench"),
        (DATA + "[[contender]]\nname = 'x'\nestimator = 'all'\n", "left out where one entry states several"),
        (DATA + "[[contender]]\nestimator = 'laplace'\ndata = ['digit']\n", "Did you mean 'digits'"),
        (DATA + "[[contender]]\nestimator = 'laplace'\nnoises = ['pair:0.1']\n", "one of the noises"),
        (DATA + DATA + "[[contender]]\nestimator = 'laplace'\n", "different for every data set"),
        ("seed = 3\n" + DATA + "[[contender]]\nestimator = 'laplace'\n", "Did you mean 'seeds'"),
        ("seeds = 0\n" + DATA + "[[contender]]\nestimator = 'laplace'\n", "'seeds' cannot be 0"),
        (DATA.replace("0.4", "4") + "[[contender]]\nestimator = 'laplace'\n", "asymmetric:4"),
        (DATA.replace("noises", "noise") + "[[contender]]\nestimator = 'laplace'\n", "no key 'data.noise'"),
    ],
)
def test_mistakes_in_a_file_are_answered(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InvalidInputError) as error:
        load(tmp_path, text)
    assert said in str(error.value)


def test_what_is_no_bench_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataFormatError, match="not TOML"):
        load(tmp_path, "seeds = ")
    with pytest.raises(InvalidInputError, match="existing TOML file"):
        load_bench(str(tmp_path / "no.toml"))
    with pytest.raises(InvalidInputError, match="Did you mean 'small-figure-k'"):
        load_bench("small-figur-k")
    assert is_bench_file("small-figure-k")
    assert not is_bench_file("digits")


def test_the_folder_of_an_earlier_run_does_not_hide_a_bench_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("small-figure-k").mkdir()
    assert not is_bench_file("small-figure-k")
    Path("small-figure-k", "bench.json").write_text("{}")
    assert is_bench_file("small-figure-k")


@pytest.mark.parametrize("name", bench_names())
def test_the_bench_files_of_the_package_are_valid(name: str) -> None:
    pytest.importorskip("torch")
    from laplaceconfidence.evaluation.method_settings import cell_settings

    file = read_bench_file(name)
    bench = file.bench()
    assert file.title
    assert file.description
    for table in bench.data:
        assert table.settings_of
        for contender in bench.of_data(table.name, "training"):
            for noise in table.noises:
                preset = table.preset or bench.preset
                if preset is not None and contender.is_measured(table.name, noise):
                    cell_settings(
                        contender,
                        preset=preset,
                        data=table.settings_of,
                        noise=Noise.parse(noise),
                        published=bench.published,
                        shared=bench.training,
                        passes=bench.passes,
                    )
