"""Types of the calls' arguments and results, for annotations. Nothing here is needed to run, neither numpy nor torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Literal, Protocol, Sequence, Tuple, TypeVar, Union

if TYPE_CHECKING:
    import numpy as np
    from typing_extensions import Buffer, TypeAlias


class DLPack(Protocol):
    """An array of another library that can be shared."""

    def __dlpack__(self) -> Any: ...

    def __dlpack_device__(self) -> tuple[Any, Any]: ...


class Tensor(Protocol):
    """A tensor of torch, described without torch."""

    def data_ptr(self) -> int: ...

    def new_empty(self, *args: Any, **options: Any) -> Any: ...


class Waited(Protocol):
    """An operation that a `Request` waits for."""

    def wait(self) -> Any: ...

    def test(self) -> bool: ...


T = TypeVar("T")

if TYPE_CHECKING:
    NDArray: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
    # Any object with elements in memory.
    Array: TypeAlias = Union[NDArray, Tensor, Buffer, DLPack]
    # The kinds of array that are made new where no `out` is given.
    Made = TypeVar("Made", bound=Union[NDArray, Tensor])
    Tensors = TypeVar("Tensors", bound=Tensor)
    Out = TypeVar("Out", bound=Array)
    Operator: TypeAlias = Union[
        Literal["sum", "prod", "min", "max", "avg", "band", "bor", "bxor", "land", "lor", "lxor"],
        Callable[[Any, Any], Any],
        None,
    ]
    Shape: TypeAlias = Union[int, Sequence[int]]
    # A buffer as mpi4py takes it: `x`, `[x, TYPE]`, `[x, count]`, `[x, counts, TYPE]`.
    Buf: TypeAlias = Union[Array, list[Any], Tuple[Any, ...], None]
