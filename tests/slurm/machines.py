"""The machines of a cluster: processes of this one, in namespaces of their own.

    keeper          has the mounts and the network that the machines share; outside their process namespaces; a cluster lives as long
      monitor       one for each machine; ends it when the keeper ends
        pid 1       of the machine; all its processes die with it, as at a power cut

Each machine has its own host name, boot id, processes, /tmp, /local, /run and /dev/shm. All have the host's files at the same paths,
with the packages of Slurm in /usr, and the cluster's shared folder. None of this is visible outside.
"""

import contextlib
import os
import pathlib
import select
import signal
import stat
import sys
import traceback
import uuid

import configuration
import kernel
import processes

ROOT = "/run"  # where the machines' file system is mounted, for the keeper
PRIVATE = ["tmp", "local", "run", "dev/shm"]


def why_not():
    """Why there can be no machines here; "" if there can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "needs root"
    if not os.path.islink("/bin"):
        return "needs a system with /bin in /usr"
    child = os.fork()
    if child == 0:
        try:
            kernel.unshare(kernel.CLONE_NEWNS | kernel.CLONE_NEWNET | kernel.CLONE_NEWPID | kernel.CLONE_NEWUTS | kernel.CLONE_NEWIPC)
            kernel.make_mounts_private()
            kernel.mount("tmpfs", ROOT, "tmpfs")
            overlay("/etc", "/etc")
        except OSError:
            os._exit(1)
        os._exit(0)
    return "needs namespaces and overlay mounts" if os.waitpid(child, 0)[1] else ""


def overlay(folder, *below):
    """Mounts `below`, the first on top, at `folder` of the machines' file system. What is written there goes nowhere else."""
    upper, work = (f"{ROOT}/.{kind}{folder}" for kind in ("upper", "work"))
    for path in (upper, work, ROOT + folder):
        os.makedirs(path)
    kernel.mount("overlay", ROOT + folder, "overlay", 0, f"lowerdir={':'.join(map(str, below))},upperdir={upper},workdir={work}")


def build_root(packages, slurm_conf):
    """The machines' file system, at ROOT."""
    kernel.mount("tmpfs", ROOT, "tmpfs", 0, "mode=755")
    for entry in os.scandir("/"):
        target = f"{ROOT}/{entry.name}"
        if entry.is_symlink():
            os.symlink(os.readlink(entry), target)
        elif entry.name in ("usr", "etc"):
            overlay(f"/{entry.name}", packages / entry.name, f"/{entry.name}")
        elif entry.name in ("proc", "run", "tmp", "local"):
            os.mkdir(target)
        elif entry.is_dir():
            os.mkdir(target)
            kernel.bind(entry.path, target)
    groups = f"{ROOT}/sys/fs/cgroup"
    if not os.path.ismount(groups):  # as in a chroot; slurmd looks what is mounted there, and does no more with it
        kernel.mount("tmpfs", groups, "tmpfs")
        os.mkdir(f"{groups}/systemd")
        kernel.mount("cgroup", f"{groups}/systemd", "cgroup", 0, "none,name=systemd")
    os.makedirs(f"{ROOT}/local", exist_ok=True)
    os.makedirs(f"{ROOT}/etc/slurm", exist_ok=True)
    kernel.bind(slurm_conf, f"{ROOT}/etc/slurm")
    pathlib.Path(f"{ROOT}/etc/machine-id").touch()
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"{ROOT}/etc/hosts")
    pathlib.Path(f"{ROOT}/etc/hosts").write_text(
        "127.0.0.1 localhost\n" + "".join(f"{address} {name}\n" for name, address in configuration.ADDRESSES.items()))


def become(name, folder, visible):
    """Makes pid 1 of a new process namespace the machine of that name."""
    kernel.set_host_name(name)
    for path in PRIVATE:
        kernel.mount("tmpfs", f"{ROOT}/{path}", "tmpfs", 0, "mode=755" if path == "run" else "mode=1777")
    kernel.mount("proc", f"{ROOT}/proc", "proc")
    for path in visible:
        os.makedirs(f"{ROOT}{path}", exist_ok=True)
        kernel.bind(path, f"{ROOT}{path}")
    os.mkdir(ROOT + configuration.RUN)
    kernel.bind(folder, ROOT + configuration.RUN)
    for file, target, text in [("boot-id", "proc/sys/kernel/random/boot_id", str(uuid.uuid4())),
                               ("machine-id", "etc/machine-id", uuid.uuid4().hex)]:
        pathlib.Path(f"{ROOT}/run/{file}").write_text(f"{text}\n")
        kernel.bind(f"{ROOT}/run/{file}", f"{ROOT}/{target}")
    os.mkdir(ROOT + configuration.GPU_FOLDER)
    for index in range(len(configuration.GPUS_OF.get(name, []))):
        os.mknod(f"{ROOT}{configuration.GPU_FOLDER}/gpu{index}", 0o666 | stat.S_IFCHR, os.makedev(1, 3))  # it behaves as /dev/null
    os.chroot(ROOT)
    os.chdir("/")


def detach(log, but=()):
    """Leaves the caller's standard streams for a log, and closes all other descriptors but these."""
    null, output = os.open("/dev/null", os.O_RDONLY), os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for old, new in [(null, 0), (output, 1), (output, 2)]:
        os.dup2(old, new)
    for fd in map(int, os.listdir("/proc/self/fd")):
        if fd > 2 and fd not in but:
            with contextlib.suppress(OSError):
                os.close(fd)


def reap_forever():
    """What pid 1 has to do."""
    detach("/dev/null")
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    while True:
        signal.sigwait([signal.SIGCHLD])
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


class Machines:
    """Those of one cluster, whose folder knows them by their pids."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder).resolve()
        self.pids = self.folder / "machines"

    @property
    def keeper(self):
        return processes.recall(self.pids / "keeper")

    def pid(self, name):
        """Of the machine's pid 1, None where it has ended."""
        return processes.recall(self.pids / name)

    def keep(self, packages, visible, lives_with, when_up):
        """Makes this process the keeper, calls `when_up`, and returns when the process `lives_with` (0: none) ends or SIGTERM comes."""
        stop, ask_to_stop = os.pipe()
        signal.signal(signal.SIGTERM, lambda *_: os.write(ask_to_stop, b" "))
        ends = [stop, os.pidfd_open(lives_with)] if lives_with else [stop]
        self.pids.mkdir()
        visible = [str(pathlib.Path(path).resolve()) for path in (self.folder / "shared", *visible)]
        (self.pids / "visible").write_text("".join(f"{path}\n" for path in visible))
        kernel.unshare(kernel.CLONE_NEWNS | kernel.CLONE_NEWNET | kernel.CLONE_NEWUTS | kernel.CLONE_NEWIPC)
        kernel.make_mounts_private()
        kernel.start_network(configuration.ADDRESSES.values())
        build_root(packages, self.folder / "etc")
        processes.remember(self.pids / "keeper", os.getpid())
        for name in configuration.MACHINES:
            self.boot(name)
        when_up()
        select.select(ends, [], [])
        for name in configuration.MACHINES:
            with contextlib.suppress(TypeError, ProcessLookupError):
                os.kill(self.pid(name), signal.SIGKILL)

    def boot(self, name):
        """Starts a machine, in a process that is the keeper or has entered its namespaces."""
        keeper = os.pidfd_open(self.keeper)
        ready, is_ready = os.pipe()
        if os.fork() == 0:
            try:
                os.setsid()
                detach(self.folder / "log/cluster.log", {keeper, is_ready})
                self.monitor(name, keeper, is_ready)
            except BaseException:
                traceback.print_exc()
            os._exit(0)
        os.close(is_ready)
        os.close(keeper)
        with open(ready) as pipe:
            if pipe.read() != "ready":  # its end: machine and monitor have closed it
                raise RuntimeError(f"machine {name} did not start: see {self.folder}/log/cluster.log")

    def monitor(self, name, keeper, is_ready):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        kernel.unshare(kernel.CLONE_NEWNS | kernel.CLONE_NEWPID | kernel.CLONE_NEWUTS)
        machine = os.fork()
        if machine == 0:
            kernel.die_with_parent()
            become(name, self.folder, (self.pids / "visible").read_text().splitlines())
            os.write(is_ready, b"ready")
            reap_forever()
        processes.remember(self.pids / name, machine)
        os.close(is_ready)
        select.select([keeper, os.pidfd_open(machine)], [], [])
        with contextlib.suppress(ProcessLookupError):
            os.kill(machine, signal.SIGKILL)
        os.waitpid(machine, 0)

    def enter(self, name=None):
        """Puts this process, and with its next child also that one's processes, into a machine; without a name beside the keeper."""
        pid = self.pid(name) if name else self.keeper
        if pid is None:
            raise RuntimeError(f"{name} does not run" if name else "the cluster does not run")
        root = os.open(f"/proc/{pid}/root", os.O_PATH)
        shared = kernel.CLONE_NEWNS | kernel.CLONE_NEWNET | kernel.CLONE_NEWUTS | kernel.CLONE_NEWIPC
        kernel.setns(os.pidfd_open(pid), shared | (kernel.CLONE_NEWPID if name else 0))
        os.fchdir(root)
        os.chroot(".")
        os.close(root)

    def processes_of(self, name):
        """{pid, as seen from outside: its command line} of all processes of a machine but its pid 1."""
        first = self.pid(name)
        if first is None:
            return {}
        namespace = os.readlink(f"/proc/{first}/ns/pid")
        found = {}
        for entry in os.listdir("/proc"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
                if entry.isdigit() and int(entry) != first and os.readlink(f"/proc/{entry}/ns/pid") == namespace:
                    words = pathlib.Path(f"/proc/{entry}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
                    if processes.is_alive(int(entry)):
                        found[int(entry)] = os.fsdecode(b" ".join(words))
        return found
