"""What `import laplaceconfidence` offers, and what it must not load."""

import subprocess
import sys

import laplaceconfidence


def test_every_public_name_exists_and_is_listed_once() -> None:
    assert len(set(laplaceconfidence.__all__)) == len(laplaceconfidence.__all__)
    for name in laplaceconfidence.__all__:
        assert getattr(laplaceconfidence, name) is not None
    assert dir(laplaceconfidence) == sorted(laplaceconfidence.__all__)
    assert set(laplaceconfidence._HOMES) | {"__version__"} == set(laplaceconfidence.__all__)


def test_every_public_name_knows_where_it_lives() -> None:
    for name, home in laplaceconfidence._HOMES.items():
        assert getattr(laplaceconfidence, name).__module__ == home


def test_unknown_names_are_refused() -> None:
    assert not hasattr(laplaceconfidence, "no_such_name")


def test_importing_the_package_stays_light() -> None:
    code = (
        "import sys, laplaceconfidence\n"
        "heavy = {'torch', 'pandas', 'matplotlib', 'sklearn', 'faiss'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_public_names_need_neither_torch_nor_pandas_nor_matplotlib() -> None:
    # scikit-learn imports pandas where it finds it, so what counts is that nothing needs it.
    code = (
        "import sys\n"
        "class Refuse:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name in ('torch', 'pandas', 'matplotlib'): raise ImportError(name)\n"
        "sys.meta_path.insert(0, Refuse())\n"
        "import laplaceconfidence\n"
        "[getattr(laplaceconfidence, name) for name in laplaceconfidence.__all__]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
