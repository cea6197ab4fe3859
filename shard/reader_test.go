package shard_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollway/rollway/shard"
)

// Who reads the file while it is written sees records and white space: no byte
// 0, but for the moment that Direct's comment tells of, and no part of a record
// but at the very end. jq and grep, where they are installed, take it.
func TestReadersBesideTheWriter(t *testing.T) {
	jq, _ := exec.LookPath("jq")
	grep, _ := exec.LookPath("grep")
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log")
			// 2 MiB in each term: some flushes are staged, some written in place.
			o := shard.Options{BufferSize: 8 << 20, Shards: 4, Full: shard.Block, FlushInterval: 2 * time.Millisecond, StallAfter: time.Minute}
			o.File.Mode = mode
			w := openFile(t, path, o)
			var stop atomic.Bool
			var given atomic.Int64
			var writers sync.WaitGroup
			for g := range 8 {
				writers.Go(func() {
					for i := 0; !stop.Load(); i++ {
						size := 1 + (g*7919+i*104729)%2000
						if i%20 == 0 {
							size = 100_000
						}
						if err := w.LogBytes(fmt.Appendf(nil, `{"g":%d,"i":%d,"pad":"%s"}`, g, i, strings.Repeat("x", size))); err != nil {
							t.Error(err)
						}
						given.Add(1)
						time.Sleep(time.Duration(1+i%5) * time.Millisecond)
					}
				})
			}
			moments := 0
			for reads := 0; reads < 11; reads++ {
				from := w.Stats().Written
				eventually(t, "more records", func() bool { return w.Stats().Written > from })
				data := snapshot(t, path)
				if bytes.IndexByte(data, 0) >= 0 {
					moments++
					data = settledSnapshot(t, path, mode)
				}
				whole := data[:bytes.LastIndexByte(data, '\n')+1]
				for line := range bytes.Lines(whole) {
					if text := bytes.TrimRight(line, " \n"); len(text) > 0 && (text[0] != '{' || !bytes.HasSuffix(text, []byte(`x"}`))) {
						t.Fatalf("torn or mixed: %.60q…%.60q", text, text[max(0, len(text)-60):])
					}
				}
				if reads%5 == 0 {
					takes(t, whole, jq, "-c", ".i")
					takes(t, whole, grep, `"g":`)
				}
			}
			stop.Store(true)
			writers.Wait()
			closeFile(t, w)
			ledger(w).CheckSettled(t, int(given.Load()), int(given.Load()))
			data := snapshot(t, path)
			padding := 0
			for line := range bytes.Lines(data) {
				padding += len(line) - len(bytes.TrimRight(line, " \n")) - 1
			}
			if float64(padding) > 0.001*float64(len(data)) || bytes.IndexByte(data, 0) >= 0 || bytes.HasSuffix(data, []byte("\n\n")) {
				t.Errorf("%d bytes of padding in %d", padding, len(data))
			}
			t.Logf("%d reads met bytes 0; %d of %d bytes are padding", moments, padding, len(data))
		})
	}
}

func snapshot(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// settledSnapshot reads again what held a byte 0, until it does not.
func settledSnapshot(t *testing.T, path string, mode shard.Mode) (data []byte) {
	t.Helper()
	if mode != shard.Direct {
		t.Fatal("a byte 0")
	}
	eventually(t, "no byte 0", func() bool {
		data = snapshot(t, path)
		return bytes.IndexByte(data, 0) < 0
	})
	return data
}

// takes wants a program to read data without a complaint.
func takes(t *testing.T, data []byte, program string, args ...string) {
	t.Helper()
	if program == "" {
		return
	}
	cmd := exec.Command(program, args...)
	cmd.Stdin = bytes.NewReader(data)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, io.MultiWriter(&stderr, &out)
	if err := cmd.Run(); err != nil || stderr.Len() > 0 || bytes.Contains(out.Bytes(), []byte("inary file")) {
		t.Errorf("%s: %v, %s", program, err, stderr.String())
	}
}
