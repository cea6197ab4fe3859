package receiver

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/internal/jsonline"
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
		apart := normalize.Text{Apart: true} // the first line of a piece tells whether its lines are text
		whole, left := sendLines(t, apart, data)
		parts, leftOf := sendLines(t, apart, data[:cuts[0]], data[cuts[0]:cuts[1]], data[cuts[1]:])
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

// FuzzHold sends lines of text, as an agent reads them, over a connection, in pieces cut
// anywhere: those that only continue others wait for them, and the events are those of the
// whole. A pause ends what waits.
func FuzzHold(f *testing.F) {
	f.Add("a\n\tat b\nCaused by: c\nd", 3, 60)
	f.Add("ERROR x\nTraceback (most recent call last):\n  f\nE: x\n"+strings.Repeat("long", 60)+"\n y", 90, 400)
	f.Add("panic: a\n\ngoroutine 1 [running]:\nmain.f()\n\ts\nexit status 2\n z\n\n", 0, 50)
	f.Fuzz(func(t *testing.T, texts string, a, b int) {
		var data []byte
		for text := range strings.SplitSeq(texts, "\n") {
			data = append(jsonline.AppendString(append(data, `{"log":`...), text), "}\n"...)
		}
		a = min(max(a, 1), len(data)-2)
		b = min(max(b, a+1), len(data)-1)
		whole, _ := sendLines(t, normalize.Text{}, data)
		parts, left := sendLines(t, normalize.Text{}, data[:a], data[a:b], data[b:])
		if string(whole.Lines) != string(parts.Lines) || whole.RejectedTotal != parts.RejectedTotal || left > 0 {
			t.Fatalf("%q cut at %d and %d: %q, %d rejected, %d left; whole: %q, %d rejected", data, a, b, parts.Lines, parts.RejectedTotal, left, whole.Lines, whole.RejectedTotal)
		}
		pause := bytes.LastIndexByte(data[:a], '\n') + 1
		before, _ := sendLines(t, normalize.Text{}, data[:pause])
		after, _ := sendLines(t, normalize.Text{}, data[pause:])
		both, left := sendLines(t, normalize.Text{}, data[:pause], []byte{}, data[pause:])
		if string(both.Lines) != string(before.Lines)+string(after.Lines) || both.RejectedTotal != whole.RejectedTotal || left > 0 {
			t.Fatalf("%q with a pause at %d: %q, %d rejected, %d left; want %q and %q, %d rejected", data, pause, both.Lines, both.RejectedTotal, left, before.Lines, after.Lines, whole.RejectedTotal)
		}
	})
}

// sendLines gives a session pieces and then its end, and returns what is in the
// batch and how many bytes are left over. An empty piece is a pause.
func sendLines(t *testing.T, how normalize.Text, pieces ...[]byte) (*normalize.Batch, int) {
	t.Helper()
	s := NDJSON{MaxLine: 200}.Open()
	c := &Chunk{Received: time.Unix(1779972000, 0), Norm: normalize.New(normalize.Limits{MaxPast: -1, MaxFuture: -1, Text: how}), Batch: new(normalize.Batch)}
	total := new(normalize.Batch)
	var left []byte
	for _, piece := range append(pieces, nil) {
		left = append(left, piece...)
		c.Data, c.End, c.Holds = bytes.Clone(left), piece == nil, len(piece) > 0
		n, err := s.Decode(c)
		if err != nil || n < 0 || n > len(left) {
			t.Fatalf("%d of %d bytes taken, %v", n, len(left), err)
		}
		most := 201
		if c.held {
			most += firstRead / 2
		}
		if left = left[n:]; len(left) > most {
			t.Fatalf("%d bytes are left, which a line cannot have", len(left))
		}
		total.Lines = append(total.Lines, c.Batch.Lines...)
		total.Records += c.Batch.Records
		total.RejectedTotal += c.Batch.RejectedTotal
		c.Batch.Reset()
	}
	return total, len(left)
}
