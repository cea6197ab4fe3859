package sentry

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"testing"
	"unicode/utf8"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver/decodetest"
)

// FuzzItems makes an envelope of items with any type and payload, with their length
// or without, and wants each event and each log stored or rejected once, and each item of
// another kind ignored; cut short it is refused or has fewer, never more.
func FuzzItems(f *testing.F) {
	f.Add("event", []byte(someEvent), "log", []byte(`{"items":[`+someLog+`,5,`+someLog+`]}`), true, 1<<20)
	f.Add("session", []byte("{}\n{}"), "log", []byte(`{"items":{}}`), true, 30)
	f.Add("log", []byte(`{}`), "attachment", []byte("\x00\xff"), false, 1<<20)
	f.Fuzz(func(t *testing.T, kind1 string, payload1 []byte, kind2 string, payload2 []byte, length bool, cut int) {
		body, want := []byte("{}"), 0
		for i, kind := range []string{kind1, kind2} {
			payload := [][]byte{payload1, payload2}[i]
			if !length && bytes.ContainsAny(payload, "\n") || bytes.ContainsAny(payload, "\r") {
				return // the item would end elsewhere
			}
			header := map[string]any{"type": kind}
			if length {
				header["length"] = len(payload)
			}
			text, err := json.Marshal(header)
			if err != nil {
				t.Fatal(err)
			}
			body = append(append(append(append(body, '\n'), text...), '\n'), payload...)
			logs, sure := countLogs(payload)
			if !sure && kind == "log" {
				return
			}
			if kind == "log" {
				want += logs
			} else {
				want++
			}
		}
		got, err := events(t, body)
		if err != nil || got != want {
			t.Fatalf("%q: %d stored or rejected of %d, %v", body, got, want, err)
		}
		if cut >= 0 && cut < len(body) {
			if got, err = events(t, body[:cut]); err == nil && got > want {
				t.Fatalf("%q: %d stored or rejected, of %d if it were whole", body[:cut], got, want)
			}
		}
	})
}

func events(t *testing.T, body []byte) (int, error) {
	t.Helper()
	batch := new(normalize.Batch)
	_, err := decodetest.Decode(Envelope, normalize.New(normalize.Limits{MaxEvents: 1 << 20}), batch, httptest.NewRequest("POST", "/", nil), bytes.Clone(body), nil)
	decodetest.CheckLines(t, batch)
	return batch.Events(), err
}

// countLogs is how many events a payload of logs has; sure: encoding/json and the
// receiver see the same in it.
func countLogs(payload []byte) (n int, sure bool) {
	var logs map[string]json.RawMessage
	if !utf8.Valid(payload) || json.Unmarshal(payload, &logs) != nil {
		return 1, true // rejected by itself
	}
	if bytes.Count(payload, []byte(`"items"`)) > 1 || bytes.Contains(payload, []byte(`\u`)) {
		return 0, false // which of them counts
	}
	var items []json.RawMessage
	if raw, has := logs["items"]; !has || bytes.Equal(raw, []byte("null")) || json.Unmarshal(raw, &items) != nil {
		return 1, true
	}
	return len(items), true
}
