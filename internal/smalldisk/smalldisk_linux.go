package smalldisk

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/rollway/rollway/internal/testkit"
)

const env = "ROLLWAY_TEST_CHILD"

// Dir returns the folder of a child process of Child, and "" in any other process.
func Dir() string { return os.Getenv(env) }

// Child runs the test again in a process with attr, started by the command wrap if there is
// one, with a folder of its own. It returns the child's output without the lines on passed
// tests, and an error unless the test has passed. The child's attributes are the test's too.
func Child(t testing.TB, attr *syscall.SysProcAttr, wrap ...string) (output string, err error) {
	t.Helper()
	args := append(wrap, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), env+"="+t.TempDir())
	cmd.SysProcAttr = attr
	out, err := cmd.CombinedOutput()
	if err == nil && !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		err = errors.New("the child did not run the test")
	}
	for _, m := range attribute.FindAllSubmatch(out, -1) {
		t.Attr(string(m[1]), string(m[2]))
	}
	return quiet.ReplaceAllString(string(out), ""), err
}

var attribute = regexp.MustCompile(`(?m)^=== ATTR +\S+ (\S+) (.*)$`)

var quiet = regexp.MustCompile(`(?m)^(=== (RUN|PAUSE|CONT|NAME)|[ \t]*--- PASS:).*\n`)

// Mount runs the test in a child with a tmpfs, limited by options of mount such as
// "size=128k". It returns the folder in the child, and "" in the parent, whose test is then
// over. Where mounting is not permitted, the test is skipped, or fails with REQUIRE=all.
func Mount(t testing.TB, options string) (dir string) {
	t.Helper()
	attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	if dir = namespace(t, attr); dir == "" {
		return ""
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		cannotMount(err)
	}
	return dir
}

// namespace runs the test in a child with a mount namespace of its own. It returns a
// folder in the child, and "" in the parent.
func namespace(t testing.TB, attr *syscall.SysProcAttr) string {
	t.Helper()
	if dir := Dir(); dir != "" {
		// Private: otherwise mounts would be visible outside the namespace.
		if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
			cannotMount(err)
		}
		return dir
	}
	out, err := Child(t, attr)
	switch {
	case errors.Is(err, syscall.EPERM) || strings.Contains(out, "cannot mount"):
		testkit.Missing(t, fmt.Sprintf("to mount a file system in a namespace of its own, as root or where users may: %v %s", err, out))
	case err != nil:
		t.Fatalf("%v\n%s", err, out)
	}
	return ""
}

func cannotMount(why ...any) {
	fmt.Println(append([]any{"cannot mount:"}, why...)...)
	os.Exit(1)
}

// Remount changes the limits of Mount.
func Remount(t testing.TB, dir, options string) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, options); err != nil {
		t.Fatal(err)
	}
}
