"""The public interface: its names, and what importing it costs."""

from __future__ import annotations

import ast
import doctest
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import suffice as sf
from suffice.errors.earlier import TOPIC

ROOT = Path(__file__).parents[2]


TOPICS = [name for name in sf._MODULES.split() if name not in ("estimators", "exponential")]
"""Modules by topic; the two others have tests of their own."""


def test_every_topic_is_there_without_an_import() -> None:
    assert {*homes_of_topics()} <= {*sf._MODULES.split()}


WITHOUT_EXAMPLE = {"SufficeError", "SufficeNote", "BGe"}


def names_of(topic: str) -> list[str]:
    """The public names of a topic: those that it lists, or all that it defines."""
    module = getattr(sf, topic)
    own = [n for n, x in vars(module).items() if getattr(x, "__module__", "") == module.__name__ and isinstance(x, type)]
    return getattr(module, "__all__", [n for n in own if not n.startswith("_")])


def examples_of(thing: object, name: str) -> bool:
    return any(t.examples for t in doctest.DocTestFinder(recurse=True).find(thing, name))


def test_the_front_door_has_few_names_and_each_an_example() -> None:
    assert len(sf.__all__) <= 81
    assert sf.__all__ == sorted(sf.__all__)
    for name in sf.__all__:
        thing = getattr(sf, name)
        assert name in WITHOUT_EXAMPLE or thing.__doc__, name
        assert name in WITHOUT_EXAMPLE or examples_of(thing, name), f"{name} has no runnable example"
    with pytest.raises(AttributeError, match="nonsense"):
        sf.nonsense  # noqa: B018


@pytest.mark.parametrize("topic", TOPICS)
def test_a_topic_says_what_it_is_and_its_names_have_examples(topic: str) -> None:
    assert getattr(sf, topic).__doc__
    moved = {name for name, home in TOPIC.items() if home == topic}
    assert moved <= set(names_of(topic))
    for name in moved - WITHOUT_EXAMPLE:
        assert examples_of(getattr(getattr(sf, topic), name), name), f"{topic}.{name} has no runnable example"


NEW = {"calibration", "explore", "report"}
"""Public names that version 0.1 did not have."""


def test_names_of_0_1_are_found_until_0_3_with_one_note() -> None:
    assert not set(TOPIC) & {*sf.__all__, *dir(sf)}
    assert len(TOPIC) + len({*sf.__all__} - NEW) == 213
    for name, topic in TOPIC.items():
        vars(sf).pop(name, None)
        with pytest.warns(sf.SufficeNote, match=rf"suffice\.{topic}\.{name} since 0\.2") as told:
            found = getattr(sf, name)
        assert found is getattr(getattr(sf, topic), name)
        assert [w.filename for w in told] == [__file__]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert getattr(sf, name) is found  # silent from here on


def test_an_old_name_is_imported_from_the_users_line() -> None:
    vars(sf).pop("BDs", None)
    with pytest.warns(sf.SufficeNote, match=r"suffice\.priors\.BDs") as told:
        from suffice import BDs  # noqa: F401
    assert [w.filename for w in told] == [__file__]


def test_type_checkers_find_the_same_names() -> None:
    imports = [node for node in ast.walk(ast.parse(Path(sf.__file__).read_text())) if isinstance(node, ast.ImportFrom)]
    seen = {a.asname: node.module for node in imports for a in node.names if a.asname}
    homes = dict.fromkeys(("formats", "graphs", "objectives", "statistics"), "") | homes_of_topics()
    modules = {t: f"suffice.{homes[t]}".rstrip(".") for t in sf._MODULES.split()}
    assert seen == {name: f"suffice.{home}" for name, home in sf._HOME.items()} | modules


ROOMS = {"estimators": "interfaces", "exponential": "numerics", "registry": "basis", "reports": "interfaces"}
"""Topics that are rooms of their own, and where these are."""


def homes_of_topics() -> dict[str, str]:
    """The room in which each topic stands."""
    package = Path(sf.__file__).parent
    files = [f for f in package.glob("interfaces/topics/**/*.py") if f.stem != "__init__"]
    return {f.stem: ROOMS.get(f.stem, ".".join(f.parent.relative_to(package).parts)) for f in files}


def test_type_checkers_find_the_modules_by_topic() -> None:
    """They do not follow a package's path, so that each topic has a line in the stubs beside the package."""
    stubs = {path.stem: path.read_text("utf-8") for path in (Path(sf.__file__).parents[1] / "suffice-stubs").glob("*.pyi")}
    assert stubs == {topic: f"from suffice.{home}.{topic} import *\n" for topic, home in homes_of_topics().items()}


def test_import_takes_only_numpy_and_the_standard_library() -> None:
    heavy = "scipy pyarrow networkx narwhals duckdb numba typer rich pandas"
    code = f"import sys, suffice; print([m for m in {heavy.split()} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_the_front_page_is_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 120


def test_notes_reach_text_that_is_run_without_a_module() -> None:
    """Python itself drops warnings of a module without a name."""
    with pytest.warns(sf.SufficeNote, match="taken for states"):
        exec("scan({'a': [1, 2, 3] * 30}).schema", {"scan": sf.scan})


def test_notes_come_from_the_users_line() -> None:
    with pytest.warns(sf.SufficeNote, match="whole numbers") as caught:
        sf.fit("x", {"x": [1, 2, 3, 3]})
    assert caught[0].filename == __file__
