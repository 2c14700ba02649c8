"""Ways out of a sandbox that were tried, each with what must become of it.

`{W}` is the workspace, `{O}` a host folder outside, `{B}` the folder of both, `{H}` a hidden folder, `{PORT}` a TCP
listener of the host, `{PY}` the interpreter, `{HOSTPID}` a process of the host, `{TAG}`, `{U}` and `{N}` make names
unique.
A snippet prints ESC when it got out and OKLEGIT when something legitimate worked; the worker also looks at the host.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Expected = Literal["held", "allowed", "gap", "breaks", "info"]


@dataclass(frozen=True)
class Escape:
    """One attempt.

    Attributes:
        name: What pytest shows.
        expected: "held" (nothing got out), "allowed" (legitimate use works), "gap" (it gets out, THREAT_MODEL.md says
            so), "breaks" (legitimate use that does not work inside), "info" (either way).
        command: Shell text.
        unguarded: Whether the same text is run without the sandbox first, and must get out.
        setup: What is prepared for it; see `scene.py`.
        timeout_seconds: After which it is killed.
    """

    name: str
    expected: Expected
    command: str
    unguarded: bool = False
    setup: tuple[str, ...] = ()
    timeout_seconds: float = 30.0


ESCAPES = (
    Escape(
        "net-tcp-loop",
        "held",
        "{PY} - <<'E'\nimport socket;socket.create_connection(('127.0.0.1',{PORT}),2);print('ESC')\nE",
        unguarded=True,
    ),
    Escape(
        "net-udp-out",
        "held",
        "{PY} - <<'E'\nimport socket;s=socket.socket(2,2);s.sendto(b'x',('1.1.1.1',53));print('ESC')\nE",
    ),
    Escape(
        "net-own-loopback-works",
        "allowed",
        "{PY} - <<'E'\n"
        "import socket;a=socket.socket();a.bind(('127.0.0.1',0));a.listen();"
        "b=socket.create_connection(a.getsockname());print('OKLEGIT')\n"
        "E",
    ),
    Escape(
        "unix-path-stream",
        "held",
        "{PY} - <<'E'\nimport socket;s=socket.socket(1);s.connect('{O}/s.sock');print('ESC')\nE",
        unguarded=True,
    ),
    Escape(
        "unix-path-in-workspace",
        "held",
        "{PY} - <<'E'\nimport socket;s=socket.socket(1);s.connect('{W}/in.sock');print('ESC')\nE",
        unguarded=True,
    ),
    Escape(
        "unix-abstract-dgram-pair",
        "held",
        "{PY} - <<'E'\nimport socket;a,b=socket.socketpair(1,2);a.sendto(b'x','\\0rs-d-{TAG}');print('ESC')\nE",
        unguarded=True,
    ),
    Escape(
        "unix-dgram-pair-sendto",
        "held",
        "{PY} - <<'E'\nimport socket;a,b=socket.socketpair(1,2);a.sendto(b'x','{O}/d.sock');print('ESC')\nE",
        unguarded=True,
    ),
    Escape(
        "unix-dgram-pair-reconnect",
        "held",
        "{PY} - <<'E'\nimport socket;a,b=socket.socketpair(1,2);a.connect('{W}/ind.sock');a.send(b'x');print('ESC')\nE",
        unguarded=True,
    ),
    Escape(
        "unix-rawtype-pair-sendto",
        "held",
        "{PY} - <<'E'\n"
        "import ctypes,socket,os;l=ctypes.CDLL(None,use_errno=True);v=(ctypes.c_int*2)();"
        "r=l.socketpair(1,3,0,v);print(r,ctypes.get_errno());s=socket.socket(fileno=v[0]);"
        "s.sendto(b'x','{O}/d.sock');print('ESC')\n"
        "E",
        unguarded=True,
    ),
    Escape(
        "unix-seqpacket-pair-sendto",
        "held",
        "{PY} - <<'E'\n"
        "import socket\n"
        "a,b=socket.socketpair(1,5);a.sendto(b'x','{O}/d.sock')\n"
        "b.close();a.connect('{O}/s.sock');print('ESC')\n"
        "E",
    ),
    Escape(
        "unix-stream-pair-bind-listen",
        "held",
        "{PY} - <<'E'\n"
        "import socket\n"
        "a,b=socket.socketpair();b.close()\n"
        "a.bind('{W}/new.sock');a.listen();print('ESC')\n"
        "E",
    ),
    Escape(
        "unix-i386-int80",
        "held",
        "{PY} - <<'E'\n"
        "import ctypes, mmap\n"
        "# mov eax,359 (socket); mov ebx,1; mov ecx,1; xor edx,edx; int 0x80; ret\n"
        "code = bytes.fromhex('53b867010000bb01000000b90100000031d2cd805bc3')\n"
        "m = mmap.mmap(-1, 4096, prot=7)\n"
        "m.write(code)\n"
        "f = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))\n"
        "if f() >= 0:\n"
        "    print('ESC')\n"
        "E",
        unguarded=True,
    ),
    Escape(
        "unix-x32",
        "held",
        "{PY} - <<'E'\n"
        "import ctypes;l=ctypes.CDLL(None,use_errno=True);l.syscall.restype=ctypes.c_long;"
        "r=l.syscall(ctypes.c_long(0x40000000|41),ctypes.c_long(1),ctypes.c_long(1),0);"
        "print(r,ctypes.get_errno());print('ESC' if r>=0 else '')\n"
        "E",
    ),
    Escape(
        "unix-io_uring-socket",
        "held",
        "{PY} - <<'E'\n"
        "import ctypes\n"
        "l = ctypes.CDLL(None, use_errno=True)\n"
        "l.syscall.restype = ctypes.c_long\n"
        "r = l.syscall(ctypes.c_long(425), ctypes.c_long(4), ctypes.create_string_buffer(120))\n"
        "print('ESC' if r >= 0 else ctypes.get_errno())\n"
        "E",
        unguarded=True,
    ),
    Escape(
        "unix-socketpair-legit",
        "allowed",
        "{PY} - <<'E'\n"
        "import socket,asyncio;a,b=socket.socketpair();a.send(b'x');assert b.recv(1)==b'x'\n"
        "async def m():\n"
        " p=await asyncio.create_subprocess_exec('true');print(await p.wait(),'OKLEGIT')\n"
        "asyncio.run(m())\n"
        "E",
    ),
    Escape(
        "multiprocessing-pool-legit",
        "allowed",
        "{PY} - <<'E'\n"
        "import multiprocessing as m\n"
        "with m.get_context('fork').Pool(2) as p: print(p.map(abs,[-1,-2]),'OKLEGIT')\n"
        "E",
    ),
    Escape(
        "uds-server-inside-breaks",
        "breaks",
        "{PY} - <<'E'\nimport socket;s=socket.socket(1);s.bind('/tmp/a.sock');s.listen();print('OKLEGIT')\nE",
    ),
    Escape(
        "vsock",
        "held",
        "{PY} - <<'E'\nimport socket;s=socket.socket(40,1);print('ESC socket made')\nE",
    ),
    Escape(
        "netlink-diag-host",
        "held",
        "{PY} - <<'E'\nimport socket;s=socket.socket(16,3,4);print('ESC sock_diag open')\nE",
        unguarded=True,
    ),
    Escape(
        "alg-socket",
        "held",
        "{PY} - <<'E'\nimport socket;s=socket.socket(38,5,0);print('ESC AF_ALG open')\nE",
    ),
    Escape(
        "unix-inherited-fd",
        "held",
        "{PY} - <<'E'\n"
        "import socket;s=socket.socket(fileno=52);s.send(b'x');print('ESC inherited connected unix fd')\n"
        "E",
    ),
    Escape(
        "fs-write-outside",
        "held",
        "echo pwn > {O}/f",
        unguarded=True,
    ),
    Escape(
        "fs-write-home-etc",
        "held",
        "for d in /etc /usr /root /home /opt /srv /var/lib /boot; do touch $d/rs-x 2>/dev/null && echo ESC $d; done",
    ),
    Escape(
        "fs-symlink-out",
        "held",
        "ln -s {O}/f l; echo pwn > l",
        unguarded=True,
    ),
    Escape(
        "fs-symlink-dir-pre",
        "held",
        "echo pwn > d/f",
        unguarded=True,
        setup=("link_d",),
    ),
    Escape(
        "fs-hardlink-new",
        "held",
        "ln {O}/f hl && echo pwn > hl",
        unguarded=True,
    ),
    Escape(
        "fs-inherited-ro-file-fd",
        "held",
        "echo pwn > /proc/self/fd/50; {PY} - <<'E'\n"
        "import os;f=os.open('/proc/self/fd/50',os.O_RDWR);os.write(f,b'pwn')\n"
        "E",
    ),
    Escape(
        "fs-stdin-file-reopen",
        "held",
        "echo pwn > /proc/self/fd/0",
    ),
    Escape(
        "fs-inherited-dirfd",
        "held",
        "{PY} - <<'E'\nimport os;f=os.open('f',os.O_WRONLY,dir_fd=51);os.write(f,b'pwn')\nE",
    ),
    Escape(
        "fs-fifo-outside",
        "gap",
        'timeout 2 sh -c "echo pwn > {O}/fifo" && echo wrote',
        unguarded=True,
    ),
    Escape(
        "fs-remount",
        "held",
        "mount -o remount,rw / 2>&1; mount -o remount,bind,rw {O} 2>&1; echo pwn > {O}/f",
    ),
    Escape(
        "fs-umount-git",
        "held",
        "umount -l .git; umount {H}; echo pwn > .git/config; cat {H}/key",
    ),
    Escape(
        "fs-unshare-U-remount",
        "held",
        'unshare -Urm sh -c "mount -o remount,rw,bind /; mount -o remount,rw,bind {W}/.git; umount {H}; '
        'cat {H}/key; echo pwn > {O}/f; echo pwn > {W}/.git/config" ; unshare -Ur true && echo '
        "ESC-userns-made",
    ),
    Escape(
        "ns-nested-bwrap",
        "held",
        'bwrap --bind / / sh -c "echo pwn > {O}/f"; bwrap --ro-bind / / true && echo ESC-nested-userns',
    ),
    Escape(
        "ns-setns-host",
        "held",
        "nsenter -t 1 -m -n true && echo ESC; {PY} - <<'E'\n"
        "import ctypes,os;l=ctypes.CDLL(None,use_errno=True);"
        "print(l.setns(os.open('/proc/1/ns/net',0),0x40000000),ctypes.get_errno())\n"
        "E",
    ),
    Escape(
        "ns-chroot",
        "held",
        "chroot {O} /bin/true 2>&1; {PY} - <<'E'\nimport os\nos.mkdir('c')\nos.chroot('c');print('ESC chroot')\nE",
    ),
    Escape(
        "ns-mount-tmpfs",
        "held",
        "mount -t tmpfs x {W} && echo ESC",
    ),
    Escape(
        "ns-mount-proc",
        "held",
        "mkdir p; mount -t proc p p && echo ESC",
    ),
    Escape(
        "ns-mknod",
        "held",
        "mknod blk b 254 0 && cat blk | head -c 1 && echo ESC; mknod /tmp/k c 1 11 && echo hi > /tmp/k && echo ESC",
    ),
    Escape(
        "fs-dev-preexisting-node",
        "held",
        "head -c1 {W}/blk >/dev/null && echo ESC",
        setup=("node",),
    ),
    Escape(
        "fs-shm-private",
        "allowed",
        "echo x > /dev/shm/rs-{U} && echo OKLEGIT",
    ),
    Escape(
        "fs-tmp-private",
        "allowed",
        "echo x > /tmp/rs-{U}-t && echo x > /var/tmp/rs-{U}-t && echo OKLEGIT",
    ),
    Escape(
        "fs-sys-write",
        "held",
        "for f in /sys/kernel/uevent_helper /sys/power/state /sys/fs/cgroup/unified/cgroup.procs "
        "/sys/fs/cgroup/memory/cgroup.procs /sys/kernel/mm/transparent_hugepage/enabled; do (echo $$ > "
        "$f) 2>/dev/null && echo ESC $f; done; mkdir /sys/fs/cgroup/unified/rsx 2>/dev/null && echo "
        "ESC-cg",
    ),
    Escape(
        "fs-core-pattern",
        "held",
        "(echo core > /proc/sys/kernel/core_pattern) 2>&1 && echo ESC; (echo 1 > "
        "/proc/sys/vm/drop_caches) 2>&1 && echo ESC; (echo 2 > /proc/sys/kernel/randomize_va_space) "
        "2>&1 && echo ESC; (echo h > /proc/sysrq-trigger) 2>&1 && echo ESC",
    ),
    Escape(
        "kr-keyring",
        "held",
        "{PY} - <<'E'\n"
        "import ctypes;l=ctypes.CDLL(None,use_errno=True);l.syscall.restype=ctypes.c_long\n"
        "r=l.syscall(248,b'user',b'rsx',b'v',ctypes.c_size_t(1),ctypes.c_int(-4));"
        "print(r,ctypes.get_errno());print('ESC add_key' if r>0 else '')\n"
        "r=l.syscall(250,0,ctypes.c_int(-3),0);print('ESC session keyring',r) if r>0 else print(r)\n"
        "E",
    ),
    Escape(
        "kr-dmesg",
        "held",
        "dmesg 2>/dev/null | head -1 | grep . && echo ESC",
    ),
    Escape(
        "kr-bpf-perf",
        "held",
        "{PY} - <<'E'\n"
        "import ctypes;l=ctypes.CDLL(None,use_errno=True);l.syscall.restype=ctypes.c_long\n"
        "for n in(321,298,323):\n"
        " r=l.syscall(n,0,0,0,0,0);print(n,r,ctypes.get_errno())\n"
        " if ctypes.get_errno()!=1:print('ESC reachable',n)\n"
        "E",
    ),
    Escape(
        "pr-signal-host",
        "held",
        "kill -9 {HOSTPID} 2>&1; kill -0 {HOSTPID} 2>/dev/null && echo ESC",
        unguarded=True,
        setup=("victim",),
    ),
    Escape(
        "pr-ptrace-pid1",
        "held",
        'gdb -batch -p 1 -ex "call (int)socket(1,1,0)" 2>&1 | tail -2; grep -E "^Seccomp:.0" '
        "/proc/1/status && echo ESC pid1-no-seccomp",
    ),
    Escape(
        "pr-proc1-environ",
        "held",
        'tr "\\0" "\\n" < /proc/1/environ | grep HOSTSECRET && echo ESC',
    ),
    Escape(
        "tty-tiocsti",
        "held",
        "{PY} - <<'E'\nimport fcntl,termios,os\nf=os.open('/dev/tty',2)\nfcntl.ioctl(f,0x5412,b'x');print('ESC')\nE",
    ),
    Escape(
        "tty-tiocsti-own-pty",
        "held",
        "{PY} - <<'E'\n"
        "import fcntl,os,pty\n"
        "m,s=pty.openpty()\n"
        "import ctypes\n"
        "os.setsid() if os.fork()==0 else os._exit(0)\n"
        "fcntl.ioctl(s,0x540E,0)\n"
        "fcntl.ioctl(s,0x5412,b'x');print('ESC-ioctl-ok')\n"
        "E",
    ),
    Escape(
        "pr-memfd-exec",
        "allowed",
        "{PY} - <<'E'\n"
        "import os;f=os.memfd_create('x');os.write(f,open('/bin/true','rb').read());"
        "os.execv('/proc/self/fd/%d'%f,['true'])\n"
        "E\n"
        "echo OKLEGIT; echo pwn > {O}/f",
    ),
    Escape(
        "ti-git-write",
        "held",
        "echo pwn > .git/hooks/pre-commit; echo pwn >> .git/config; git config core.hooksPath /tmp/x; "
        'git config core.fsmonitor "sh -c id"',
        unguarded=True,
    ),
    Escape(
        "ti-git-rename",
        "held",
        "mv .git g2; mkdir .git && echo ESC; rm -rf .git",
        unguarded=True,
    ),
    Escape(
        "ti-git-rename-exchange",
        "held",
        "{PY} - <<'E'\n"
        "import ctypes;l=ctypes.CDLL(None,use_errno=True)\n"
        "import os;os.mkdir('e');open('e/config','w').write('pwn')\n"
        "print(l.renameat2(-100,b'e',-100,b'.git',2),ctypes.get_errno())\n"
        "E",
        unguarded=True,
    ),
    Escape(
        "ti-ws-rename",
        "held",
        "cd ..; mv ws ws2 && echo ESC; cd {B} && mkdir new 2>/dev/null && echo ESC",
        unguarded=True,
    ),
    Escape(
        "ti-mcp-replace",
        "held",
        "echo pwn > n; mv -f n .mcp.json; rm -f .mcp.json; ln -sf /tmp/x .mcp.json; truncate -s0 .mcp.json",
        unguarded=True,
    ),
    Escape(
        "ti-claude-dir-rename",
        "held",
        "mv .claude c2; mkdir .claude; echo pwn > .claude/settings.json",
        unguarded=True,
    ),
    Escape(
        "ti-nested-protect-parent-rename",
        "held",
        "mv sub sub2; mkdir -p sub/hooks; echo pwn > sub/hooks/pre-commit",
        unguarded=True,
        setup=("nested",),
    ),
    Escape(
        "ti-hardlink-trust",
        "gap",
        "echo pwn > alias",
        unguarded=True,
        setup=("alias",),
    ),
    Escape(
        "ti-create-absent",
        "held",
        "mkdir -p .vscode; echo pwn > .vscode/tasks.json; echo pwn > AGENTS.md; ln -s /etc/passwd "
        ".envrc; mkfifo .bashrc",
        unguarded=True,
    ),
    Escape(
        "ti-create-absent-hidden-by-bg",
        "held",
        '(setsid sh -c "sleep 1; echo pwn > CLAUDE.md" >/dev/null 2>&1 &) ; true',
        unguarded=True,
    ),
    Escape(
        "ti-nested-git",
        "allowed",
        "mkdir -p sub/.git/hooks && echo pwn > sub/.git/hooks/pre-commit && git init -q n2 && echo OKLEGIT",
    ),
    Escape(
        "ti-host-rename-over",
        "gap",
        "sleep 1.5; echo pwn > .mcp.json",
        unguarded=True,
        setup=("host_replaces_mcp",),
    ),
    Escape(
        "ti-host-rename-over-git-inner",
        "held",
        "sleep 1.5; echo pwn > .git/config",
        unguarded=True,
        setup=("host_replaces_git_config",),
    ),
    Escape(
        "ti-gitfile-pointer",
        "held",
        "echo pwn > gd/config",
        unguarded=True,
        setup=("gitfile",),
    ),
    Escape(
        "hid-read-dir",
        "held",
        "cat {H}/key && echo ESC; ls {H} && echo listed; chmod 755 {H}; ls -A {H} | grep . && echo ESC",
        unguarded=True,
    ),
    Escape(
        "hid-read-file",
        "held",
        "cat {B}/hidfile | grep TOPSECRET && echo ESC",
        unguarded=True,
    ),
    Escape(
        "hid-symlink-from-ws",
        "held",
        "ln -s {H}/key k; cat k | grep TOPSECRET && echo ESC",
        unguarded=True,
    ),
    Escape(
        "hid-other-paths",
        "held",
        "cat /proc/self/root{H}/key /proc/1/root{H}/key /proc/thread-self/root{H}/key 2>/dev/null | "
        "grep TOPSECRET && echo ESC",
        unguarded=True,
    ),
    Escape(
        "hid-hardlink-pre",
        "gap",
        "grep TOPSECRET hk && echo ESC",
        unguarded=True,
        setup=("hidden_alias",),
    ),
    Escape(
        "hid-open-by-handle",
        "held",
        "{PY} - <<'E'\n"
        "import ctypes,os\n"
        "l=ctypes.CDLL(None,use_errno=True)\n"
        "b=ctypes.create_string_buffer(200);b[0:4]=(128).to_bytes(4,'little');m=ctypes.c_int()\n"
        "r=l.name_to_handle_at(-100,b'{W}/.mcp.json',b,ctypes.byref(m),0);print(r,ctypes.get_errno())\n"
        "fd=os.open('{W}',0);r=l.open_by_handle_at(fd,b,0);print(r,ctypes.get_errno());print('ESC' if r>=0 else '')\n"
        "E",
    ),
    Escape(
        "hid-host-rename-over-file",
        "gap",
        "sleep 1.5; grep TOPSECRET {B}/hidfile && echo ESC",
        unguarded=True,
        setup=("host_replaces_hidden_file",),
    ),
    Escape(
        "hid-in-workspace-parent-rename",
        "held",
        "mv a b; cat b/key | grep TOPSECRET && echo ESC",
        unguarded=True,
        setup=("hidden_inside",),
    ),
    Escape(
        "pt-daemon-left",
        "held",
        'setsid sh -c "exec >/dev/null 2>&1 </dev/null; sleep 7731{N}" & sleep 0.2; true',
        unguarded=True,
    ),
    Escape(
        "pt-timeout-kill",
        "held",
        '(setsid sleep 7732{N} >/dev/null 2>&1 &); (trap "" TERM INT HUP; sleep 7732{N})',
        timeout_seconds=1.0,
    ),
    Escape(
        "lim-nproc",
        "info",
        "exec bash -c 'ulimit -u 40; n=0; for i in $(seq 120); do sleep 2 & done 2>/tmp/e; grep -c -i "
        '-E "resource|cannot fork" /tmp/e | grep -v "^0" && echo LIMITED; true\'',
    ),
    Escape(
        "lim-tmp-size",
        "held",
        'head -c 1200M /dev/zero > /tmp/big 2>/dev/null; ls -l /tmp/big | cut -d" " -f5; [ $(stat -c %s '
        "/tmp/big) -gt 1073741824 ] && echo ESC",
    ),
    Escape(
        "ti-quarantine-race-bg-writers",
        "held",
        "for i in 1 2 3 4 5 6 7 8; do setsid sh -c 'while :; do echo pwn > CLAUDE.md; done' >/dev/null "
        "2>&1 & done; sleep 0.3",
        unguarded=True,
    ),
)
