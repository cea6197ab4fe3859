package receiver

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/normalize"
)

// FuzzLines sends any bytes as lines over a connection, in pieces cut anywhere: the
// lines and the rejections are those of the whole, and each line that is not blank
// is accounted for.
func FuzzLines(f *testing.F) {
	for _, s := range []string{"{}\n{\"msg\":\"x\"}\n", "{\"a\":1}", "[{},{}]\n{} {}\n7\n\"x", strings.Repeat("x", 300) + "\n{}\n", "\n\r\n {\"msg\":\"y\"} \n[1,", "{}" + strings.Repeat(" ", 299)} {
		f.Add([]byte(s), 3, 7)
	}
	f.Fuzz(func(t *testing.T, data []byte, a, b int) {
		cuts := []int{a, b}
		for i, cut := range cuts {
			cuts[i] = min(max(cut, 0), len(data))
		}
		slices.Sort(cuts)
		whole, left := sendLines(t, data)
		parts, leftOf := sendLines(t, data[:cuts[0]], data[cuts[0]:cuts[1]], data[cuts[1]:])
		if string(whole.Lines) != string(parts.Lines) || whole.RejectedTotal != parts.RejectedTotal || left != leftOf {
			t.Fatalf("%q cut at %d: %q, %d rejected, %d left; whole: %q, %d rejected, %d left", data, cuts, parts.Lines, parts.RejectedTotal, leftOf, whole.Lines, whole.RejectedTotal, left)
		}
		least := 0
		for line := range bytes.Lines(data) {
			// An empty array is no event.
			if line = bytes.TrimSpace(line); len(line) > 0 && !bytes.Contains(line, []byte("[")) && (bytes.ContainsAny(line, "{}\"0123456789") || len(line) > 200) {
				least++
			}
		}
		if left > 0 {
			least-- // which counts as torn
		}
		if whole.Records+whole.RejectedTotal < least || bytes.Count(whole.Lines, []byte("\n")) != whole.Records {
			t.Fatalf("%q: %d stored, %d rejected of %d", data, whole.Records, whole.RejectedTotal, least)
		}
		for line := range bytes.Lines(whole.Lines) {
			if !json.Valid(line) {
				t.Fatalf("%q became %q", data, line)
			}
		}
	})
}

// sendLines gives a session pieces and then its end, and returns what is in the
// batch and how many bytes are left over.
func sendLines(t *testing.T, pieces ...[]byte) (*normalize.Batch, int) {
	t.Helper()
	s := NDJSON{MaxLine: 200}.Open()
	c := &Chunk{Received: time.Unix(1779972000, 0), Norm: normalize.New(normalize.Limits{MaxPast: -1, MaxFuture: -1, Text: normalize.Text{Apart: true}}), Batch: new(normalize.Batch)}
	total := new(normalize.Batch)
	var left []byte
	for _, piece := range append(pieces, nil) {
		left = append(left, piece...)
		c.Data, c.End = bytes.Clone(left), piece == nil
		n, err := s.Decode(c)
		if err != nil || n < 0 || n > len(left) {
			t.Fatalf("%d of %d bytes taken, %v", n, len(left), err)
		}
		if left = left[n:]; len(left) > 201 {
			t.Fatalf("%d bytes are left, which a line cannot have", len(left))
		}
		total.Lines = append(total.Lines, c.Batch.Lines...)
		total.Records += c.Batch.Records
		total.RejectedTotal += c.Batch.RejectedTotal
		c.Batch.Reset()
	}
	return total, len(left)
}
