package integration

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/remote"
	"github.com/rollway/rollway/slab"
)

// Formats that represent all: an object, pairs, a line for people, an object of
// the user's own layout.
var formats = []rollway.Encoder{
	rollway.JSON{},
	rollway.Logfmt{},
	rollway.Console{},
	rollway.JSON{Layout: "time:@timestamp level:severity msg:message attrs:", Time: rollway.UnixNano},
}

// outlets are what an Output's Writer may be.
var outlets = []struct {
	name    string
	head    func(t testing.TB, dst, spare io.Writer) (*head, error) // nil: the Logger writes to the end itself
	end     func(testing.TB) *end
	records int // of each producer
	virtual bool
}{
	{"slab over file", slabHead(slab.Options{SlabSize: 4096}), fileEnd(file.Options{MaxSize: 100_000}), 60, true},
	{"file", nil, fileEnd(file.Options{}), 60, true},
	{"sharded slab over file", slabHead(slab.Options{Shards: 4}), fileEnd(file.Options{}), 60, true},
	{"slab over tcp", slabHead(slab.Options{}), streamEnd("tcp"), 60, false},
	{"tcp", nil, streamEnd("tcp"), 60, false},
	{"http", nil, httpEnd(remote.Options{}), 15, false},
	{"sharded slab over http", slabHead(slab.Options{Shards: 4}), httpEnd(remote.Options{}), 60, false},
}

// TestLogger follows every record of random runs of a Logger with an output in
// each format over each writer, and two that share one.
func TestLogger(t *testing.T) {
	for _, out := range outlets {
		t.Run(out.name, func(t *testing.T) {
			eachSeed(t, out.virtual, func(t *testing.T, seed uint64) {
				var outputs []rollway.Output
				var roads []*road
				for i := range len(formats) + 1 {
					r := &road{ends: []*end{out.end(t)}}
					var w io.Writer = r.ends[0].Writer
					if out.head != nil {
						h, err := out.head(t, w, nil)
						if err != nil {
							t.Fatal(err)
						}
						// Its methods must be the writer's own: WriteLevel is one.
						r.head, w = h, h.Writer
						t.Cleanup(func() { h.Close() })
					}
					roads = append(roads, r)
					if i < len(formats) {
						outputs = append(outputs, rollway.Output{Writer: w, Encoder: formats[i], Level: slog.LevelDebug})
						continue
					}
					for _, f := range formats[:2] {
						outputs = append(outputs, rollway.Output{Writer: w, Encoder: f, Level: slog.LevelDebug})
					}
				}
				logStress(t, seed, out.records, outputs, roads)
			})
		})
	}
}

func logStress(t *testing.T, seed uint64, each int, outputs []rollway.Output, roads []*road) {
	rng := rand.New(rand.NewPCG(seed, 0))
	log, err := rollway.New(rollway.Options{
		Outputs:      outputs,
		MaxWait:      patience, // a slow machine is not a stuck writer
		CloseTimeout: patience,
		OnError: func(err error) {
			if !errors.Is(err, os.ErrClosed) {
				t.Errorf("OnError(%v)", err)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	closeAmid := seed&1 == 1
	var stop, closing atomic.Bool
	var others, writers sync.WaitGroup
	others.Go(func() {
		rng := rand.New(rand.NewPCG(seed, 1))
		for !stop.Load() {
			do := log.Flush
			if rng.IntN(2) == 0 {
				do = log.Sync
			}
			if err := do(t.Context()); err != nil && !(closing.Load() && errors.Is(err, os.ErrClosed)) {
				t.Errorf("barrier: %v", err)
			}
			time.Sleep(time.Duration(rng.IntN(3000)) * time.Microsecond)
		}
	})
	others.Go(func() {
		for !stop.Load() {
			s := log.Stats()
			for i, o := range s.Outputs {
				if o.Accepted > uint64(producers*each) || o.Err() != nil {
					t.Errorf("output %d: %+v of %d records", i, o, producers*each)
				}
			}
			time.Sleep(200 * time.Microsecond)
		}
	})
	for p := range producers {
		writers.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 2+uint64(p)))
			log := log.With(slog.Int("p", p))
			for seq := range each {
				log.Log(t.Context(), slog.Level(4*rng.IntN(4)-4), "line", slog.Int("s", seq), slog.String("pad", strings.Repeat("p", rng.IntN(300))))
				if rng.IntN(30) == 0 {
					time.Sleep(time.Duration(rng.IntN(500)) * time.Microsecond)
				}
			}
		})
	}
	if closeAmid {
		time.Sleep(time.Duration(rng.IntN(3000)) * time.Microsecond)
	} else {
		writers.Wait()
	}
	closing.Store(true)
	if err := log.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	writers.Wait()
	stop.Store(true)
	others.Wait()

	s := log.Stats()
	for i, o := range s.Outputs {
		if o.Accepted+o.Rejected != uint64(producers*each) || o.Pending != 0 || o.Err() != nil {
			t.Errorf("output %d: %+v of %d records", i, o, producers*each)
		}
		if !closeAmid && o.Dropped.Total()+o.Rejected != 0 {
			t.Errorf("output %d: %+v", i, o)
		}
	}
	for i, r := range roads {
		written, failed := s.Outputs[i].Written, s.Outputs[i].Dropped.GaveUp
		shared := i == len(roads)-1
		if shared {
			written, failed = written+s.Outputs[i+1].Written, failed+s.Outputs[i+1].Dropped.GaveUp
		}
		entry := r.ends[0].ledger()
		if r.head != nil {
			entry = r.head.ledger()
		}
		r.ends[0].ledger().Check(t)
		found, notices := followRecords(t, r.ends[0].delivered(), shared)
		if r.head == nil { // then they are the Logger's, and not in its account
			entry.Written -= uint64(notices)
			entry.Accepted -= uint64(notices)
		}
		entry.CheckSettled(t, int(written), found)
		if entry.Rejected != failed {
			t.Errorf("output %d: %d lines failed, %d rejected by the writer", i, failed, entry.Rejected)
		}
	}
}

var numbers = regexp.MustCompile(`\bp"?[:=](\d+),? ?"?s"?[:=](\d+)`)

// followRecords wants whole lines, and those of one producer in order; each once,
// or twice if shared. It returns their number and that of notices.
func followRecords(t *testing.T, b []byte, shared bool) (lines, notices int) {
	t.Helper()
	if len(b) > 0 && b[len(b)-1] != '\n' {
		t.Errorf("the last line is torn: %q", b[max(0, len(b)-80):])
	}
	got := make([][]int, producers)
	for line := range bytes.Lines(b) {
		if bytes.Contains(line, []byte(`rollway: `)) {
			notices++
			continue
		}
		m := numbers.FindAllSubmatch(line, -1)
		if len(m) != 1 {
			t.Fatalf("not a line that was logged: %.200q", line)
		}
		p, _ := strconv.Atoi(string(m[0][1]))
		seq, _ := strconv.Atoi(string(m[0][2]))
		got[p] = append(got[p], seq)
		lines++
	}
	for p, seqs := range got {
		if !slices.IsSorted(seqs) {
			t.Errorf("producer %d: its lines are out of order: %v", p, seqs)
		}
		most := 1
		if shared {
			most = 2
		}
		for i := most; i < len(seqs); i++ {
			if seqs[i] == seqs[i-most] {
				t.Errorf("producer %d: line %d came too often", p, seqs[i])
			}
		}
	}
	return lines, notices
}
