"""Advice for a user whose machine cannot load the extension."""

from __future__ import annotations

import os
import platform
import sys
import sysconfig


def _built_for() -> str:
    """Returns the platform that the wheel was built for: Python, its binary interface, and C library with CPU."""
    from importlib import metadata

    try:
        lines = (metadata.distribution("lineweave").read_text("WHEEL") or "").splitlines()
    except metadata.PackageNotFoundError:
        return "what is not known, since the package was not installed"
    tags = [line.partition(":")[2].strip() for line in lines if line.startswith("Tag:")]
    return " or ".join(tags) or "what it does not say"


def _library() -> str:
    try:
        return (os.confstr("CS_GNU_LIBC_VERSION") or "a C library that is not glibc").strip()
    except (ValueError, OSError):
        return "a C library that is not glibc"


def advice(error: BaseException) -> str:
    """Returns a text that says what was expected, what was found and what to do."""
    free = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    python = f"{sys.implementation.cache_tag}{', free-threaded' if free else ''}"
    return (
        f"lineweave's extension cannot be loaded: {error}. The package was built for {_built_for()}; this is {python} on"
        f" {sys.platform}, {platform.machine()}, {_library()}. Install the wheel for this machine, or build it here, which needs a Rust"
        " toolchain: pip install --no-binary lineweave lineweave, or pip install of the archive of its sources"
    )
