//go:build unix

package collector

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rollway/rollway/internal/testkit"
)

// Files of secrets that other users can read, and a data folder that they can write, are
// warned of at the start and when the configuration is read again.
func TestFilesOpenToOthers(t *testing.T) {
	cfg := testConfig(t)
	cfg.Access.Tokens = filepath.Join(t.TempDir(), "tokens.yaml")
	testkit.OK(t, os.WriteFile(cfg.Access.Tokens, []byte("- {name: a, secret: 0123456789abcdef}\n"), 0o600))
	if list := FileWarnings(cfg); len(list) > 0 {
		t.Errorf("%v", list)
	}
	testkit.OK(t, os.MkdirAll(cfg.Data, 0o750))
	testkit.OK(t, os.Chmod(cfg.Data, 0o777))
	testkit.OK(t, os.Chmod(cfg.Access.Tokens, 0o644))
	r := run(t, cfg)
	for _, want := range []string{"access.tokens: other users of this machine can read " + cfg.Access.Tokens, "can write to " + cfg.Data} {
		if !strings.Contains(r.log.String(), want) {
			t.Errorf("%q is not in the log:\n%s", want, r.log.String())
		}
	}
	testkit.OK(t, os.Chmod(cfg.Access.Tokens, 0o646))
	testkit.OK(t, r.Reload(cfg))
	if !strings.Contains(r.log.String(), "can read and write "+cfg.Access.Tokens) {
		t.Errorf("after a reload:\n%s", r.log.String())
	}
	// A FIFO is an error, and not waited for.
	testkit.OK(t, os.Remove(cfg.Access.Tokens))
	testkit.OK(t, syscall.Mkfifo(cfg.Access.Tokens, 0o600))
	if err := CheckFiles(cfg); err == nil || !strings.Contains(err.Error(), "a FIFO") {
		t.Errorf("%v", err)
	}
}
