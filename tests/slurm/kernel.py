"""System calls of Linux that Python 3.9 lacks: namespaces, mounts, and a signal at the death of the parent."""

import ctypes
import fcntl
import os
import signal
import socket
import struct

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x20000, 0x4000000, 0x8000000
CLONE_NEWPID, CLONE_NEWNET = 0x20000000, 0x40000000
MS_RDONLY, MS_BIND, MS_REC, MS_PRIVATE = 1, 0x1000, 0x4000, 0x40000
MNT_DETACH = 2
PR_SET_PDEATHSIG = 1

libc = ctypes.CDLL(None, use_errno=True)


def call(name, *arguments):
    if getattr(libc, name)(*arguments) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}{arguments}: {os.strerror(code)}")


def unshare(flags):
    call("unshare", flags)


def setns(fd, flags):
    call("setns", fd, flags)


def mount(source, target, kind=None, flags=0, options=None):
    call("mount", *(os.fsencode(text) if text is not None else None for text in (source, target, kind)), ctypes.c_ulong(flags),
         os.fsencode(options) if options is not None else None)


def bind(source, target):
    """`source`, with what is mounted below it, appears at `target` too."""
    mount(source, target, None, MS_BIND | MS_REC)


def unmount(target):
    call("umount2", os.fsencode(target), MNT_DETACH)


def die_with_parent():
    call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def set_host_name(name):
    call("sethostname", name.encode(), len(name))


def start_network(addresses):
    """Gives a new network namespace its loopback device, with further addresses."""
    SIOCSIFFLAGS, SIOCSIFADDR, IFF_UP = 0x8914, 0x8916, 1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))
        for index, address in enumerate(addresses):
            fcntl.ioctl(any_socket, SIOCSIFADDR,
                        struct.pack("16sHH4s8x", f"lo:{index}".encode(), socket.AF_INET, 0, socket.inet_aton(address)))


def make_mounts_private():
    """What this mount namespace mounts from now on is seen in it alone. Works in a chroot too, whose / is no mount."""
    here = os.open("/", os.O_PATH | os.O_DIRECTORY)
    os.chroot("/proc")  # with the current folder outside the root, .. leads to the namespace's own /
    os.fchdir(here)
    while not os.path.samefile(".", ".."):
        os.chdir("..")
    os.chroot(".")
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    os.fchdir(here)
    os.chroot(".")
    os.close(here)
