# SPDX-License-Identifier: Apache-2.0
"""One exception per kind of error, each also the built-in it resembles."""

from __future__ import annotations


class Error(Exception):
    """Why something did not work. `code` is stable; `log` has the compiler's own words, where there are any."""

    code = "internal"

    def __init__(self, message: str, status: int = 0, log: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.log = log
        if log and hasattr(self, "add_note"):
            self.add_note(log.rstrip())

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[type[Error], tuple[str, int, str]]:
        return type(self), (self.message, self.status, self.log)


class InvalidArgument(Error, ValueError):
    code = "invalid-argument"


class Unsupported(Error):
    code = "unsupported"


class NotFound(Error, LookupError):
    code = "not-found"


class IoError(Error, OSError):
    code = "io"


class Corrupt(Error):
    code = "corrupt"


class CompileFailed(Error):
    code = "compile-failed"


class LinkFailed(Error):
    code = "link-failed"


class WorkerFailed(Error):
    code = "worker-failed"


class Timeout(Error, TimeoutError):
    code = "timeout"


class Cancelled(Error):
    code = "cancelled"


class OutOfMemory(Error, MemoryError):
    code = "out-of-memory"


class NoDevice(Error):
    code = "no-device"


class DriverError(Error):
    code = "driver"


class Forbidden(Error, PermissionError):
    code = "forbidden"


class InternalError(Error):
    code = "internal"


BY_CODE: dict[str, type[Error]] = {
    c.code: c
    for c in (InvalidArgument, Unsupported, NotFound, IoError, Corrupt, CompileFailed, LinkFailed, WorkerFailed, Timeout,
              Cancelled, OutOfMemory, NoDevice, DriverError, Forbidden, InternalError)
}


def make(code: str, message: str, status: int, log: str) -> Error:
    return BY_CODE.get(code.replace("_", "-"), InternalError)(message, status, log)
