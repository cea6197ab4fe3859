// Package fetch runs commands that download what tests need. It is for tests and tools.
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

// pauses are those between attempts: a registry fails now and then.
var pauses = []time.Duration{3 * time.Second, 15 * time.Second, time.Minute}

// ErrAbsent says that something is not in the user's cache and may not be fetched.
var ErrAbsent = errors.New("it is not in the cache, and may not be fetched")

// Dir returns the folder in the user's cache that has this name. If it is missing, and may is
// set, the files are put there as by [Into].
func Dir(name string, may bool, install func(part string) *exec.Cmd) (string, error) {
	return cached(name, may, func(dir string) error { return Into(dir, install) })
}

// cached returns the path in the user's cache that has this name. If nothing is there, and may
// is set, it calls put with the path.
func cached(name string, may bool, put func(path string) error) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(cache, "rollway-test", name)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if !may {
		return "", fmt.Errorf("%s: %w", path, ErrAbsent)
	}
	return path, put(path)
}

// Pip returns the command by which Python puts packages of PyPI into dir.
func Pip(dir string, packages ...string) *exec.Cmd {
	return exec.Command("python3", append([]string{"-m", "pip", "install", "-q", "--disable-pip-version-check",
		"--no-warn-script-location", "--root-user-action=ignore", "--target", dir}, packages...)...)
}

// Into runs a command in a new folder, into which it puts files, and renames that to dir
// once the command succeeds. A command that fails is run [Again], in another folder.
func Into(dir string, install func(part string) *exec.Cmd) error {
	return Again(func() error { return once(dir, install) })
}

// Again calls try until it returns nil, a few times and with pauses, unless a program is
// missing.
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
