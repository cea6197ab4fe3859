package writers

import (
	"slices"
	"testing"
)

// TestAuditNotices: an audit that finds nothing would be worth nothing.
func TestAuditNotices(t *testing.T) {
	var good []byte
	for i := range 4 {
		for p := range 2 {
			good = appendLine(good, p, i)
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
		if got := audit(c.stream, 2, 4); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
