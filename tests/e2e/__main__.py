"""`make e2e`: install the agents, leave the network, run the end-to-end tests.

The tests run in a network namespace of their own, whose only interface is loopback, so that nothing can have come from
elsewhere. Where that is not allowed they run with the network, and one test is skipped with the reason.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct
import sys
from pathlib import Path

from tests.e2e.installing import install_all

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1


def main() -> None:
    """Run the tests in this process's place; what was given on the command line goes to pytest."""
    for name, reason in install_all().items():
        print(f"{name} will be skipped: {reason}", file=sys.stderr)
    os.environ["FUNES_E2E_NETWORK"] = leave_network()
    here = str(Path(__file__).parent)
    options = ["-m", "e2e", "-rs", "-p", "no:cacheprovider", here, *sys.argv[1:]]
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, "-m", "pytest", *options])


def leave_network() -> str:
    """Move this process into a network namespace with nothing but loopback.

    Returns:
        Empty when that was done, else the reason why not.
    """
    if not sys.platform.startswith("linux"):
        return f"{sys.platform} has no network namespaces"
    # A child tries it first: half a namespace is worse than none.
    if (child := os.fork()) == 0:
        try:
            _unshare()
            os._exit(0)
        except OSError as error:
            os._exit(error.errno or errno.EPERM)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code:
        return f"a network namespace is not allowed here ({os.strerror(code)})"
    _unshare()
    return ""


def _unshare() -> None:
    """Enter the namespace and switch its loopback on."""
    user, group = os.getuid(), os.getgid()
    library = ctypes.CDLL(None, use_errno=True)
    if library.unshare(_CLONE_NEWNET):
        # Not root: in a user namespace of one's own it may be allowed.
        if library.unshare(_CLONE_NEWUSER | _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "unshare")
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))


if __name__ == "__main__":
    main()
