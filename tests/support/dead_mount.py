# dead_mount.py DIR [--inside | --read] -- COMMAND…: runs a command while DIR is a FUSE mount that never answers. With --inside
# the command runs in it: the mount answers until the command has started. With --read it answers until something is to be
# written. Exit code 77: no such mount can be made here.
import ctypes, os, select, struct, subprocess, sys, threading

at = sys.argv.index("--")
mount, inside, read, command = sys.argv[1], "--inside" in sys.argv[:at], "--read" in sys.argv[:at], sys.argv[at + 1:]
libc = ctypes.CDLL(None, use_errno=True)
try:
    fuse = os.open("/dev/fuse", os.O_RDWR)
except OSError as error:
    print(error, file=sys.stderr)
    sys.exit(77)
options = f"fd={fuse},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}"
if libc.mount(b"dead", mount.encode(), b"fuse", 0, options.encode()) != 0:
    print("mount:", os.strerror(ctypes.get_errno()), file=sys.stderr)
    sys.exit(77)
dead = threading.Event()

def serve():
    while not dead.is_set():
        # Nothing is read that will not be answered: whoever waits for that cannot even be killed.
        if not select.select([fuse], [], [], 0.01)[0] or dead.is_set():
            continue
        request = os.read(fuse, 1 << 20)
        _, opcode, unique, node = struct.unpack("<IIQQ", request[:24])
        error, answer = -38, b""
        if opcode == 26:
            error, answer = 0, struct.pack("<IIIIHHI", 7, 31, 65536, 0, 12, 9, 131072).ljust(64, b"\0")
        elif opcode == 3 and node == 1:
            attributes = struct.pack("<6Q10I", 1, 0, 0, 0, 0, 0, 0, 0, 0, 0o40755, 2, 0, 0, 0, 4096, 0)
            error, answer = 0, struct.pack("<QII", 0, 0, 0) + attributes
        elif opcode == 1:
            error = -2
        elif opcode in (8, 35, 51):
            # To make a file. The kernel asks again in another way, and waits.
            dead.set()
        os.write(fuse, struct.pack("<IiQ", 16 + len(answer), error, unique) + answer)

if inside or read:
    threading.Thread(target=serve, daemon=True).start()
# With vfork nothing here runs until the command has started, and the mount would not answer when the command goes to its directory.
subprocess._USE_VFORK = False
child = subprocess.Popen(command, cwd=mount if inside else None)
if not read:
    dead.set()
try:
    code = child.wait(timeout=30)
except subprocess.TimeoutExpired:
    child.kill()
    print("it hangs", file=sys.stderr)
    code = 99
os._exit(code)
