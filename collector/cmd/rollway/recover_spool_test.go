package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rollway/rollway/internal/spool"
)

// The lines of a spool whose process is gone are listed, printed, checked and
// delivered once.
func TestRecoverSpool(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	s, err := spool.Open(dir, spool.Options{SegmentBytes: 300})
	if err != nil {
		t.Fatal(err)
	}
	all := ""
	for i := range 20 {
		line := fmt.Sprintf("{\"n\":%d}\n", i)
		if err := s.Append([]byte(line)); err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			all += line
		}
	}
	b, err := s.Next(0)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Ack(b, len("{\"n\":0}\n")); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out.log")
	cli(t, "", "recover", dir, "-to", out).want(t, exitFailed, "its owner lives")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	r := cli(t, "", "verify", dir)
	r.want(t, exitOK)
	for _, text := range []string{"spool, 20 lines", "00000000000000000000.spool: spool segment, 3 lines", "CURSOR: spool cursor at offset 1", ": sound\n"} {
		if !strings.Contains(r.stdout, text) {
			t.Errorf("%q is not in:\n%s", text, r.stdout)
		}
	}
	if r := cli(t, "", "cat", dir); r.stdout != "{\"n\":0}\n"+all {
		t.Errorf("cat printed %q", r.stdout)
	}
	cli(t, "", "recover", dir, "-dry-run").want(t, exitOK, "19 lines not delivered")
	cli(t, "", "recover", dir, "-to", out).want(t, exitOK, "19 lines written to "+out)
	cli(t, "", "recover", dir, "-to", out).want(t, exitOK, "0 lines written to "+out)
	if text, err := os.ReadFile(out); err != nil || string(text) != all {
		t.Errorf("%q, %v, want %q", text, err, all)
	}
}
