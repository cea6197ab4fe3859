package shard_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/shard"
)

func TestOptions(t *testing.T) {
	const KiB, MiB = 1 << 10, 1 << 20
	for name, bad := range map[string]shard.Options{
		"BufferSize is":         {BufferSize: 64*KiB - 1},
		"BufferSize is 5368709": {BufferSize: 512*MiB + 1},
		"BufferSize is -":       {BufferSize: -1},
		"Shards is 33":          {Shards: 33},
		"Shards is -1":          {Shards: -1},
		"BufferSize ÷ Shards":   {BufferSize: 64 * KiB, Shards: 17},
		"TermsPerShard is 1":    {TermsPerShard: 1},
		"TermsPerShard is 17":   {TermsPerShard: 17},
		"FlushInterval is 999":  {FlushInterval: time.Millisecond - 1},
		"FlushInterval is 1m":   {FlushInterval: time.Minute + 1},
		"FlushInterval is -":    {FlushInterval: -1},
		"Full is":               {Full: 2},
		"BlockTimeout is -":     {Full: shard.Block, BlockTimeout: -1},
		"BlockTimeout is 1s":    {BlockTimeout: time.Second},
		"Retry.Min":             {Retry: shard.Retry{Min: -1}},
		"Retry.Max":             {Retry: shard.Retry{Min: 2, Max: 1}},
		"Retry.GiveUp":          {Retry: shard.Retry{GiveUp: -1}},
		"StallAfter":            {StallAfter: -1},
		"CloseTimeout":          {CloseTimeout: -1},
	} {
		if w, err := shard.New(new(rollwaytest.Destination), bad); w != nil || err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := shard.New(nil, shard.Options{}); err == nil {
		t.Error("New(nil) = nil")
	}
	for _, good := range []shard.Options{
		{BufferSize: 64 * KiB},
		{BufferSize: 128 * KiB, Shards: 32, TermsPerShard: 16, FlushInterval: time.Millisecond},
		{BufferSize: 100_001, Shards: 3, TermsPerShard: 2, FlushInterval: time.Minute, Full: shard.Block, BlockTimeout: 1},
		{BufferSize: MiB, Retry: shard.Retry{Min: time.Hour}},
	} {
		w, err := shard.New(new(rollwaytest.Destination), good)
		if err != nil {
			t.Errorf("%+v: %v", good, err)
			continue
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestCountAndProfile(t *testing.T) {
	for threads, want := range map[int]int{math.MinInt: 1, 0: 1, 1: 1, 12: 1, 17: 1, 18: 2, 25: 2, 50: 4, 100: 8, 200: 16, 400: 32, 100_000: 32} {
		if got := shard.Count(threads); got != want {
			t.Errorf("Count(%d) = %d, want %d", threads, got, want)
		}
	}
	if o := shard.Profile(100); o.BufferSize != 64<<20 || o.Shards != 8 || o.FlushInterval != 10*time.Second {
		t.Errorf("Profile(100) = %+v", o)
	}
	if a, b := fmt.Sprint(shard.Drop, shard.Block), fmt.Sprint(shard.Policy(7)); a != "Drop Block" || b != "Policy(7)" {
		t.Error(a, b)
	}
}

func TestLogBytesDoesNotAllocate(t *testing.T) {
	for _, o := range []shard.Options{{}, {Full: shard.Block}, {Shards: 1, BufferSize: 64 << 10, Full: shard.Block, BlockTimeout: time.Minute}} {
		w, err := shard.New(discard{}, o)
		if err != nil {
			t.Fatal(err)
		}
		record, line := bytes.Repeat([]byte("r"), 255), []byte("line\n")
		if n := testing.AllocsPerRun(5000, func() {
			w.LogBytes(record)
			w.Write(line)
			w.Write(line[:4])
		}); n >= 1 { // run's own are spread over all
			t.Errorf("%+v: %v allocations", o, n)
		}
		w.Close()
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// Records of no byte, of exactly a buffer, of one more; lines that fill several.
func TestSizesAtTheEdge(t *testing.T) {
	const term = 64 << 10
	synctest.Test(t, func(t *testing.T) {
		w, dst := open(t, small)
		var want strings.Builder
		given, large := 0, 0
		for _, n := range []int{0, 0, term - 2, 0, term - 1, term, 0, 1, term - 3, 1, term - 1, term - 1, term + 1, 5} {
			record := strings.Repeat("r", n)
			err := w.LogBytes([]byte(record))
			given++
			if n >= term {
				large++
				if !errors.Is(err, shard.ErrTooLarge) {
					t.Errorf("LogBytes of %d bytes = %v", n, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("LogBytes of %d bytes = %v", n, err)
			}
			want.WriteString(record + "\n")
		}
		write := func(p string, taken int, tooLarge bool) {
			t.Helper()
			n, err := w.Write([]byte(p))
			if n != taken || errors.Is(err, shard.ErrTooLarge) != tooLarge || !tooLarge && err != nil {
				t.Errorf("Write of %d bytes = %d, %v, want %d", len(p), n, err, taken)
			}
		}
		long := strings.Repeat("l", term)
		for _, p := range []string{"\n", "\n\n", long[1:] + "\n", "a\n" + long[3:] + "\n", "a\n" + long[1:] + "\nb", long[1:], "a\n" + long[1:]} {
			write(p, len(p), false)
			want.WriteString(strings.TrimSuffix(p, "\n") + "\n")
			given += strings.Count(strings.TrimSuffix(p, "\n"), "\n") + 1
		}
		write(long, 0, true)
		write("a\n"+long+"\nb\n", 4, true)
		write(long+"\n"+long+"x\nb", 1, true)
		want.WriteString("a\nb\nb\n")
		given, large = given+1+3+3, large+4
		var many strings.Builder
		for many.Len() < 5*term {
			fmt.Fprintf(&many, "%d %s\n", many.Len(), long[:many.Len()%1000])
			given++
		}
		write(many.String(), many.Len(), false)
		want.WriteString(many.String())
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		got := new(strings.Builder)
		for line := range strings.Lines(string(dst.Bytes())) {
			if line[0] != '{' {
				got.WriteString(line)
			}
		}
		if got.String() != want.String() {
			t.Errorf("%d bytes delivered, want %d", got.Len(), want.Len())
		}
		settled(t, w, given, given-large)
		if s := w.Stats(); s.Dropped.TooLarge != uint64(large) {
			t.Errorf("Stats %+v, want %d too large", s, large)
		}
	})
}

// Under Drop each refused record is counted, and announced in the stream once
// there is room.
func TestDrop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := small
		o.Full = shard.Drop
		w, dst := open(t, o)
		dst.Stall()
		record := bytes.Repeat([]byte("r"), 20_000)
		given, refused := 0, 0
		for range 20 {
			given++
			if err := w.LogBytes(record); errors.Is(err, shard.ErrBufferFull) {
				refused++
			} else if err != nil {
				t.Error(err)
			}
			time.Sleep(300 * time.Millisecond)
		}
		lines := bytes.Repeat([]byte("line\n"), 10_000) // less than a buffer: all or none
		if n, err := w.Write(lines); n != len(lines) || err != nil {
			t.Errorf("Write = %d, %v", n, err)
		}
		given, refused = given+10_000, refused+10_000
		if s := w.Stats(); s.Dropped.BufferFull != uint64(refused) || s.Accepted != uint64(given) || s.TermsFree != 0 || s.Notices != 0 {
			t.Errorf("refused %d of %d; Stats %+v", refused, given, s)
		}
		dst.Heal()
		synctest.Wait()
		notice := fmt.Sprintf(`"msg":"rollway: %d lines dropped","attrs":{"reason":"buffer full","dropped":%d}}`, refused, refused)
		if got := string(dst.Bytes()); strings.Count(got, notice) != 1 {
			t.Errorf("no %s in %d bytes", notice, len(got))
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		settled(t, w, given, given-refused)
		if s := w.Stats(); s.Notices != 1 || s.Bytes != uint64(len(dst.Bytes())) {
			t.Errorf("Stats %+v, %d bytes", s, len(dst.Bytes()))
		}
	})
}

func TestNoLossNotice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := small
		o.NoLossNotice = true
		w, dst := open(t, o)
		w.LogBytes(make([]byte, 1<<20))
		log(t, w, "one")
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if got := string(dst.Bytes()); got != "one\n" {
			t.Errorf("%q", got)
		}
	})
}
