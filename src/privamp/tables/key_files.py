"""Key files: 64 hexadecimal digits that only their owner may read."""

import os
import stat
from pathlib import Path

from ..chance.keys import Key
from ..errors import InvalidInput

_HEX = 64  # digits of 32 bytes
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def make_key_file(path: str | os.PathLike[str]) -> Key:
    """A fresh key in a new file; existing files are never overwritten."""
    name = os.fspath(path)
    try:
        handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise InvalidInput(f"{name!r} already exists; keys are never overwritten, so choose another name") from None
    except OSError as error:
        raise InvalidInput(f"cannot write {name!r} ({error.strerror}); choose a folder that is writable") from None
    key = Key.generate()
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(key.secret_bytes().hex() + "\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        os.unlink(name)
        raise InvalidInput(f"cannot write {name!r} ({error.strerror}); nothing was written") from None
    return Key.from_bytes(key.secret_bytes())  # a stored key


def read_key_file(path: str | os.PathLike[str]) -> Key:
    """The key in a file that only its owner may read."""
    file = Path(path)
    try:
        found = file.exists()
    except (OSError, ValueError):  # a name that no file can have
        found = False
    if not found:
        raise InvalidInput(f"there is no key file {str(file)!r}; make one with: privamp sample --new-key {file}")
    try:
        mode = file.stat().st_mode
        if not stat.S_ISREG(mode):
            raise InvalidInput(f"the key file {str(file)!r} is not a file; give another one")
        if os.name == "posix" and mode & _OTHERS:
            raise InvalidInput(
                f"the key file {str(file)!r} is readable by other users, so its key may be known; make a new one, "
                "and protect key files with chmod 600"
            )
        digits = file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeError):
        raise InvalidInput(f"the key file {str(file)!r} cannot be read; check its permissions and content") from None
    return key_from_digits(digits, f"the key file {str(file)!r}")


def key_from_digits(digits: str, where: str) -> Key:
    """The key from hexadecimal digits; an error names the place, never the digits."""
    digits = digits.strip()
    if len(digits) != _HEX or set(digits) - set("0123456789abcdefABCDEF"):
        raise InvalidInput(f"{where} must hold {_HEX} hexadecimal digits and nothing else")
    return Key.from_bytes(bytes.fromhex(digits))
