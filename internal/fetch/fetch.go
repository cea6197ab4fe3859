// Package fetch has commands get what tests need from a registry. It is for tests
// and tools.
package fetch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// pauses are waited out between attempts: a registry, or the way to it, fails now
// and then.
var pauses = []time.Duration{3 * time.Second, 15 * time.Second, time.Minute}

// Into has a command put files into a new folder, which it is run in, and gives
// that the name dir once the command has ended well. A command that fails is run
// [Again], in another folder.
func Into(dir string, install func(part string) *exec.Cmd) error {
	return Again(func() error { return once(dir, install) })
}

// Again calls try until it returns nil, a few times and with pauses. That a
// program is not there is no reason to try again.
func Again(try func() error) error {
	err := try()
	for n := 0; err != nil && !errors.Is(err, exec.ErrNotFound) && n < len(pauses); n++ {
		time.Sleep(pauses[n])
		err = try()
	}
	if err != nil && !errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("%d attempts failed, the last with %w", len(pauses)+1, err)
	}
	return err
}

func once(dir string, install func(part string) *exec.Cmd) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	part, err := os.MkdirTemp(filepath.Dir(dir), "part")
	if err != nil {
		return err
	}
	defer os.RemoveAll(part)
	cmd := install(part)
	cmd.Dir = part
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	if err := os.Rename(part, dir); err != nil && !errors.Is(err, fs.ErrExist) { // another process was faster
		return err
	}
	return nil
}
