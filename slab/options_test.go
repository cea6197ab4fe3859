package slab_test

import (
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/slab"
)

func TestNewRefusesBadOptions(t *testing.T) {
	before := runtime.NumGoroutine()
	for want, o := range map[string]slab.Options{
		"SlabSize is 63, allowed is 64":                                                          {SlabSize: 63},
		"SlabSize is -1,":                                                                        {SlabSize: -1},
		"SlabSize is 1073741825,":                                                                {SlabSize: 1<<30 + 1},
		"SlabCount is 1, allowed is 2 to 65536":                                                  {SlabCount: 1},
		"SlabCount is 65537,":                                                                    {SlabCount: 1<<16 + 1},
		"SlabSize × SlabCount is 70368744177664,":                                                {SlabSize: 1 << 30, SlabCount: 1 << 16},
		"FlushInterval is -1s, allowed is 1ms to 1h":                                             {FlushInterval: -time.Second},
		"FlushInterval is 1µs,":                                                                  {FlushInterval: time.Microsecond},
		"FlushInterval is 2h0m0s,":                                                               {FlushInterval: 2 * time.Hour},
		"Full is Policy(7), allowed is Block or Drop":                                            {Full: 7},
		"OversizeLimit is 100, allowed is 65536 (SlabSize) to 1073741824 bytes":                  {OversizeLimit: 100},
		"BlockTimeout is -1ns, allowed is 0 (for ever) or more":                                  {BlockTimeout: -1},
		"BlockTimeout is 1s, allowed is 0 (for ever) or more, and 0 with Drop":                   {BlockTimeout: time.Second, Full: slab.Drop},
		"Levels.Reserve is 7, allowed is up to 6 (SlabCount-2)":                                  {Levels: slab.Levels{Reserve: 7}},
		"Levels.ErrorWait is -1ns, allowed is 0 (not at all) or more":                            {Levels: slab.Levels{ErrorWait: -1}},
		"Levels.WriteThroughTimeout is -1ns, allowed is more than 0":                             {Levels: slab.Levels{WriteThroughTimeout: -1}},
		"FailoverAfter is -1ns, allowed is more than 0":                                          {FailoverAfter: -1},
		"FailoverAfter is 5s, allowed is more than 0, and less than Retry.GiveUp if that is set": {Failover: io.Discard, FailoverAfter: 5 * time.Second, Retry: slab.Retry{GiveUp: 5 * time.Second}},
		"FailoverProbe is -1ns, allowed is more than 0":                                          {FailoverProbe: -1},
		"CloseTimeout is -1ns, allowed is more than 0":                                           {CloseTimeout: -1},
		"Retry.Min is -1ns, allowed is more than 0":                                              {Retry: slab.Retry{Min: -1}},
		"Retry.Max is 1ms, allowed is 10ms (Retry.Min) or more":                                  {Retry: slab.Retry{Max: time.Millisecond}},
		"Retry.GiveUp is -1ns, allowed is 0 (never) or more":                                     {Retry: slab.Retry{GiveUp: -1}},
	} {
		w, err := slab.New(io.Discard, o)
		if w != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New(%+v) = %v, %v, want an error with %q", o, w, err, want)
		}
	}
	if w, err := slab.New(nil, slab.Options{}); w != nil || err == nil {
		t.Errorf("New without a destination = %v, %v, want an error", w, err)
	}
	// Those of the runtime and of other tests may come and go.
	for end := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines run after New failed, %d before", runtime.NumGoroutine(), before)
		}
	}
}

func TestLargeSlabRaisesTheDefaultOversizeLimit(t *testing.T) {
	w, _ := open(t, slab.Options{SlabSize: 2 << 20, SlabCount: 2})
	p := make([]byte, 2<<20)
	p[len(p)-1] = '\n'
	if n, err := w.Write(p); n != len(p) || err != nil {
		t.Errorf("Write of a line as large as a slab = %d, %v", n, err)
	}
}
