"""The examples of pages are run, and what they show is compared."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from helpers import ROOT

PAGE = """```python
one = 1
print(one)
```

It prints

```text
1
```

<!-- check
assert one == 1
-->

```python
print("a draw")
```

One draw:

```text
another draw
```

```python
>>> 1 / 0
```
"""


@pytest.fixture(name="pages", scope="module")
def pages_fixture() -> ModuleType:
    spec = importlib.util.spec_from_file_location("conftest_of_root", ROOT / "conftest.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_blocks_run_in_order_in_one_namespace(pages: ModuleType) -> None:
    found = pages.examples(PAGE)
    assert [(block.line, block.random) for block in found] == [(1, False), (12, False), (16, True)]
    assert [PAGE[slice(*block.place)] for block in found] == ["1\n", "", "another draw\n"]
    pages.run(found, Path("page.md"))


@pytest.mark.parametrize(
    ("old", "new"), [("```text\n1\n", "```text\n2\n"), ("assert one == 1", "assert one == 2")]
)
def test_a_wrong_page_fails(pages: ModuleType, old: str, new: str) -> None:
    with pytest.raises(AssertionError):
        pages.run(pages.examples(PAGE.replace(old, new)), Path("page.md"))
