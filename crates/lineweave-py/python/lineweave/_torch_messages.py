"""Messages between two ranks as torch.distributed sees them: work that may not be over (`lineweave.torch`)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist


class Message(dist.Work):
    """A message that was started."""

    def __init__(self, tensors: list[torch.Tensor], flat: torch.Tensor, request: Any, source: int) -> None:
        super().__init__()
        self._tensors, self._flat, self._request, self._from = tensors, flat, request, source
        self._over = False

    def wait(self, timeout: timedelta | None = None) -> bool:
        if not self._over:
            self._request.wait()
            self._end()
        return True

    def _end(self) -> None:
        self._over = True
        (tensor,) = self._tensors
        if self._from >= 0 and self._flat.data_ptr() != tensor.data_ptr():
            tensor.copy_(self._flat)

    def is_completed(self) -> bool:
        if not self._over and self._request.test():
            self._request.wait()
            self._end()
        return self._over

    def is_success(self) -> bool:
        return self._over

    def exception(self) -> None:
        return None

    def synchronize(self) -> None:
        self.wait()

    def _source_rank(self) -> int:
        return self._from

    source_rank = _source_rank

    def result(self) -> list[torch.Tensor]:
        return self._tensors


class FromAnyone(Message):
    """A message that is received from the rank that sends first."""

    def __init__(self, group: Any, tensors: list[torch.Tensor], tag: int) -> None:
        super().__init__(tensors, tensors[0], None, -1)
        self._group, self._tag = group, tag

    def _find(self, wait: bool) -> bool:
        if self._request is None:
            found = self._group._team.probe(None, self._tag, wait)
            if found is None:
                return False
            message = self._group.recv(self._tensors, found[0], self._tag)
            self._flat, self._request, self._from = message._flat, message._request, found[0]
        return True

    def wait(self, timeout: timedelta | None = None) -> bool:
        self._find(True)
        return super().wait(timeout)

    def is_completed(self) -> bool:
        return self._find(False) and super().is_completed()
