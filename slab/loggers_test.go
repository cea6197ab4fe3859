package slab_test

import (
	"encoding/json"
	"fmt"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/slab"
)

// TestUnderStandardLoggers puts a Writer between the standard library's
// loggers and a real file.
func TestUnderStandardLoggers(t *testing.T) { fronts(t, testUnderStandardLoggers) }

func testUnderStandardLoggers(t *testing.T, on front) {
	f, err := os.Create(filepath.Join(t.TempDir(), "app.log"))
	if err != nil {
		t.Fatal(err)
	}
	w, err := on.New(f, slab.Options{Full: slab.Block, CloseTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	structured := slog.New(slog.NewJSONHandler(w, nil))
	plain := log.New(w, "plain ", 0)
	const n = 1000
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range n {
			structured.Info("charged", "i", i, "text", "two\nlines")
		}
	})
	wg.Go(func() {
		for i := range n {
			plain.Printf("%d", i)
		}
	})
	wg.Wait()
	if err := w.Sync(); err != nil {
		t.Error(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	nextPlain, nextStructured := 0, 0
	for l := range strings.Lines(string(data)) {
		if strings.HasPrefix(l, "plain ") {
			if l != fmt.Sprintf("plain %d\n", nextPlain) {
				t.Fatalf("got %q, want number %d", l, nextPlain)
			}
			nextPlain++
			continue
		}
		var rec struct{ I int }
		if err := json.Unmarshal([]byte(l), &rec); err != nil || rec.I != nextStructured {
			t.Fatalf("got %q (%v), want number %d", l, err, nextStructured)
		}
		nextStructured++
	}
	if nextPlain != n || nextStructured != n {
		t.Errorf("%d and %d lines in the file, want %d each", nextPlain, nextStructured, n)
	}
	ledger(w).CheckSettled(t, 2*n, nextPlain+nextStructured)
}
