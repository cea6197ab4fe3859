package slab_test

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/slab"
)

func TestNewRefusesBadOptions(t *testing.T) {
	synctest.Test(t, refuseBadOptions) // a goroutine that runs on would be found
}

func refuseBadOptions(t *testing.T) {
	for want, o := range map[string]slab.Options{
		"Full is Policy(7), allowed is Bounded, Block or Drop": {Full: 7},
		"Full is Policy(-1),":                                             {Full: -1},
		"MaxWait is 1µs, allowed is 1ms to 1h":                            {MaxWait: time.Microsecond},
		"MaxWait is -1ns,":                                                {MaxWait: -1},
		"MaxWait is 2h0m0s,":                                              {MaxWait: 2 * time.Hour},
		"SlabSize is 63, allowed is 64":                                   {SlabSize: 63},
		"SlabSize is -1,":                                                 {SlabSize: -1},
		"SlabSize is 1073741825,":                                         {SlabSize: 1<<30 + 1},
		"SlabCount is 1, allowed is 2 to 65536":                           {SlabCount: 1},
		"SlabCount is 65537,":                                             {SlabCount: 1<<16 + 1},
		"SlabSize × SlabCount is 70368744177664,":                         {SlabSize: 1 << 30, SlabCount: 1 << 16},
		"FlushInterval is -1s, allowed is 1ms to 1h":                      {FlushInterval: -time.Second},
		"FlushInterval is 1µs,":                                           {FlushInterval: time.Microsecond},
		"FlushInterval is 2h0m0s,":                                        {FlushInterval: 2 * time.Hour},
		"MaxLine is 100, allowed is 65536 (SlabSize) to 1073741824 bytes": {MaxLine: 100},
		"GiveUp is -1ns, allowed is 0 (never) or more":                    {GiveUp: -1},
		"GiveUp is 100ms, allowed is 0 (never) or more, and with a failover more than MaxWait": {Failover: io.Discard, GiveUp: 100 * time.Millisecond},
		"CloseTimeout is -1ns, allowed is more than 0":                                         {CloseTimeout: -1},
	} {
		w, err := slab.New(io.Discard, o)
		if w != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New(%+v) = %v, %v, want an error with %q", o, w, err, want)
		}
	}
	if w, err := slab.New(nil, slab.Options{}); w != nil || err == nil {
		t.Errorf("New without a destination = %v, %v, want an error", w, err)
	}
}

func TestLargeSlabRaisesTheDefaultMaxLine(t *testing.T) {
	w, _ := open(t, slab.Options{SlabSize: 2 << 20, SlabCount: 2})
	p := make([]byte, 2<<20)
	p[len(p)-1] = '\n'
	if n, err := w.Write(p); n != len(p) || err != nil {
		t.Errorf("Write of a line as large as a slab = %d, %v", n, err)
	}
}
