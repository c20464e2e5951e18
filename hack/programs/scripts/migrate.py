# Migrates a guest over RDMA: migrate.py source|destination ADDRESS [shared]. The guest is stopped. Its memory contains
# a file of random bytes, which the destination compares. Shared memory is a memfd, as for guests whose devices are
# other processes (vhost-user, virtiofs).
import atexit
import json
import os
import subprocess
import sys
import time

SIZE, AT = 16 << 20, 32 << 20
FILE = os.path.abspath("guest.memory")
MEMORY = ["-machine", "pc,accel=tcg", "-m", "64"]
if sys.argv[3:] == ["shared"]:
    MEMORY[1] += ",memory-backend=shared"
    MEMORY += ["-object", "memory-backend-memfd,id=shared,size=64M,share=on"]


class Guest:
    def __init__(self, *options):
        share = os.path.abspath("../root/usr/share")
        self.qemu = subprocess.Popen(
            ["qemu-system-x86_64", "-L", share + "/qemu", "-L", share + "/seabios", *MEMORY, "-S", "-nodefaults",
             "-display", "none", "-net", "none", "-qmp", "stdio", *options],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        atexit.register(self.qemu.kill)
        self.tell("qmp_capabilities")

    def tell(self, command, **arguments):
        self.qemu.stdin.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self.qemu.stdin.flush()
        for line in self.qemu.stdout:
            if not line.startswith("{"):  # output of the migration
                continue
            answer = json.loads(line)
            if "error" in answer:
                sys.exit("%s: %s" % (command, answer["error"]["desc"]))
            if "return" in answer:
                return answer["return"]
        sys.exit("qemu ended at " + command)

    def migrated(self):
        while True:
            now = self.tell("query-migrate")
            if now.get("status") == "completed":
                return now
            if now.get("status") in ("failed", "cancelled"):
                sys.exit("the migration has %s: %s" % (now["status"], now.get("error-desc")))
            time.sleep(0.05)

    def end(self):
        self.tell("quit")
        self.qemu.wait()


def source(address):
    with open(FILE, "wb") as file:
        file.write(os.urandom(SIZE))
    guest = Guest("-device", "loader,file=%s,addr=%d,force-raw=on" % (FILE, AT))
    guest.tell("migrate", uri="rdma:%s:4444" % address)
    print("migrated: %d bytes" % guest.migrated()["ram"]["transferred"])
    guest.end()


def destination(address):
    guest = Guest("-incoming", "rdma:%s:4444" % address)
    guest.migrated()
    guest.tell("pmemsave", val=AT, size=SIZE, filename=FILE + ".came")
    guest.end()
    with open(FILE, "rb") as sent, open(FILE + ".came", "rb") as came:
        if sent.read() != came.read():
            sys.exit("the guest's memory differs after the migration")


{"source": source, "destination": destination}[sys.argv[1]](sys.argv[2])
