package loki

import (
	"fmt"
	"strings"
	"testing"

	"github.com/klauspost/compress/snappy"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/decodetest"
)

// An answer names ten of the entries that were rejected, and counts all.
func TestRejectionsListed(t *testing.T) {
	s := decodetest.NewServer(t, func(o *receiver.Options) { o.Limits.MaxEventBytes = 300 })
	var values []string
	for range 12 {
		values = append(values, `["1","`+strings.Repeat("x", 400)+`"]`)
	}
	rec := decodetest.Send(s.Handler(Protocol), "/", `{"streams":[{"values":[`+strings.Join(values, ",")+`]}]}`, "Content-Type", ofJSON)
	if n := strings.Count(rec.Body.String(), "ignored, reason"); rec.Code != 400 || n != 10 || !strings.HasSuffix(rec.Body.String(), "total ignored: 12 out of 12\n") {
		t.Errorf("%d, %d named: %s", rec.Code, n, rec.Body)
	}
}

// Times at the bounds of what a line can have, and metadata that Loki has parsed.
func TestBoundsOfTimes(t *testing.T) {
	for _, c := range []struct {
		sec, nsec uint64
		want      string
	}{
		{253402300799, 999_999_999, `{"time":"9999-12-31T23:59:59.999999999Z"`},
		{253402300800, 0, ""},
		{1779972000, 1_000_000_000, ""},
	} {
		s := decodetest.NewServer(t, func(o *receiver.Options) { o.Limits = normalize.Limits{MaxPast: -1, MaxFuture: -1} })
		body := message(1, message(2, message(1, number(1, c.sec), number(2, c.nsec)), text(2, "x"), message(4, text(1, "parsed"), text(2, "p"))))
		rec := decodetest.Send(s.Handler(Protocol), "/", string(snappy.Encode(nil, body)), "Content-Type", ofProto)
		if rec.Code != 204 || len(s.Lines) != 1 || !strings.Contains(s.Lines[0], `"attrs":{"parsed":"p"}`) {
			t.Fatalf("%d: %d %s %q", c.sec, rec.Code, rec.Body, s.Lines)
		}
		taken := fmt.Sprint(strings.HasPrefix(s.Lines[0], `{"time":"9999-`), strings.HasPrefix(s.Lines[0], `{"time":"2026-05-28T12:40:0`))
		if c.want != "" && !strings.HasPrefix(s.Lines[0], c.want) || c.want == "" && taken != "false false" {
			t.Errorf("%d.%d: %s", c.sec, c.nsec, s.Lines[0])
		}
	}
}

// A body that came too slowly is to be sent again.
func TestSlowBody(t *testing.T) {
	decodetest.CheckSlowBody(t, Protocol, ofJSON, `{"streams":[`, "the body did not arrive within")
}
