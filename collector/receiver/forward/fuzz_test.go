package forward

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver/decodetest"
)

// FuzzDecode sends any bytes in two pieces.
func FuzzDecode(f *testing.F) {
	for _, b := range decodetest.Recorded(f, "*.request") {
		f.Add(b, len(b)/2)
	}
	f.Add([]byte(arr(str("t"), arr(arr(at(1, 2), dict(str("a"), "\xd4\x05\x01", "\xc3", "\xcf\xff\xff\xff\xff\xff\xff\xff\xff", arr(), "\xcb"))), chunk)), 9)
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		if cut < 0 || cut > len(data) {
			cut = len(data) / 2
		}
		limits := normalize.Limits{MaxEventBytes: 2000, MaxEvents: 100}
		c, left, err := decode(t, limits, string(data[:cut]), string(data[cut:]))
		whole, rest, again := decode(t, limits, string(data))
		if (err == nil) != (again == nil) || err == nil && len(left) != len(rest) || string(c.Batch.Lines) != string(whole.Batch.Lines) || string(c.Reply) != string(whole.Reply) {
			t.Fatalf("%q cut at %d: %v, %d left, %q; whole: %v, %d left, %q", data, cut, err, len(left), c.Batch.Lines, again, len(rest), whole.Batch.Lines)
		}
		lines := 0
		for line := range strings.Lines(string(c.Batch.Lines)) {
			lines++
			if !json.Valid([]byte(line)) {
				t.Fatalf("%q became %q", data, line)
			}
		}
		if lines != c.Batch.Records {
			t.Fatalf("%d lines, %d records", lines, c.Batch.Records)
		}
	})
}
