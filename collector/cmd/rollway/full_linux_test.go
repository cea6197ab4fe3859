package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rollway/rollway/internal/smalldisk"
)

// A full disk is said, to clients and by /readyz, costs nothing that was
// answered for, and is over when there is room again.
func TestFullDisk(t *testing.T) {
	dir := smalldisk.Mount(t, "size=12m")
	if dir == "" {
		return
	}
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 6<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	d := serveDaemon(t, "-data", filepath.Join(dir, "data"))
	defer d.kill()
	filler := strings.Repeat("x", 100<<10)
	stored, code, body := 0, 200, ""
	for ; stored < 1000; stored++ {
		if code, body = d.post(t, fmt.Sprintf(`{"msg":"%d","filler":"%s"}`, stored, filler)); code != 200 {
			break
		}
	}
	if code != 503 || !strings.Contains(body, "the journal is full") || stored < 20 {
		t.Fatalf("after %d lines: %d %s", stored, code, body)
	}
	if code, body := d.get(t, "/readyz"); code != 503 || !strings.Contains(body, "no space left on device") {
		t.Errorf("/readyz of a full collector: %d %s", code, body)
	}
	if code, body := d.get(t, "/healthz"); code != 200 {
		t.Errorf("/healthz of a full collector: %d %s", code, body)
	}
	if _, body := d.get(t, "/metrics"); !strings.Contains(body, "\nrollway_ready 0\n") || strings.Contains(body, "\nrollway_journal_full_total 0\n") {
		t.Error("the metrics do not say that the journal is full")
	}
	if found := d.query(t); len(found) != stored {
		t.Errorf("%d lines were answered for, %d are found", stored, len(found))
	}
	full := filepath.Join(t.TempDir(), "a.log")
	writeFile(t, full, strings.Repeat(filler+"\n", 10))
	cli(t, "", "send", "-addr", d.addr, "-state", t.TempDir(), "-retry", "100ms", full).want(t, 1, "503 Service Unavailable: the journal is full")

	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if code, body := d.get(t, "/readyz"); code != 200 {
		t.Errorf("/readyz with room again: %d %s", code, body)
	}
	if code, body := d.post(t, `{"msg":"room"}`); code != 200 {
		t.Errorf("with room again: %d %s", code, body)
	}
	if found := d.query(t); len(found) != stored+1 {
		t.Errorf("%d lines were answered for, %d are found", stored+1, len(found))
	}
	d.end(t)
}

// A data folder that cannot be written to is an error at the start.
func TestReadOnlyDisk(t *testing.T) {
	dir := smalldisk.Mount(t, "size=1m")
	if dir == "" {
		return
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	cli(t, "", "serve", "-listen", "127.0.0.1:0", "-data", dir).want(t, 1, "the data folder "+dir+" cannot be used", "read-only file system")
}
