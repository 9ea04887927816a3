"""The examples of pages are run, and what they show is compared."""

from pathlib import Path

import pytest
from tools.page_outputs import examples, run

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


def test_blocks_run_in_order_in_one_namespace() -> None:
    found = examples(PAGE)
    assert [(block.line, block.random) for block in found] == [(1, False), (12, False), (16, True)]
    assert [PAGE[slice(*block.place)] for block in found] == ["1\n", "", "another draw\n"]
    run(found, Path("page.md"))


@pytest.mark.parametrize(
    ("old", "new"), [("```text\n1\n", "```text\n2\n"), ("assert one == 1", "assert one == 2")]
)
def test_a_wrong_page_fails(old: str, new: str) -> None:
    with pytest.raises(AssertionError):
        run(examples(PAGE.replace(old, new)), Path("page.md"))
