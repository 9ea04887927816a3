from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from typing import Any, SupportsIndex, final, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import disjoint_base

__all__ = [
    "AttributionCore",
    "Certificate",
    "Embedding",
    "Guarantee",
    "HyperbolicLaplace",
    "Mechanism",
    "MetropolisSample",
    "MultivariateLaplace",
    "NearestDocuments",
    "PoincareTraining",
    "Replacements",
    "SearchQuality",
    "Tem",
    "Transport",
    "WordGraph",
    "__version__",
    "binomial_bounds",
    "certify",
    "check_index",
    "clamp",
    "closed_form",
    "distance",
    "earth_movers_distance",
    "emd",
    "exp_map",
    "from_lorentz",
    "hyperbolic_laplace",
    "hyperbolic_metropolis",
    "log_map",
    "mobius_add",
    "multivariate_laplace",
    "nearest_documents",
    "pairwise_emd",
    "poincare_reconstruction",
    "read_edges",
    "simulate",
    "tem_inputs",
    "to_lorentz",
    "tokenize",
    "utility_bound",
]

__version__: str

@final
class Embedding:
    def __new__(
        cls, words: Iterable[str], vectors: ArrayLike, *, metric: str = "euclidean"
    ) -> Embedding: ...
    @staticmethod
    def load(
        path: str | PathLike[str],
        *,
        format: str | None = None,
        limit: SupportsIndex | None = None,
        metric: str | None = None,
        vocabulary: str | PathLike[str] | None = None,
        verify: bool = True,
    ) -> Embedding: ...
    @staticmethod
    def default(name: str = "english") -> Embedding: ...
    @staticmethod
    def from_gensim(keyed_vectors: Any, *, metric: str = "euclidean") -> Embedding: ...
    @property
    def words(self) -> tuple[str, ...]: ...
    @property
    def vectors(self) -> NDArray[np.float32]: ...
    @property
    def dim(self) -> int: ...
    @property
    def metric(self) -> str: ...
    def __len__(self) -> int: ...
    def __contains__(self, word: object, /) -> bool: ...
    def ids(self, words: Iterable[str]) -> NDArray[np.uint32]: ...
    def distance(self, a: str, b: str) -> float: ...
    def distances(self, word: str) -> NDArray[np.float64]: ...
    def nearest(
        self, vectors: ArrayLike, k: SupportsIndex = 1, method: str = "exact"
    ) -> tuple[NDArray[np.uint32], NDArray[np.float64]]: ...
    def build_hnsw(
        self,
        m: SupportsIndex | None = None,
        *,
        ef_construction: SupportsIndex | None = None,
        seed: SupportsIndex | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> Embedding: ...
    @property
    def has_hnsw(self) -> bool: ...
    def search_quality(
        self,
        mechanism: MultivariateLaplace,
        *,
        words: Iterable[str] | None = None,
        draws: SupportsIndex | None = None,
        ef: SupportsIndex | None = None,
    ) -> SearchQuality: ...
    def save(self, path: str | PathLike[str], *, storage: str = "float32") -> None: ...
    def __reduce__(self) -> tuple[Any, tuple[bytes]]: ...
    @staticmethod
    def _from_bytes(data: bytes) -> Embedding: ...

@final
class WordGraph:
    def __new__(
        cls,
        edges: str | PathLike[str] | Iterable[tuple[str, str]] | NDArray[np.str_],
        weights: ArrayLike | None = None,
        *,
        words: Iterable[str] | None = None,
    ) -> WordGraph: ...
    @staticmethod
    def load(path: str | PathLike[str], *, verify: bool = True) -> WordGraph: ...
    def save(self, path: str | PathLike[str]) -> None: ...
    @property
    def words(self) -> tuple[str, ...]: ...
    @property
    def metric(self) -> str: ...
    @property
    def edges(self) -> int: ...
    @property
    def components(self) -> int: ...
    @property
    def is_forest(self) -> bool: ...
    @property
    def unreachable_distance(self) -> float | None: ...
    def __len__(self) -> int: ...
    def __contains__(self, word: object, /) -> bool: ...
    def ids(self, words: Iterable[str]) -> NDArray[np.uint32]: ...
    def distance(self, a: str, b: str) -> float: ...
    def distances(self, word: str) -> NDArray[np.float64]: ...
    def __reduce__(self) -> tuple[Any, tuple[bytes]]: ...
    @staticmethod
    def _from_bytes(data: bytes) -> WordGraph: ...

@disjoint_base
class Mechanism:
    @property
    def embedding(self) -> Embedding: ...
    @property
    def space(self) -> Embedding | WordGraph: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def oov(self) -> str: ...
    @property
    def skip(self) -> set[str]: ...
    @property
    def seed(self) -> int | None: ...
    @property
    def consistent(self) -> bool | str: ...
    @property
    def pad(self) -> float | None: ...
    @property
    def guarantee(self) -> Guarantee: ...
    @overload
    def privatize(self, text: str) -> str: ...  # type: ignore[overload-overlap]
    @overload
    def privatize(self, text: Iterable[str]) -> list[str]: ...
    def privatize_counted(
        self, texts: Iterable[str], *, replacements: Replacements | None = None
    ) -> tuple[list[str], dict[str, int]]: ...
    def tokenize(self, text: str) -> list[str]: ...
    def count_tokens(self, tokens: Iterable[str]) -> dict[str, int]: ...
    def privatize_tokens(self, tokens: Iterable[str]) -> list[str]: ...
    def privatize_ids(self, ids: ArrayLike) -> NDArray[np.uint32]: ...
    def sample(self, word: str, size: SupportsIndex) -> NDArray[np.uint32]: ...

@final
class Replacements:
    def __new__(cls) -> Replacements: ...

@final
class Tem(Mechanism):
    def __new__(
        cls,
        embedding: Embedding | WordGraph | None = None,
        epsilon: float | None = None,
        *,
        gamma: float | None = None,
        beta: float = 1e-3,
        oov: str = "random",
        skip: Iterable[str] | None = None,
        consistent: bool | str | None = None,
        sampler: str = "exact",
        seed: SupportsIndex | None = None,
        pad: float | None = None,
    ) -> Tem: ...
    @staticmethod
    def certified(
        embedding: Embedding | WordGraph,
        epsilon: float,
        *,
        gamma: float | None = None,
        beta: float = 1e-3,
        oov: str = "random",
        skip: Iterable[str] | None = None,
        consistent: bool | str | None = None,
        seed: SupportsIndex | None = None,
        pad: float | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> Tem: ...
    @property
    def nominal(self) -> float: ...
    @property
    def gamma(self) -> float: ...
    @property
    def sampler(self) -> str: ...
    @property
    def lists(self) -> int | float | None: ...
    def build_lists(
        self,
        k: SupportsIndex | None = None,
        *,
        lists: str = "nearest",
        memory: SupportsIndex | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> Tem: ...
    def save(self, path: str | PathLike[str]) -> None: ...
    @staticmethod
    def load(
        path: str | PathLike[str],
        epsilon: float,
        *,
        verify: bool | str | None = None,
        **parameters: Any,
    ) -> Tem: ...
    def probabilities(self, word: str) -> NDArray[np.float64]: ...
    def with_epsilon(self, epsilon: float) -> Tem: ...
    def __getnewargs_ex__(
        self,
    ) -> tuple[tuple[Embedding | WordGraph, float], dict[str, Any]]: ...

@final
class MultivariateLaplace(Mechanism):
    def __new__(
        cls,
        embedding: Embedding | None = None,
        epsilon: float | None = None,
        *,
        search: str = "exact",
        ef: SupportsIndex | None = None,
        oov: str = "random",
        skip: Iterable[str] | None = None,
        consistent: bool | str | None = None,
        seed: SupportsIndex | None = None,
        pad: float | None = None,
    ) -> MultivariateLaplace: ...
    @property
    def search(self) -> str: ...
    @property
    def ef(self) -> int | None: ...
    def perturb(self, vectors: ArrayLike) -> NDArray[np.float64]: ...
    def with_epsilon(self, epsilon: float) -> MultivariateLaplace: ...
    def __getnewargs_ex__(self) -> tuple[tuple[Embedding, float], dict[str, Any]]: ...

@final
class HyperbolicLaplace(Mechanism):
    def __new__(
        cls,
        embedding: Embedding,
        epsilon: float,
        *,
        base: str = "volume",
        sampler: str = "exact",
        oov: str = "random",
        skip: Iterable[str] | None = None,
        consistent: bool | str | None = None,
        seed: SupportsIndex | None = None,
        pad: float | None = None,
    ) -> HyperbolicLaplace: ...
    @staticmethod
    def from_paper(
        embedding: Embedding,
        nominal: float,
        *,
        oov: str = "random",
        skip: Iterable[str] | None = None,
        consistent: bool | str | None = None,
        seed: SupportsIndex | None = None,
        pad: float | None = None,
    ) -> HyperbolicLaplace: ...
    @property
    def nominal(self) -> float: ...
    @property
    def base(self) -> str: ...
    @property
    def sampler(self) -> str: ...
    def with_epsilon(self, epsilon: float) -> HyperbolicLaplace: ...
    def __getnewargs_ex__(self) -> tuple[tuple[Embedding, float], dict[str, Any]]: ...

@final
class MetropolisSample:
    @property
    def points(self) -> NDArray[np.float64]: ...
    @property
    def acceptance(self) -> float: ...
    @property
    def effective_size(self) -> float: ...
    @property
    def r_hat(self) -> float: ...
    @property
    def scale(self) -> float: ...

@final
class PoincareTraining:
    def __new__(
        cls,
        words: Iterable[str],
        edges: ArrayLike,
        dim: SupportsIndex,
        *,
        epochs: SupportsIndex,
        negatives: SupportsIndex,
        burn_in: SupportsIndex,
        lr: float,
        threads: SupportsIndex,
        seed: SupportsIndex | None = None,
        vectors: ArrayLike | None = None,
        epoch: SupportsIndex | None = None,
    ) -> PoincareTraining: ...
    @property
    def epoch(self) -> int: ...
    def run_epoch(self) -> float: ...
    def embedding(self) -> Embedding: ...

@final
class SearchQuality:
    @property
    def words(self) -> int: ...
    @property
    def draws(self) -> int: ...
    @property
    def recall(self) -> float: ...
    @property
    def distance_ratio(self) -> float: ...
    @property
    def total_variation(self) -> float: ...
    @property
    def worst(self) -> tuple[str, float]: ...
    @property
    def warning(self) -> str | None: ...

@final
class Guarantee:
    @property
    def metric(self) -> str: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def certificate(self) -> Certificate | None: ...
    @property
    def delta(self) -> float: ...
    @property
    def slack(self) -> float: ...
    @property
    def void(self) -> str | None: ...
    @property
    def unknown(self) -> float | None: ...
    @property
    def scope(self) -> str: ...
    @property
    def theorem(self) -> str: ...
    @property
    def arithmetic(self) -> str: ...
    @property
    def exceptions(self) -> list[str]: ...
    def bound(self, a: str | Iterable[str], b: str | Iterable[str]) -> float: ...
    def price(self, text: str | Iterable[str]) -> float: ...
    def _price(self, text: str | Iterable[str]) -> tuple[float, str | None]: ...
    def _price_ids(self, ids: ArrayLike) -> tuple[float, str | None, int]: ...
    def __reduce__(self) -> tuple[Any, tuple[Mechanism, str]]: ...

def multivariate_laplace(
    n: SupportsIndex, epsilon: float, size: SupportsIndex, seed: SupportsIndex | None = None
) -> NDArray[np.float64]: ...
def hyperbolic_laplace(
    n: SupportsIndex,
    epsilon: float,
    size: SupportsIndex,
    *,
    base: str = "volume",
    sampler: str = "exact",
    seed: SupportsIndex | None = None,
) -> NDArray[np.float64]: ...
def hyperbolic_metropolis(
    n: SupportsIndex,
    epsilon: float,
    size: SupportsIndex,
    *,
    base: str = "ball",
    burn_in: SupportsIndex | None = None,
    thin: SupportsIndex | None = None,
    chains: SupportsIndex | None = None,
    seed: SupportsIndex | None = None,
) -> MetropolisSample: ...
def distance(x: ArrayLike, y: ArrayLike) -> NDArray[np.float64]: ...
def mobius_add(a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]: ...
def exp_map(x: ArrayLike, v: ArrayLike) -> NDArray[np.float64]: ...
def log_map(x: ArrayLike, y: ArrayLike) -> NDArray[np.float64]: ...
def to_lorentz(x: ArrayLike) -> NDArray[np.float64]: ...
def from_lorentz(y: ArrayLike) -> NDArray[np.float64]: ...
def clamp(x: ArrayLike, lam: float = 1e-05) -> NDArray[np.float64]: ...

_Bag = Mapping[str, int] | Iterable[str] | tuple[ArrayLike, ArrayLike]

@final
class Certificate:
    @property
    def epsilon(self) -> float: ...
    @property
    def nominal(self) -> float: ...
    @property
    def gamma(self) -> float: ...
    @property
    def pair(self) -> tuple[str, str]: ...
    @property
    def output(self) -> str: ...
    @property
    def vocabulary(self) -> str: ...
    @property
    def method(self) -> str: ...

_Progress = Callable[[int], object] | None

def certify(tem: Tem, progress: _Progress = None) -> Certificate: ...
def closed_form(
    tem: Tem,
    ids: ArrayLike,
    eta: float,
    near: SupportsIndex,
    draws: SupportsIndex,
    progress: _Progress = None,
) -> tuple[
    NDArray[np.float64],
    NDArray[np.uint32],
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.float64],
]: ...
def tem_inputs(
    tem: Tem, ids: ArrayLike, normalisers: ArrayLike, eta: float, progress: _Progress = None
) -> NDArray[np.uint32]: ...
def simulate(
    mechanism: Mechanism,
    ids: ArrayLike,
    draws: SupportsIndex,
    eta: float,
    progress: _Progress = None,
) -> tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32]]: ...
def binomial_bounds(
    hits: ArrayLike, draws: SupportsIndex, alpha: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...

@final
class AttributionCore:
    def __new__(
        cls,
        texts: Iterable[str],
        authors: ArrayLike,
        count_of_authors: SupportsIndex,
        *,
        features: SupportsIndex,
        rounds: SupportsIndex,
        fraction: float,
        seed: SupportsIndex,
    ) -> AttributionCore: ...
    def attribute(
        self, texts: Iterable[str], progress: Callable[[int], object] | None = None
    ) -> tuple[NDArray[np.uint32], NDArray[np.float64]]: ...

def tokenize(text: str, space: Embedding | WordGraph | None = None) -> list[str]: ...
def check_index(
    path: str | PathLike[str],
    words: int | None,
    progress: Callable[[int], object] | None = None,
) -> tuple[int, int, int]: ...
def utility_bound(
    n: SupportsIndex, epsilon: float, size: SupportsIndex, distance: float
) -> float: ...

@final
class Transport:
    @property
    def cost(self) -> float: ...
    @property
    def plan(self) -> NDArray[np.float64]: ...
    @property
    def prices(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    @property
    def gap(self) -> float: ...

@final
class NearestDocuments:
    @property
    def ids(self) -> NDArray[np.uint32]: ...
    @property
    def distances(self) -> NDArray[np.float64]: ...
    @property
    def pruning(self) -> dict[str, int]: ...

def emd(weights_a: ArrayLike, weights_b: ArrayLike, cost: ArrayLike) -> Transport: ...
def earth_movers_distance(bag_a: _Bag, bag_b: _Bag, embedding: Embedding | WordGraph) -> float: ...
def pairwise_emd(
    bags: Iterable[_Bag],
    embedding: Embedding | WordGraph,
    others: Iterable[_Bag] | None = None,
    *,
    progress: Callable[[int], object] | None = None,
) -> NDArray[np.float64]: ...
def nearest_documents(
    query_bags: Iterable[_Bag],
    bags: Iterable[_Bag],
    embedding: Embedding | WordGraph,
    k: SupportsIndex,
    *,
    progress: Callable[[int], object] | None = None,
) -> NearestDocuments: ...
def read_edges(
    edges: str | PathLike[str] | Iterable[tuple[str, str]] | NDArray[np.str_],
) -> tuple[list[str], NDArray[np.uint32]]: ...
def poincare_reconstruction(embedding: Embedding, edges: ArrayLike) -> tuple[float, float]: ...
