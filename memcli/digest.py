"""BLAKE2b without OpenSSL: `hashlib` loads all of it first, which is 2 ms of every start."""

try:
    from _blake2 import blake2b  # type: ignore[import-not-found, unused-ignore]  # CPython's own, since 3.6
except ImportError:  # another Python
    from hashlib import blake2b

__all__ = ["blake2b"]
