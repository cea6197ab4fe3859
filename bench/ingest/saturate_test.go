package ingest

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/internal/testkit"
)

// TestSaturate counts each answer once, and a refusal as an error that ends
// nothing; however late a connection's turn comes, it sends one request.
func TestSaturate(t *testing.T) {
	for _, d := range []time.Duration{0, 100 * time.Millisecond} {
		var served atomic.Int64
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if served.Add(1)%5 == 0 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}))
		defer s.Close()
		sent, err := saturate(load{Addr: s.Listener.Addr().String(), Protocol: pathOTLPJSON, Events: 2, Duration: d, Conns: 4, Want: 200, Grace: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if n := int(served.Load()); n < 4 || d == 0 && n > 4 || sent.Sent != n || sent.Errors != n/5 || sent.Acknowledged != n-n/5 || n >= 5 && !strings.Contains(sent.FirstError, "503") {
			t.Errorf("%d served in %v: %+v", n, d, sent)
		}
	}
}

// TestSaturation saturates ours by each receiver, for a moment, and finds what it
// acknowledged.
func TestSaturation(t *testing.T) {
	testkit.Nightly(t, testkit.Bench, "it measures for real, if briefly")
	t.Parallel()
	own, dir := ownProgram(t), t.TempDir()
	var list []Saturation
	for _, d := range saturatedProtocols() {
		one, err := measureSaturation(Buffered, own, filepath.Join(dir, strings.ReplaceAll(string(d), "/", "-")), load{
			Protocol: d, Events: 1, Duration: 200 * time.Millisecond, Conns: 8, Grace: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if one.Acknowledged < 8 || one.Errors > 0 || one.Stored != one.Acknowledged || one.CPUSeconds <= 0 {
			t.Errorf("%+v", one)
		}
		list = append(list, one)
	}
	file := filepath.Join(dir, "results.json")
	saved := Results{Results: *measure.NewResults(Kind, 1), Saturated: list}
	if err := measure.Save(file, saved); err != nil {
		t.Fatal(err)
	}
	if loaded, err := Load(file); err != nil || !slices.Equal(loaded.Saturated, list) {
		t.Errorf("%v: %+v, saved %+v", err, loaded, list)
	}
	if got := saturationTable(list); strings.Count(got, "| "+Buffered+" |") != 2 || !strings.Contains(got, "| OTLP/JSON |") {
		t.Error(got)
	}
}
