package framed

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rollway/rollway/internal/needs"
)

func TestMain(m *testing.M) {
	if spec := os.Getenv("FRAMED_WRITER"); spec != "" {
		if err := runWriter(spec); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const (
	killFile  = 6 << 20 // bytes of the file that is used again and again
	killShape = 12345   // of the records' lengths, the same in every generation
)

// runWriter begins the file anew and fills it. Before each flush it prints how
// many records there will have been, and behind it the same number again.
func runWriter(spec string) error {
	var path, mode string
	var generation uint64
	if _, err := fmt.Sscan(spec, &path, &mode, &generation); err != nil {
		return err
	}
	flags := os.O_RDWR
	if mode == "direct" {
		flags |= unix.O_DIRECT
	}
	f, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return err
	}
	mem, err := unix.Mmap(-1, 0, 4<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	seg, err := NewSegment(4096, generation)
	if err != nil {
		return err
	}
	seg.PutHeader(mem)
	if _, err := f.WriteAt(mem[:SegmentHeaderSize], 0); err != nil {
		return err
	}
	numbers, same := NewNumbers(), rand.New(rand.NewPCG(killShape, 2))
	for done := 0; ; {
		at, size := seg.Next, 0
		for range 1 + same.IntN(4) { // as many batches by one call
			records := sameLengths(same, generation, done, 1500)
			number := numbers.Next()
			buf, used := fill(number, records)
			size += copy(mem[size:], seg.Seal(buf, used, len(records), number))
			done += len(records)
		}
		if seg.Next > killFile {
			return nil
		}
		fmt.Println("try", done)
		if _, err := f.WriteAt(mem[:size], at); err != nil {
			return err
		}
		fmt.Println("did", done)
	}
}

// A file is written by twenty processes after each other, each killed at any
// point. What one of them had written is read, to the record, and nothing of
// those before it; of what it was just writing, a beginning may be there.
func TestKilledWriters(t *testing.T) {
	for _, mode := range []string{"buffered", "direct"} {
		t.Run(mode, func(t *testing.T) {
			rnd := seeded(t)
			path := filepath.Join(t.TempDir(), "segment")
			if err := os.WriteFile(path, make([]byte, killFile), 0o600); err != nil {
				t.Fatal(err)
			}
			if mode == "direct" {
				needDirect(t, path)
			}
			torn, most := 0, 0
			for generation := uint64(1); generation <= 20; generation++ {
				tried, did := killedWriter(t, path, mode, generation, rnd.IntN(12), rnd.IntN(4) > 0)
				b, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				got := mustRead(t, b)
				most = max(most, len(got.records))
				what := fmt.Sprintf("generation %d: %d records written, %d tried, %d read", generation, did, tried, len(got.records))
				if len(got.records) < did || len(got.records) > tried {
					t.Fatalf("%s: %v", what, got.findings)
				}
				for i, s := range got.records {
					if !strings.HasPrefix(s, fmt.Sprintf("%04d-%08d ", generation, i)) {
						t.Fatalf("%s: record %d is %q", what, i, s)
					}
				}
				if got.Damage > 0 || len(got.findings) > 1 || got.Lost > 0 && (len(got.findings) == 0 || len(got.records)+int(got.Lost) > tried) {
					t.Fatalf("%s: %+v", what, got.findings)
				}
				torn += len(got.findings)
			}
			if most == 0 {
				t.Error("no writer came to write anything")
			}
			t.Logf("%d torn tails, up to %d records", torn, most)
		})
	}
}

// killedWriter runs a writer, kills it after so many flushes, or within the next
// one, and returns how many records it was going to have written, and how many
// it knew to be.
func killedWriter(t *testing.T, path, mode string, generation uint64, flushes int, within bool) (tried, did int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("FRAMED_WRITER=%s %s %d", path, mode, generation))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	killed := false
	lines := bufio.NewReader(out)
	for n := 0; ; {
		var word string
		var records int
		line, err := lines.ReadString('\n')
		if err != nil { // also within a line
			if !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			break
		}
		if _, err := fmt.Sscan(line, &word, &records); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if word == "try" {
			tried = records
		} else {
			did = records
			n++
		}
		if n >= flushes && (word == "try") == within && !killed {
			killed = true
			if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err != nil && !killed {
		t.Fatalf("generation %d: %v", generation, err)
	}
	return tried, did
}

// needDirect skips the test where the file system has no direct I/O.
func needDirect(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_DIRECT, 0)
	if err == nil {
		f.Close()
		return
	}
	needs.Missing(t, "a file system with direct I/O: "+err.Error())
}
