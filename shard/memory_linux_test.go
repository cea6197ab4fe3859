//go:build !race

package shard_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/needs"
	"github.com/rollway/rollway/shard"
)

// Stats.Memory is what the process has really got for it, to the byte: at the
// start, while files are rotated, and with records; Close gives it back. It is
// run in a child, where nothing else asks for memory. (With -race there is none
// outside of the heap.)
func TestMemoryIsWhatIsMapped(t *testing.T) {
	dir := os.Getenv(childEnv)
	if dir == "" {
		if _, err := os.Stat("/sys/kernel/mm/transparent_hugepage"); err != nil {
			needs.Missing(t, "a kernel with large pages, which mark the memory: "+err.Error())
		}
		if out, err := child(t, nil); err != nil || strings.Contains(out, "--- SKIP") {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	rotating := shard.Options{BufferSize: 512 << 10, Shards: 2, Full: shard.Block, FlushInterval: time.Millisecond}
	rotating.File.MaxSize = 600 << 10
	framed, kept := rotating, rotating
	framed.File.Framed = true
	kept.File.Framed, kept.File.Keep = true, 1
	direct, defaultFramed := rotating, shard.Options{}
	direct.File.Mode = shard.Direct
	defaultFramed.File.Framed = true
	for name, o := range map[string]shard.Options{
		"default": {}, "default framed": defaultFramed, "small": shard.SmallProfile(), "large": shard.LargeProfile(),
		"rotating": rotating, "rotating framed": framed, "framed, files used again": kept, "rotating Direct": direct,
		"many terms": {BufferSize: 3_000_001, Shards: 7, TermsPerShard: 5},
	} {
		o.StallAfter = time.Hour
		path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
		before, heap := mapped(t), heapInUse()
		w := openFile(t, path, o)
		check := func(when string) {
			t.Helper()
			size, got := w.Stats().Memory, mapped(t)-before
			if got != size {
				t.Errorf("%s, %s: Stats.Memory is %d bytes, and %d are mapped", name, when, size, got)
			}
			if most := 2*64<<20 + 1<<20; o.BufferSize == 0 && got > most {
				t.Errorf("%s, %s: %d bytes are mapped, want no more than %d", name, when, got, most)
			}
		}
		check("at the start")
		if grown := heapInUse() - heap; grown > 256<<10 {
			t.Errorf("%s: the heap has grown by %d bytes", name, grown)
		}
		for i := range 3 {
			write(t, w, 4, i*100, 100, 5000)
			if err := w.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			check(fmt.Sprint("after records ", i))
		}
		if s := w.Stats().File; o.File.MaxSize > 0 && s.Rotations == 0 {
			t.Errorf("%s: Stats %+v", name, s)
		}
		closeFile(t, w)
		if n := mapped(t) - before; n != 0 {
			t.Errorf("%s: %d bytes are mapped after Close", name, n)
		}
	}
}

// The buffers of a Writer in front of a destination are on the heap.
func TestMemoryIsWhatIsAllocated(t *testing.T) {
	if os.Getenv(childEnv) == "" {
		if out, err := child(t, nil); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	before := heapInUse()
	w, err := shard.New(discard{}, shard.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	size, got := w.Stats().Memory, heapInUse()-before
	if size != 2*64<<20 || got < size || got > size+1<<20 {
		t.Errorf("Stats.Memory is %d bytes, and the heap has grown by %d", size, got)
	}
	runtime.KeepAlive(w)
}

// heapInUse returns the bytes of all that is reachable.
func heapInUse() int {
	runtime.GC()
	runtime.GC() // what the first one has found finalizers for
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// mapped returns how many bytes of memory there are, in use or swapped out, for
// which large pages were asked. In a small process only Writers do.
func mapped(t *testing.T) (bytes int) {
	t.Helper()
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	size := 0 // of the mapping
	for line := range strings.Lines(string(smaps)) {
		key, value, _ := strings.Cut(line, ":")
		var kib int
		switch key {
		case "Size":
			size = 0
		case "Rss", "Swap":
			if _, err := fmt.Sscanf(strings.TrimSpace(value), "%d kB", &kib); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			size += kib << 10
		case "VmFlags":
			if strings.Contains(value, " hg") {
				bytes += size
			}
		}
	}
	return bytes
}
