package writers

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/rollway/rollway/bench/internal/lines"
)

// TestAuditNotices: an audit that finds nothing would be worth nothing.
func TestAuditNotices(t *testing.T) {
	var good []byte
	for i := range 4 {
		for p := range 2 {
			good = lines.Append(good, LineBytes, p, i)
		}
	}
	at := func(i int) []byte { return good[i*LineBytes : (i+1)*LineBytes] }
	for name, c := range map[string]struct {
		stream []byte
		want   Report
	}{
		"good":      {good, Report{Written: 8}},
		"lost":      {good[LineBytes:], Report{Written: 8, Lost: 1}},
		"repeated":  {slices.Concat(good, at(7)), Report{Written: 8, Repeated: 1}},
		"reordered": {slices.Concat(at(0), at(1), at(4), at(3), at(2), good[5*LineBytes:]), Report{Written: 8, Reordered: 1}},
		"torn":      {slices.Concat(good[:len(good)-1], []byte("!\n")), Report{Written: 8, Lost: 1, Torn: 1}},
		"mixed":     {slices.Concat(at(0)[:100], at(1), at(0)[100:], good[2*LineBytes:]), Report{Written: 8, Lost: 2, Torn: 2}},
	} {
		if got, err := audit(bytes.NewReader(c.stream), lines.Parser(LineBytes), 2, 4); got != c.want || err != nil {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, c.want)
		}
	}
}

func TestParseLoggedNotices(t *testing.T) {
	good := `{"time":"2026-11-21T08:14:19Z","level":"INFO","msg":"payment settled","attrs":{"worker":12,"seq":1000000007,"pad":"xxx"}}` + "\n"
	parse := parseLogged("xxx")
	if worker, seq, ok := parse([]byte(good)); worker != 2 || seq != 7 || !ok {
		t.Fatalf("parse(%s) = %d, %d, %v", good, worker, seq, ok)
	}
	for _, change := range [][2]string{{"xxx", "xx"}, {"\n", ""}, {"}}", "}"}, {`"seq":1000000007`, `"seq":"1000000007"`}, {"worker", "w"}, {"settled", ""}} {
		bad := strings.Replace(good, change[0], change[1], 1)
		if _, _, ok := parse([]byte(bad)); ok {
			t.Errorf("taken: %s", bad)
		}
	}
}
