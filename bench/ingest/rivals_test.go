package ingest

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/rollway/rollway/internal/testkit"
)

// TestRivals puts each rival under a little of each load by OTLP; those that
// store have every event once. Rivals have to be in the cache, or are fetched
// if nothing may be skipped.
func TestRivals(t *testing.T) {
	testkit.Nightly(t, testkit.Engines, "rivals are fetched or built")
	dir := t.TempDir()
	for _, su := range subjects() {
		rival, is := rivals[su.name]
		if !is {
			continue
		}
		t.Run(su.name, func(t *testing.T) {
			program, err := rival.path(testkit.All())
			if err != nil {
				testkit.Missing(t, err.Error())
			}
			for i, l := range Loads() {
				l := load{Rate: l.Rate / 50, Events: l.Events, Duration: 200 * time.Millisecond, Conns: 16, Grace: time.Minute}
				run, err := measureRun(su, program, filepath.Join(dir, fmt.Sprint(su.name, i)), l)
				if err != nil {
					t.Fatal(err)
				}
				if s := run.Sent; s.Errors != 0 || s.Acknowledged != l.requests() || run.CPUSeconds <= 0 || run.Resident == 0 || run.GCCycles != 0 { // nobody is asked meanwhile
					t.Errorf("%+v", run)
				}
				stores := su.name == otelFile || su.name == otelSynced
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
	} {
		if got := c.protocol.takes([]byte(c.body), []byte(`"accepted":3,`)); got != c.want {
			t.Errorf("%s %q: %v", c.protocol, c.body, got)
		}
	}
}
