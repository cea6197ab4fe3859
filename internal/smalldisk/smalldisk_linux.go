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

// Dir returns the folder of a child process, in which Child runs a test again, and "" in
// any other process.
func Dir() string { return os.Getenv(env) }

// Child runs the test again in a process with attr, started by the command wrap
// if there is one, and with a folder of its own. It returns the child's output without
// the lines on passed tests, and an error unless its test has passed.
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
	return quiet.ReplaceAllString(string(out), ""), err
}

// quiet are the lines of -test.v about tests that began, waited or passed.
var quiet = regexp.MustCompile(`(?m)^(=== (RUN|PAUSE|CONT|NAME)|[ \t]*--- PASS:).*\n`)

// Mount runs the test in a child with a tmpfs, limited by options of mount such as
// "size=128k". It returns the folder in the child, and "" in the parent, whose test is
// then over. The test is skipped where mounting is not permitted, or fails with
// REQUIRE=all.
func Mount(t testing.TB, options string) (dir string) {
	t.Helper()
	if dir = Dir(); dir == "" {
		attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
		if os.Getuid() != 0 {
			attr.Cloneflags |= syscall.CLONE_NEWUSER
			attr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
			attr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
		}
		out, err := Child(t, attr)
		switch {
		case errors.Is(err, syscall.EPERM) || strings.Contains(out, "cannot mount"):
			testkit.Missing(t, fmt.Sprintf("to mount a tmpfs in a namespace of its own, as root or where users may: %v %s", err, out))
		case err != nil:
			t.Fatalf("%v\n%s", err, out)
		}
		return ""
	}
	// Private: otherwise the mount would be visible outside the namespace.
	err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "")
	if err == nil {
		err = syscall.Mount("tmpfs", dir, "tmpfs", 0, options)
	}
	if err != nil {
		fmt.Println("cannot mount:", err)
		os.Exit(1)
	}
	return dir
}

// Remount changes the limits of Mount.
func Remount(t testing.TB, dir, options string) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, options); err != nil {
		t.Fatal(err)
	}
}
