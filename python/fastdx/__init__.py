"""Metric differential privacy for text: words become other words, by a law with a proved bound.

>>> from fastdx import Tem
>>> tem = Tem.recommended()  # the default English vocabulary
>>> private = tem.privatize("I would like a cup of coffee, please.")
>>> print(tem.guarantee)  # doctest: +ELLIPSIS
Tem protects every word of its vocabulary with metric differential privacy of ε = 2.6 ...
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fastdx import exceptions, mechanisms
from fastdx._core import (
    Certificate,
    Cover,
    Embedding,
    Guarantee,
    NearestDocuments,
    Transport,
    WordGraph,
    __version__,
    earth_movers_distance,
    nearest_documents,
    optimal_transport,
    pairwise_emd,
    tokenize,
    utility_bound,
)
from fastdx.exceptions import *  # noqa: F403, all of them, in `__all__` below
from fastdx.mechanisms import (
    FiniteLaw,
    HyperbolicLaplace,
    Mahalanobis,
    Mechanism,
    MultivariateLaplace,
    NeighborResponse,
    Tem,
    Unchanged,
    Vickrey,
    from_spec,
)

if TYPE_CHECKING:
    from fastdx import (
        bags,
        budget,
        calibration,
        channel,
        counts,
        engines,
        lab,
        numbers,
        poincare,
        record,
    )
    from fastdx import client as client
    from fastdx.bags import BagOfWords
    from fastdx.budget import BudgetExceededError

__all__ = [
    "BagOfWords",
    "BudgetExceededError",
    "Certificate",
    "Cover",
    "Embedding",
    "FiniteLaw",
    "Guarantee",
    "HyperbolicLaplace",
    "Mahalanobis",
    "Mechanism",
    "MultivariateLaplace",
    "NearestDocuments",
    "NeighborResponse",
    "Tem",
    "Transport",
    "Unchanged",
    "Vickrey",
    "WordGraph",
    "__version__",
    "bags",
    "budget",
    "calibration",
    "channel",
    "counts",
    "earth_movers_distance",
    "engines",
    "from_spec",
    "lab",
    "mechanisms",
    "nearest_documents",
    "numbers",
    "optimal_transport",
    "pairwise_emd",
    "poincare",
    "record",
    "tokenize",
    "utility_bound",
]
__all__ += exceptions.__all__

# Names that are imported on first use (PEP 562), each with its module. `import fastdx` is quick,
# because it does not load modules that only some programs use (SQLite, JSON, HTML). `client` needs
# another package, so `__all__` leaves it out: `from fastdx import *` works.
_LAZY = {
    name: f"fastdx.{name}"
    for name in ("bags", "budget", "calibration", "channel", "client", "counts", "engines", "lab",
                 "numbers", "poincare", "record")
} | {
    "BagOfWords": "fastdx.bags",
    "BudgetExceededError": "fastdx.budget",
}  # fmt: skip

if not TYPE_CHECKING:  # else a type checker takes every name for one that exists

    def __getattr__(name: str) -> Any:
        if name not in _LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
        module = import_module(_LAZY[name])
        found = module if module.__name__ == f"{__name__}.{name}" else getattr(module, name)
        globals()[name] = found
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__, *_LAZY})
