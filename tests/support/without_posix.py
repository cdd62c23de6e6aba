"""A process without what only POSIX has, as far as a POSIX system can play Windows.

`block` refuses modules, removes functions and signals, and lets files behave as on Windows: a
directory cannot be opened, a handle for reading cannot be synchronised, and a file that this
process has open can neither be deleted nor replaced. Libraries that are imported before keep what
they have, because on Windows they use other code.
"""

import contextlib
import errno
import fcntl
import importlib
import os
import signal
import sys
from multiprocessing import popen_fork
from types import SimpleNamespace

MODULES = ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog", "posix_ipc")
FUNCTIONS = (
    "fork", "forkpty", "setsid", "fdatasync", "sysconf", "sched_getaffinity", "O_DIRECTORY",
    "getuid", "geteuid", "getgid", "getegid", "killpg", "getpgid", "setpgid", "chown", "fchmod",
    "uname", "getloadavg", "mkfifo", "nice", "wait", "WNOHANG", "pread", "pwrite",
)  # fmt: skip
SIGNALS = ("SIGKILL", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGSTOP", "SIGCHLD")
LIBRARIES = (
    "torch", "pyarrow.parquet", "duckdb", "matplotlib.pyplot", "sklearn.datasets", "cvxpy", "scipy",
    "filelock", "multiprocessing.connection", "multiprocessing.popen_spawn_posix", "distributed",
    "dask", "starlette.applications", "uvicorn", "pandas", "polars", "opendp", "dp_accounting",
)  # fmt: skip


class _Refuses:
    """Says that these modules do not exist."""

    def find_spec(self, name, path=None, target=None):
        if name in MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def block(libraries=LIBRARIES) -> None:
    """Takes away what Windows does not have; flmarket_sim must not be imported yet.

    `libraries` are imported before.
    """
    assert not [name for name in sys.modules if name.partition(".")[0] == "flmarket_sim"]
    for library in libraries:
        with contextlib.suppress(ImportError):  # optional ones
            importlib.import_module(library)
    popen_fork.signal = SimpleNamespace(**vars(signal))  # Windows has another way to end processes
    for name in MODULES:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, _Refuses())
    for name in FUNCTIONS:
        if hasattr(os, name):
            delattr(os, name)
    for name in SIGNALS:
        delattr(signal, name)
    _change_files()


def _change_files() -> None:
    opened, synchronise = os.open, os.fsync
    unlink, replace, rename = os.unlink, os.replace, os.rename

    def open_file(path, flags, *rest, **more):
        if not more and os.path.isdir(path):  # shutil.rmtree names a file by its directory
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return opened(path, flags, *rest, **more)

    def synchronise_what_is_written(handle):
        if fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, "Bad file descriptor")
        synchronise(handle)

    def refuse_if_open(path):
        opened_here = set()
        for handle in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):  # another thread has closed it
                opened_here.add(os.readlink(f"/proc/self/fd/{handle}"))
        if os.path.isfile(path) and os.path.realpath(path) in opened_here:
            raise PermissionError(errno.EACCES, "The file is being used", str(path))

    def unlink_closed(path, *, dir_fd=None):
        if dir_fd is None:
            refuse_if_open(path)
        unlink(path, dir_fd=dir_fd)

    def replace_closed(source, target, **more):
        for path in (source, target):
            refuse_if_open(path)
        replace(source, target, **more)

    def rename_to_free_place(source, target, **more):
        refuse_if_open(source)
        if os.path.exists(target):
            raise FileExistsError(errno.EEXIST, "File exists", str(target))
        rename(source, target, **more)

    os.open, os.fsync = open_file, synchronise_what_is_written
    os.unlink = os.remove = unlink_closed
    os.replace, os.rename = replace_closed, rename_to_free_place
