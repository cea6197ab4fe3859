package ingest

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/internal/testkit"
)

// TestRivals puts each server under a little of each load by OTLP; those that
// store have every event once. Rivals have to be in the cache, or are fetched
// if nothing may be skipped.
func TestRivals(t *testing.T) {
	testkit.Nightly(t, testkit.Engines, "rivals are fetched or built")
	own, dir := ownProgram(t), t.TempDir()
	for _, name := range Rivals() {
		t.Run(name, func(t *testing.T) {
			program := own
			var err error
			if rival, is := rivalOf(name); is {
				if program, err = rival.path(testkit.All()); err != nil {
					testkit.Missing(t, err.Error())
				}
			}
			for i, l := range Loads() {
				l := load{Protocol: pathOTLP, Rate: l.Rate / 50, Events: l.Events, Duration: 200 * time.Millisecond, Conns: 16, Grace: time.Minute}
				run, err := measureRun(name, program, filepath.Join(dir, fmt.Sprint(name, i)), 0, l)
				if err != nil {
					t.Fatal(err)
				}
				if s := run.Sent; s.Errors != 0 || s.Acknowledged != l.requests() || run.PerCore() <= 0 || run.Resident == 0 || run.HeapPeak != 0 { // nobody is asked meanwhile
					t.Errorf("%+v", run)
				}
				stores := promises[name] != "nothing"
				if stores != (run.Found != nil) || stores && *run.Found != (Found{Acknowledged: l.requests() * l.Events}) {
					t.Errorf("found %+v", run.Found)
				}
			}
		})
	}
}

// TestEachInQueue finds the numbers in a file of the collector's queue.
func TestEachInQueue(t *testing.T) {
	dir := t.TempDir()
	none := func(uint64) error { return errors.New("a number in an empty folder") }
	if err := eachInQueue(dir, none); err == nil {
		t.Error("no error without a file")
	}
	db, err := bbolt.Open(filepath.Join(dir, "exporter_x__logs"), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		bucket, err := tx.CreateBucket([]byte("default"))
		for i, first := range []uint64{10, 0x123456} {
			b := newOTLPBody(3)
			b.number(first)
			err = errors.Join(err, bucket.Put([]byte{byte(i)}, b.data))
		}
		return errors.Join(err, bucket.Put([]byte("index"), []byte("no request")))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	var got []uint64
	if err := eachInQueue(dir, func(n uint64) error { got = append(got, n); return nil }); err != nil {
		t.Fatal(err)
	}
	if want := []uint64{10, 11, 12, 0x123456, 0x123457, 0x123458}; !slices.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
	turned := slices.Concat(otlpValue, []byte("00000000002a"), otlpKey, []byte("and on"))
	if err := eachInRequest(turned, func(n uint64) error { got = append(got, n); return nil }); err != nil || got[len(got)-1] != 42 {
		t.Errorf("turned round: %x %v", got, err)
	}
	if err := eachInRequest(slices.Concat(otlpKey, otlpValue), none); err == nil {
		t.Error("a request that is cut off has no error")
	}
}

func TestTakes(t *testing.T) {
	for _, c := range []struct {
		protocol protocol
		body     string
		want     bool
	}{
		{pathJSON, "", true}, {pathJSON, `{"accepted":3,"rejected":0}`, true}, {pathJSON, `{"accepted":2,"rejected":1}`, false},
		{pathOTLP, "", true}, {pathOTLP, "\n\x00", true}, {pathOTLP, `{"partialSuccess":{}}`, true}, {pathOTLP, "\n\x02\x08\x01", false},
		{pathOTLPJSON, "{}", true}, {pathOTLPJSON, `{"partialSuccess":null}`, true}, {pathOTLPJSON, `{"partialSuccess":{"rejectedLogRecords":"1"}}`, false},
	} {
		if got := c.protocol.takes([]byte(c.body), []byte(`"accepted":3,`)); got != c.want {
			t.Errorf("%s %q: %v", c.protocol, c.body, got)
		}
	}
}

func testRun(name string, rate int, p99 time.Duration, cpu float64) Run {
	return Run{Server: name, Protocol: pathOTLP, Rate: rate, Events: 1, CPUSeconds: cpu, Sent: Sent{Requests: rate, Acknowledged: rate, Latency: Latency{P99: p99}}}
}

// TestRivalTables: of each server counts the most that it held.
func TestRivalTables(t *testing.T) {
	runs := []Run{
		testRun(Buffered, 1000, time.Millisecond, 1),
		testRun(OtelFile, 1000, 2*time.Second, 0.1), testRun(OtelFile, 500, time.Millisecond, 1), testRun(OtelFile, 250, time.Millisecond, 0.1),
		testRun(Rotel, 1000, time.Millisecond, 0.5),
		testRun(OtelSynced, 100, time.Millisecond, 1),
	}
	text := rivalTables(runs, []string{"somebody:\n not there"})
	for _, want := range []string{
		fmt.Sprintf("%s ÷ %s, 1 event a request | 2.00 | > 1 | yes |", Buffered, OtelFile),
		fmt.Sprintf("%s ÷ %s, 1 event a request | 0.50 | > 1 | **no** |", Buffered, Rotel),
		fmt.Sprintf("%s ÷ %s, 1 event a request | ours held no load | > 1 | **no** |", Synced, OtelSynced),
		"Left out: somebody: not there", "survives a power cut",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if text := rivalTables(nil, nil); text != "" {
		t.Error("tables of nothing: ", text)
	}
}

// TestKeep: what is not measured again stays, and says where it is from.
func TestKeep(t *testing.T) {
	made := func(date string) *Results {
		r := &Results{Results: measure.Results{Kind: Kind, Date: date, Samples: []measure.Sample{{Case: date}}}}
		r.Runs, r.Rivals = []Run{{Server: date}}, []Run{{Server: date}}
		return r
	}
	first := made("first")
	second := &Results{Results: measure.Results{Kind: Kind, Date: "second"}}
	second.Keep(first, map[Part]bool{PartRivals: true})
	second.Rivals = []Run{{Server: "second"}}
	third := &Results{Results: measure.Results{Kind: Kind, Date: "third"}}
	third.Keep(second, map[Part]bool{PartServers: true})
	third.Runs = []Run{{Server: "third"}}
	if third.Samples[0].Case != "first" || third.Runs[0].Server != "third" || third.Rivals[0].Server != "second" {
		t.Errorf("%+v", third)
	}
	for part, date := range map[Part]string{PartRequests: "first", PartServers: "third", PartRivals: "second"} {
		if got := third.Origins[part].Date; got != date {
			t.Errorf("%s is from %s, want %s", part, got, date)
		}
	}
}

func TestParseParts(t *testing.T) {
	all, err := ParseParts("")
	if err != nil || !all[PartRequests] || !all[PartServers] || !all[PartRivals] || !all[PartSaturation] {
		t.Error(all, err)
	}
	some, err := ParseParts("rivals, requests")
	if want := map[Part]bool{PartRequests: true, PartServers: false, PartRivals: true, PartSaturation: false}; err != nil || !maps.Equal(some, want) {
		t.Error(some, err)
	}
	if _, err := ParseParts("rivals,"); err == nil {
		t.Error("an empty part is taken")
	}
}
