"""
A read-only FUSE file system that shows a directory, and fails by rules.

    fault-file-system.py DIRECTORY MOUNT_POINT RULES [typed]

With `typed`, listings tell what is a directory, as those of most network file systems do.

RULES is a file with one rule per line, read again at every operation: `FAULT OPERATION PATH`. OPERATION is getattr,
open, read, readdir, or * for all; PATH is a shell pattern for the path from the root, which begins with /. The first rule that matches counts. FAULT:

    hang         no answer until the rule is removed
    slow:0.2     an answer after that many seconds
    short:5      a read yields at most that many bytes from the beginning of the file
    EIO, ESTALE  any name of an error

Prints a line when it is mounted. Ends when it is unmounted, or when the process that started it has ended: calls that hang here
would keep other processes for ever.
"""
import errno
import fnmatch
import os
import sys
import threading
import time

import fusepy as fuse

directory, mount_point, rules_file = sys.argv[1:4]
is_typed = "typed" in sys.argv[4:]


def fault_of(operation, path):
    with open(rules_file, encoding="utf-8") as file:
        lines = file.read().splitlines()
    for line in lines:
        fault, of, pattern = line.split(" ", 2)
        if of in ("*", operation) and fnmatch.fnmatchcase(path, pattern):
            return fault
    return None


parent = os.getppid()


def end_with_parent():
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


class FaultFileSystem(fuse.Operations):
    def __call__(self, operation, path, *args):
        while (fault := fault_of(operation, path)) == "hang":
            time.sleep(0.02)
        if fault is not None and fault.startswith("slow:"):
            time.sleep(float(fault[5:]))
        elif fault is not None and fault.startswith("E"):
            raise fuse.FuseOSError(getattr(errno, fault))
        result = super().__call__(operation, path, *args)
        if operation == "read" and fault is not None and fault.startswith("short:"):
            return result[: max(0, int(fault[6:]) - args[1])]
        return result

    def init(self, _path):
        threading.Thread(target=end_with_parent, daemon=True).start()
        print("mounted", flush=True)

    def getattr(self, path, fh=None):
        stat = os.lstat(directory + path)
        names = "st_mode st_nlink st_uid st_gid st_size st_ino st_dev".split()
        times = {f"st_{which}time": getattr(stat, f"st_{which}time_ns") for which in "amc"}
        return {name: getattr(stat, name) for name in names} | times

    def readdir(self, path, fh):
        if not is_typed:
            return [".", "..", *os.listdir(directory + path)]
        entries = os.scandir(directory + path)
        return [".", "..", *((entry.name, {"st_mode": entry.stat(follow_symlinks=False).st_mode}, 0) for entry in entries)]

    def readlink(self, path):
        return os.readlink(directory + path)

    def open(self, path, flags):
        return os.open(directory + path, flags)

    def read(self, path, size, offset, fh):
        return os.pread(fh, size, offset)

    def release(self, path, fh):
        os.close(fh)


# Times in nanoseconds. The kernel caches nothing, so that every call comes here.
FaultFileSystem.use_ns = True
fuse.FUSE(
    FaultFileSystem(),
    mount_point,
    foreground=True,
    ro=True,
    allow_other=os.getuid() == 0,
    direct_io=True,
    attr_timeout=0,
    entry_timeout=0,
    negative_timeout=0,
    fsname="zpublish-test",
)
