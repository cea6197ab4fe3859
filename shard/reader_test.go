package shard_test

import (
	"bytes"
	"errors"
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

	"github.com/rollway/rollway/internal/needs"
	"github.com/rollway/rollway/shard"
)

// Who reads the file while it is written sees records and white space: what he
// has read stays as it is, the file never gets shorter, no byte is 0 but for the
// moment that Direct's comment tells of, and no record is torn but the very last.
// Real tail -f, grep and jq take the file itself.
func TestReadersBesideTheWriter(t *testing.T) {
	tail, grep, jq := needs.Program(t, "tail"), needs.Program(t, "grep"), needs.Program(t, "jq")
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log")
			// 2 MiB in each term: some flushes are staged, some written in place.
			o := shard.Options{BufferSize: 8 << 20, Shards: 4, Full: shard.Block, FlushInterval: 2 * time.Millisecond, StallAfter: time.Minute}
			o.File.Mode = mode
			w := openFile(t, path, o)
			var stop atomic.Bool
			var given, volume atomic.Int64
			var writers, readers sync.WaitGroup
			for g := range 8 {
				writers.Go(func() { // ends when stop is set
					for i := 0; !stop.Load(); i++ {
						size, pause := 1+(g*7919+i*104729)%2000, time.Duration(1+i%5)*time.Millisecond
						if volume.Load() > 6<<20 { // let the programs catch up
							pause = 20 * time.Millisecond
						} else if g == 0 && i%60 < 20 { // these fill a term: it is written in place
							size, pause = 100_000, 0
						}
						if err := w.LogBytes(fmt.Appendf(nil, `{"g":%d,"i":%d,"pad":"%s"}`, g, i, strings.Repeat("x", size))); err != nil {
							t.Error(err)
						}
						volume.Add(int64(size))
						given.Add(1)
						time.Sleep(pause)
					}
				})
			}
			follower := &follower{path: path, zeros: mode == shard.Direct}
			readers.Go(func() { follower.follow(t, &stop) })
			printed := startTail(t, tail, path)

			moments := 0 // programs that met a byte 0
			for round := range 6 {
				from := w.Stats().Written
				eventually(t, "more records", func() bool { return w.Stats().Written > from+20 })
				flushed, records := flushedSize(t, w, path)
				data := snapshot(t, path)
				if bytes.IndexByte(data[:flushed], 0) >= 0 {
					t.Fatal("a byte 0 before what Flush has returned for")
				}
				wholeRecords(t, data[:flushed], true)
				if round%3 == 0 {
					moments += prints(t, records, mode, grep, `"g":`, path)
					moments += prints(t, records, mode, jq, "-c", ".i", path)
				}
			}
			stop.Store(true)
			writers.Wait()
			closeFile(t, w)
			readers.Wait()
			ledger(w).CheckSettled(t, int(given.Load()), int(given.Load()))
			data := snapshot(t, path)
			if n := wholeRecords(t, data, false); n != int(given.Load()) {
				t.Errorf("%d records, %d were given", n, given.Load())
			}
			if padding := paddingOf(data); float64(padding) > 0.001*float64(len(data)) || !bytes.HasSuffix(data, []byte("}\n")) {
				t.Errorf("%d bytes of padding in %d, which end in %q", padding, len(data), data[max(0, len(data)-20):])
			}
			follower.compare(t, data)
			differs := printed(data)
			if mode != shard.Direct && differs > 0 {
				t.Errorf("tail -f printed %d bytes 0", differs)
			}
			t.Logf("%d of %d reads met bytes 0, no more than %d behind one another; %d of them tail -f, %d runs of grep and jq; %d of %d bytes are padding",
				follower.met, follower.reads, follower.longest, differs, moments, paddingOf(data), len(data))
		})
	}
}

// flushedSize flushes and returns the size of the file and how many records
// are in it, or a few more.
func flushedSize(t *testing.T, w *shard.Writer, path string) (size, records int) {
	t.Helper()
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	written := w.Stats().Written
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return int(info.Size()), int(written)
}

// wholeRecords returns how many records there are. The last one may be torn
// where that is said.
func wholeRecords(t *testing.T, data []byte, torn bool) (n int) {
	t.Helper()
	if torn {
		data = data[:bytes.LastIndexByte(data, '\n')+1]
	}
	for line := range bytes.Lines(data) {
		text := bytes.TrimRight(line, " \n")
		if len(text) == 0 {
			continue
		}
		if n++; text[0] != '{' || !bytes.HasSuffix(text, []byte(`x"}`)) || bytes.Count(text, []byte("{")) > 1 {
			t.Fatalf("torn or mixed: %.60q…%.60q", text, text[max(0, len(text)-60):])
		}
	}
	return n
}

func paddingOf(data []byte) (n int) {
	for line := range bytes.Lines(data) {
		n += len(line) - len(bytes.TrimRight(line, " \n")) - 1
	}
	return n
}

// A follower reads a file that grows as tail -f does: what is new behind what it
// has read. Bytes 0 it reads again, if there may be any.
type follower struct {
	path  string
	zeros bool

	got                 []byte
	reads, met, longest int // reads, those with bytes 0, most of these in a row
}

func (f *follower) follow(t *testing.T, stop *atomic.Bool) {
	file, err := os.Open(f.path)
	if err != nil {
		t.Error(err)
		return
	}
	defer file.Close()
	buf := make([]byte, 256<<10)
	for size := int64(0); !stop.Load(); {
		info, err := file.Stat()
		if err != nil {
			t.Error(err)
			return
		}
		if info.Size() < size {
			t.Errorf("the file had %d bytes and then %d", size, info.Size())
			return
		}
		size = info.Size()
		n, err := file.ReadAt(buf, int64(len(f.got)))
		if err != nil && !errors.Is(err, io.EOF) {
			t.Error(err)
			return
		}
		f.reads++
		if bytes.IndexByte(buf[:n], 0) >= 0 {
			f.met++
			f.longest = max(f.longest, zerosIn(buf[:n]))
			if !f.zeros {
				t.Errorf("a byte 0 at %d", len(f.got)+bytes.IndexByte(buf[:n], 0))
				return
			}
			n = bytes.IndexByte(buf[:n], 0)
		}
		if f.got = append(f.got, buf[:n]...); n == 0 {
			time.Sleep(50 * time.Microsecond)
		}
	}
}

// zerosIn returns how many bytes 0 there are in a row at most.
func zerosIn(b []byte) (most int) {
	n := 0
	for _, c := range b {
		if n++; c != 0 {
			n = 0
		}
		most = max(most, n)
	}
	return most
}

// compare wants what was read to be what the file has.
func (f *follower) compare(t *testing.T, data []byte) {
	t.Helper()
	if !bytes.HasPrefix(data, f.got) {
		t.Error("what was read beside the writer is not what the file has")
	}
	if len(f.got) == 0 {
		t.Error("nothing was read beside the writer")
	}
}

// startTail has the real program follow the file. The function that it returns
// ends it when it has printed as much as data, wants it to have printed data, and
// returns how many bytes were 0 in their place.
func startTail(t *testing.T, tail, path string) (printed func(data []byte) (zeros int)) {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "tail"))
	if err != nil {
		t.Fatal(err)
	}
	// It ends with this process, however that ends.
	cmd := exec.Command(tail, "-n", "+1", "--pid", fmt.Sprint(os.Getpid()), "-f", path)
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = out, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end := sync.OnceFunc(func() {
		cmd.Process.Kill()
		cmd.Wait()
		out.Close()
	})
	t.Cleanup(end)
	return func(data []byte) (zeros int) {
		t.Helper()
		eventually(t, "tail -f has printed the file", func() bool {
			info, err := os.Stat(out.Name())
			return err == nil && info.Size() >= int64(len(data))
		})
		end()
		got := snapshot(t, out.Name())
		if len(got) != len(data) || stderr.Len() > 0 {
			t.Errorf("tail -f printed %d bytes, the file has %d; it said %q", len(got), len(data), stderr.String())
			return 0
		}
		for i, c := range got {
			switch {
			case c == data[i]:
			case c == 0:
				zeros++
			default:
				t.Errorf("tail -f printed %.60q at %d, the file has %.60q", got[i:], i, data[i:])
				return zeros
			}
		}
		return zeros
	}
}

// prints wants a program that reads the file itself to print that many lines at
// least, with no complaint but of a last record that is not whole. It returns how
// often it met a byte 0 and was run again.
func prints(t *testing.T, least int, mode shard.Mode, program string, args ...string) (moments int) {
	t.Helper()
	eventually(t, program+" takes the file", func() bool {
		cmd := exec.Command(program, args...)
		var out, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &stderr
		err := cmd.Run()
		said := stderr.String()
		if strings.Count(said, "\n") == 1 && strings.Contains(said, "at EOF at line") {
			err, said = nil, "" // jq read the beginning of a record
		}
		text := bytes.Contains(bytes.ToLower(out.Bytes()), []byte("binary file"))
		lines := bytes.Count(out.Bytes(), []byte("\n"))
		if err == nil && said == "" && !text && lines >= least {
			return true
		}
		if mode != shard.Direct {
			t.Fatalf("%s: %v, %s, %d lines of %d", program, err, said, lines, least)
		}
		moments++
		return false
	})
	return moments
}

func snapshot(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
