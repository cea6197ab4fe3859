package probe

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A real folder: everything is tried, what works is measured, and nothing is
// left.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	o := Options{Space: 1 << 20, Time: time.Hour, chunks: []int{4096, 64 << 10}}
	r, err := Run(t.Context(), dir, o)
	if err != nil || !r.Files.OK {
		t.Fatal(err, r.Files)
	}
	empty(t, dir)
	modes := 1
	for _, s := range []Support{r.Direct, r.Uncached, r.Allocate} {
		if s.OK == (s.Why != "") {
			t.Errorf("%+v", s)
		}
	}
	for _, s := range []Support{r.Direct, r.Uncached} {
		if s.OK {
			modes++
		}
	}
	if r.Direct.OK && (r.Align.Memory == 0 || r.Align.Offset == 0) {
		t.Errorf("direct writes with alignment %+v", r.Align)
	}
	if len(r.Writes) != 2*modes || r.Cut {
		t.Fatalf("%d series of %d modes, cut %v", len(r.Writes), modes, r.Cut)
	}
	for i, w := range r.Writes {
		if w.Err != "" || w.Chunk != o.chunks[i%2] || w.Plain.Calls != mostPlain || w.Synced.Calls != mostSynced || w.BytesPerSec <= 0 {
			t.Errorf("%+v", w)
		}
		for _, l := range []Latency{w.Plain, w.Synced} {
			if l.Median < 0 || l.P90 < l.Median || l.Max < l.P90 {
				t.Errorf("%+v", l)
			}
		}
	}
	a := r.Advice
	if i := slices.IndexFunc(r.Writes, func(w Writes) bool { return w.Mode == a.Mode && w.Chunk == a.Chunk }); i < 0 {
		t.Errorf("advice %+v was not measured", a)
	}
}

func empty(t *testing.T, dir string) {
	t.Helper()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// Bounds hold: of an interrupted probe, and of one without time, the rest is
// known; chunks that do not fit the space are left out.
func TestBounds(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := Run(ctx, dir, Options{})
	if err != nil || !r.Cut || len(r.Writes) != 0 || !r.Files.OK {
		t.Errorf("interrupted: %v %+v", err, r)
	}
	r, err = Run(t.Context(), dir, Options{Space: 1 << 20, chunks: []int{2 << 20, 4096}, Time: time.Hour})
	if err != nil || !r.Cut || len(r.Writes) == 0 {
		t.Errorf("%v %+v", err, r)
	}
	for _, w := range r.Writes {
		if w.Chunk != 4096 {
			t.Errorf("%+v", w)
		}
	}
	r, err = Run(t.Context(), dir, Options{Space: 1 << 20, Time: 1})
	if err != nil || !r.Cut || len(r.Writes) > 1 {
		t.Errorf("without time: %v %+v", err, r)
	}
	empty(t, dir)
}

// What cannot be looked at is an error; a folder that takes no files is a
// finding.
func TestNotWritable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, file + "-none"} {
		if _, err := Run(t.Context(), dir, Options{}); err == nil {
			t.Errorf("%s: no error", dir)
		}
	}
	dir := filepath.Join(t.TempDir(), "closed")
	if err := os.Mkdir(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		dir = "/proc" // no permission keeps root out of a folder, but nobody makes files there
	}
	r, err := Run(t.Context(), dir, Options{})
	if err != nil || r.Files.OK || len(r.Writes) != 0 {
		t.Fatalf("%v %+v", err, r)
	}
	if a := r.Advice; a.Mode != "" || len(a.Notes) == 0 || !strings.Contains(a.Notes[0].Found, "no file can be written here") {
		t.Errorf("%+v", a)
	}
}

func TestAdvise(t *testing.T) {
	yes := Support{OK: true}
	row := func(m Mode, chunk int, median time.Duration) Writes {
		return Writes{Mode: m, Chunk: chunk, Plain: Latency{Median: median}}
	}
	rates := []Writes{row(Direct, 4096, 50), row(Direct, 65536, 105), row(Direct, 1<<20, 1600),
		row(Uncached, 4096, 50), row(Uncached, 65536, 800), row(Buffered, 65536, 100)}
	slow := slices.Clone(rates)
	slow[1].Synced.Median = 30 * time.Millisecond
	broken := slices.Clone(rates)
	broken[1].Err = "input/output error"
	ext4 := Mount{Type: "ext4"}
	for what, c := range map[string]struct {
		r     Report
		mode  Mode
		chunk int
		note  string
	}{
		"direct":      {Report{Files: yes, Mount: ext4, Direct: yes, Uncached: yes, Allocate: yes, Writes: rates}, Direct, 65536, ""},
		"uncached":    {Report{Files: yes, Mount: ext4, Uncached: yes, Allocate: yes, Writes: rates}, Uncached, 4096, ""},
		"buffered":    {Report{Files: yes, Mount: ext4, Writes: rates}, Buffered, 65536, ""},
		"no figures":  {Report{Files: yes, Mount: ext4, Direct: yes, Allocate: yes}, Direct, 0, ""},
		"memory":      {Report{Files: yes, Mount: Mount{Type: "tmpfs"}, Direct: yes, Writes: rates}, Buffered, 65536, "tmpfs is memory"},
		"network":     {Report{Files: yes, Mount: Mount{Type: "nfs4"}, Direct: yes, Writes: rates}, Buffered, 65536, "another machine's disk"},
		"slow sync":   {Report{Files: yes, Mount: ext4, Direct: yes, Allocate: yes, Writes: slow}, Direct, 65536, "an fsync takes 30ms"},
		"error":       {Report{Files: yes, Mount: ext4, Direct: yes, Allocate: yes, Writes: broken}, Direct, 1 << 20, "Direct writes of 65536 bytes failed: input/output error"},
		"no allocate": {Report{Files: yes, Mount: ext4, Direct: yes, Writes: rates}, Direct, 65536, "cannot be allocated ahead"},
		"full":        {Report{Files: yes, Mount: ext4, Space: &Space{Free: 4, Total: 100, FreeIDs: 50, TotalIDs: 100}}, Buffered, 0, "nearly full"},
		"no files":    {Report{Files: yes, Mount: ext4, Space: &Space{Free: 40, Total: 100, FreeIDs: 4, TotalIDs: 100}}, Buffered, 0, "room for 4 more files"},
		"limit":       {Report{Files: yes, Mount: ext4, Limit: 1 << 20}, Buffered, 0, "files up to 1048576 bytes"},
		"big blocks":  {Report{Files: yes, Mount: ext4, Align: Align{Told: true, Memory: 4, Offset: 16384}}, Buffered, 0, "blocks of 16384 bytes"},
		"read-only":   {Report{Mount: Mount{Type: "ext4", ReadOnly: true}, Files: Support{Why: "read-only file system"}}, "", 0, "mounted read-only"},
	} {
		c.r.advise()
		a := c.r.Advice
		if a.Mode != c.mode || a.Chunk != c.chunk || (c.note == "") != (len(a.Notes) == 0) || c.note != "" && !strings.Contains(a.Notes[0].Found, c.note) {
			t.Errorf("%s: %+v", what, a)
		}
	}
}

func TestLatency(t *testing.T) {
	var d []time.Duration
	for i := range 100 {
		d = append(d, time.Duration(100-i))
	}
	if l := latency(d); l != (Latency{Calls: 100, Median: 51, P90: 91, Max: 100}) {
		t.Errorf("%+v", l)
	}
	if l := latency(d[:1]); l != (Latency{1, 1, 1, 1}) {
		t.Errorf("%+v", l)
	}
	if l := latency(nil); l != (Latency{}) {
		t.Errorf("%+v", l)
	}
}
