package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/testkit"
)

// systemdRoot makes a copy of this system in namespaces of its own, in which systemd starts
// one unit: the script of the test, at whose folder OUT it finds it.
const systemdRoot = `set -e
mount -t tmpfs tmpfs "$BASE"
mkdir "$BASE"/{up,work,root}
mount -t overlay -o "lowerdir=/,upperdir=$BASE/up,workdir=$BASE/work" overlay "$BASE/root"
cd "$BASE/root"
for dir in run tmp dev; do mount -t tmpfs tmpfs $dir; done
for device in null zero full random urandom tty; do touch dev/$device; mount --bind /dev/$device dev/$device; done
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
touch dev/console
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount --bind "$OUT" mnt
install -m 755 "$PROGRAM" usr/bin/rollway
rm -rf etc/systemd/system etc/rollway var/lib/rollway
mkdir -p etc/systemd/system oldroot
cat >etc/systemd/system/test.service <<'UNIT'
[Unit]
DefaultDependencies=no
[Service]
Type=oneshot
ExecStart=/bin/bash /mnt/script
StandardOutput=file:/mnt/said
StandardError=inherit
UNIT
pivot_root . oldroot
umount -l oldroot
exec env container=test /lib/systemd/systemd --system --unit=test.service`

// systemdStory is run under that systemd.
const systemdStory = `cd /root; export HOME=/root
trap 'echo END' EXIT
getent passwd rollway >/dev/null || useradd --system --user-group --home-dir /var/lib/rollway --shell /usr/sbin/nologin rollway
start=$(rollway init -listen 127.0.0.1:0 | sed -n 's/^  \(cp .*\)/\1/p')
sed -i '1i listen_grpc: ""' /etc/rollway/rollway.yaml
mkdir -p /etc/systemd/system/rollway.service.d
printf '[Service]\nWatchdogSec=3s\nTimeoutStopSec=3s\nRestartSec=1s\n' >/etc/systemd/system/rollway.service.d/fast.conf
show() { systemctl show -P "$1" rollway; }
# again PID: waits for another process.
again() { for _ in {1..300}; do new=$(show MainPID); [ "$new" != 0 ] && [ "$new" != "$1" ] && [ "$(show ActiveState)" = active ] && return; sleep 0.1; done; systemctl status --no-pager rollway; }
eval "$start" 2>&1 | grep -v '^Created symlink' || true
echo "started: $(show ActiveState), $(systemctl is-enabled rollway), $(show StatusText)"
old=$(show MainPID)
sleep 5 # longer than the watchdog waits
[ "$(show MainPID)" = "$old" ] && echo "fed"
systemctl reload rollway && echo "reloaded: $(show ActiveState)"
kill -STOP "$old"
again "$old" && echo "after a hang: $(show ActiveState)"
old=$new
kill -ABRT "$old" # ends as a panic does
again "$old" && echo "after a crash: $(show ActiveState), $(show NRestarts) restarts"
systemctl stop rollway && echo "stopped: $(show ActiveState), $(show Result)"
`

// The unit that init writes, started as init says, under a real systemd: the sandbox lets the
// collector work, systemd knows when it is ready, and brings it back after a hang and a crash.
func TestUnitUnderSystemd(t *testing.T) {
	testkit.Nightly(t, testkit.Engines, "it boots systemd in namespaces")
	testkit.NoRace(t, "the race detector's memory does not fit the sandbox")
	if os.Geteuid() != 0 {
		testkit.Missing(t, "root, for namespaces")
	}
	unshare := testkit.Program(t, "unshare")
	testkit.Program(t, "/lib/systemd/systemd")
	mounts, err := os.ReadFile("/proc/mounts")
	testkit.OK(t, err)
	group := ""
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); f[2] == "cgroup2" {
			group = filepath.Join(f[1], "rollway-test-"+strconv.Itoa(os.Getpid()))
		}
	}
	if group == "" || os.Mkdir(group, 0o755) != nil {
		testkit.Missing(t, "a cgroup of version 2 to write to")
	}
	program, err := os.Executable()
	testkit.OK(t, err)
	out := t.TempDir()
	writeFile(t, filepath.Join(out, "script"), systemdStory)
	cmd := exec.Command("bash", "-c", `echo $$ >"$GROUP/cgroup.procs" && exec "$@"`, "bash",
		unshare, "--mount", "--pid", "--uts", "--ipc", "--cgroup", "--fork", "--kill-child", "--propagation=private", "bash", "-c", systemdRoot)
	cmd.Env = append(os.Environ(), "GROUP="+group, "BASE="+t.TempDir(), "OUT="+out, "PROGRAM="+program)
	var log testkit.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	testkit.OK(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	read := func() string {
		text, _ := os.ReadFile(filepath.Join(out, "said")) // not there yet
		return string(text)
	}
	for begin := time.Now(); !strings.HasSuffix(read(), "END\n") && time.Since(begin) < 2*time.Minute && len(ended) == 0; time.Sleep(50 * time.Millisecond) {
	}
	testkit.OK(t, cmd.Process.Kill())
	<-ended
	waitFor(t, "an empty cgroup", func() bool { // until all in it have ended
		return exec.Command("find", group, "-depth", "-type", "d", "-delete").Run() == nil
	})
	const want = `started: active, enabled, 0 lines stored since the start, 0 B in the journal
fed
reloaded: active
after a hang: active
after a crash: active, 2 restarts
stopped: inactive, success
END
`
	if got := read(); got != want {
		t.Errorf("got\n%s\nsystemd says\n%s", got, log.String())
	}
}
