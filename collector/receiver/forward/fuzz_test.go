package forward

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver/decodetest"
	"github.com/rollway/rollway/internal/jsonline"
)

// FuzzDecode sends any bytes, also in two pieces.
func FuzzDecode(f *testing.F) {
	for _, b := range decodetest.Recorded(f, "*.request") {
		f.Add(b, len(b)/2, len(b)%2 == 0)
	}
	f.Add([]byte(arr(str("t"), arr(arr(at(1, 2), dict(str("a"), "\xd4\x05\x01", "\xc3", "\xcf\xff\xff\xff\xff\xff\xff\xff\xff", arr(), "\xcb"))), chunk)), 9, true)
	f.Add([]byte(arr(str("t"), num(1), dict(str("log"), str("panic: a")))+arr(str("t"), num(1), dict(str("log"), str("goroutine 1 [running]:")))), 20, false)
	f.Fuzz(func(t *testing.T, data []byte, cut int, apart bool) {
		if cut < 0 || cut > len(data) {
			cut = len(data) / 2
		}
		limits := normalize.Limits{MaxEventBytes: 2000, MaxEvents: 100, Text: normalize.Text{Apart: apart}}
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

// FuzzJSON has texts be records: in JSON and in MessagePack they become the same lines.
func FuzzJSON(f *testing.F) {
	f.Add("app", "hello|{}|[\"\\", uint32(1749988800), 9)
	f.Add("\"", "\xff|\u2028|"+strings.Repeat("long", 600), uint32(1), 3)
	f.Fuzz(func(t *testing.T, tag, texts string, sec uint32, cut int) {
		limits := normalize.Limits{MaxEventBytes: 2000, MaxEvents: 4}
		tag = strings.ToValidUTF8(tag, "?")
		quoted := func(s string) string { return string(jsonline.AppendString(nil, s)) }
		var inJSON, inPack []string
		for i, text := range strings.Split(strings.ToValidUTF8(texts, "?"), "|") {
			at := max(sec, 1)
			if i%2 == 0 {
				inJSON, inPack = append(inJSON, fmt.Sprintf("[%d,%s]", at, quoted(text))), append(inPack, arr(num(at), str(text)))
			} else {
				inJSON, inPack = append(inJSON, fmt.Sprintf(`[%d,{"log":%s,"n":[%d,null]}]`, at, quoted(text), i)), append(inPack, arr(num(at), dict(str("log"), str(text), str("n"), arr(num(uint32(i)), "\xc0"))))
			}
		}
		message := fmt.Sprintf(`[%s,[%s]]`, quoted(tag), strings.Join(inJSON, ","))
		cut = min(max(cut, 0), len(message))
		got, left, err := decode(t, limits, message[:cut], message[cut:])
		want, _, err2 := decode(t, limits, arr(str(tag), arr(inPack...)))
		if err != nil || err2 != nil || len(left) > 0 || string(got.Batch.Lines) != string(want.Batch.Lines) || got.Batch.RejectedTotal != want.Batch.RejectedTotal {
			t.Fatalf("%s: %v %v, %q is left\n%s%+v\nin MessagePack\n%s%+v", message, err, err2, left, got.Batch.Lines, got.Batch.Rejected, want.Batch.Lines, want.Batch.Rejected)
		}
		for i := range inJSON { // alone, and as it is read again
			one, _, _ := decode(t, limits, fmt.Sprintf("[%s,%s", quoted(tag), inJSON[i][1:]))
			again := newChunk(inJSON[i], limits)
			if err := Reread(again, []byte(tag)); err != nil || string(again.Batch.Lines) != string(one.Batch.Lines) {
				t.Fatalf("%s: %v\n%salone\n%s", inJSON[i], err, again.Batch.Lines, one.Batch.Lines)
			}
		}
	})
}
