"""Runs one command and leaves nothing behind.  A script of its own: it imports nothing from ncukit.

    supervisor.py CONTROL STATUS GRACE ARGV...

CONTROL is a pipe that the caller holds open.  Its end (the caller says so, or died, however) stops the
command: SIGTERM to all its processes, after GRACE [s] SIGKILL.  As a child subreaper the supervisor inherits
every process that the command orphans, also those that left its session.  When the command ends, the rest is
stopped the same way; then JSON goes to STATUS: wait status, seconds, and how many had to be stopped.
"""

import os
import select
import signal
import sys
import time
from contextlib import suppress

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
LINGER = 0.5  # [s] that helpers of a command which has ended get to end by themselves
GIVE_UP = 5.0  # [s] after SIGKILL; a process in an uninterruptible driver call may never end


def prctl(option: int, value: int) -> None:
    with suppress(OSError, AttributeError, ImportError):  # a Python without ctypes, another C library
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def descendants(root: int) -> list[int]:
    """Return every living process below ``root``, children before grandchildren."""
    children: dict[int, list[int]] = {}
    with suppress(OSError):
        for name in os.listdir("/proc"):
            if name.isdigit():
                with suppress(OSError, ValueError), open(f"/proc/{name}/stat", "rb") as file:
                    state, parent, *_ = file.read().rpartition(b")")[2].split()
                    if state not in b"ZX":
                        children.setdefault(int(parent), []).append(int(name))
    found = list(children.get(root, ()))
    for pid in found:
        found += children.get(pid, ())
    return found


class Command:
    """The command, from its start until none of its processes is left."""

    def __init__(self, argv: list[str]) -> None:
        self.status: int | None = None
        read, write = os.pipe()  # closed by a successful exec; else the error comes through it
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.setsid()
                prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
                for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ):
                    signal.signal(number, signal.SIG_DFL)
                signal.set_wakeup_fd(-1)
                signal.pthread_sigmask(signal.SIG_SETMASK, ())
                os.execvp(argv[0], argv)  # noqa: S606 - without a shell on purpose
            except OSError as error:
                os.write(write, b'{"errno": %d}' % (error.errno or 0))
            os._exit(127)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            self.error = pipe.read()

    def reap(self) -> bool:
        """Take note of processes that ended; return whether there are others, which inherit their orphans."""
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return True
                if pid == self.pid:
                    self.status = status
        return False

    def signal(self, number: int) -> list[int]:
        left = descendants(os.getpid())
        with suppress(OSError):
            if self.status is None:
                os.killpg(self.pid, number)
        for pid in left:
            with suppress(OSError):
                os.kill(pid, number)
        return left

    def stop(self, grace: float, wake: int) -> int:
        """Stop all that is left: SIGTERM, after ``grace`` SIGKILL; return how many processes that were."""
        stopped: set[int] = set()
        linger = LINGER if self.status is not None else 0.0
        for number, patience in ((0, linger), (signal.SIGTERM, grace), (signal.SIGKILL, GIVE_UP)):
            if number == signal.SIGTERM:
                stopped.update(self.signal(number))
            end = time.monotonic() + patience
            while True:
                self.reap()
                left = descendants(os.getpid())
                if not left and self.status is not None:
                    return len(stopped)
                if number:
                    stopped.update(left)
                if number == signal.SIGKILL:
                    self.signal(number)
                if time.monotonic() >= end:
                    break
                select.select([wake], [], [], 0.02)
                with suppress(BlockingIOError):
                    os.read(wake, 512)
        return len(stopped)


def main(control: int, status: int, grace: float, argv: list[str]) -> None:
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    for fd in (control, status):  # not for the command: their ends are the message
        os.set_inheritable(fd, False)
    wake, wake_write = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(wake_write, False)
    asked: list[int] = []
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, _: asked.append(number))
    start = time.monotonic()
    command = Command(argv)
    if command.error:
        os.write(status, command.error)
        return
    for fd in (0, 1, 2):  # the command has them; the caller waits for their end
        os.close(fd)
    while command.status is None and not asked:
        ready = select.select([control, wake], [], [])[0]
        if control in ready:
            break
        with suppress(BlockingIOError):
            os.read(wake, 512)
        command.reap()
    seconds = time.monotonic() - start
    ended = command.status is not None
    stopped = command.stop(grace, wake) if command.reap() or not ended else 0
    command.reap()
    with suppress(OSError):
        known = "null" if command.status is None else command.status
        os.write(status, f'{{"status": {known}, "seconds": {seconds}, "stopped": {stopped}}}'.encode())


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.argv[4:])
