package remote

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// FuzzParseBulk: no answer makes more of the lines than there are, or leaves
// one undecided without saying why.
func FuzzParseBulk(f *testing.F) {
	for _, s := range []string{
		``, `{}`, `[]`, `null`, `{"errors":false}`, `{"errors":true}`, `{"errors":"no"}`, `{"took":1,"errors":false,"items":[]}`,
		`{"errors":true,"items":[{"create":{"status":201}},{"create":{"status":429,"error":{"type":"a","reason":"b"}}},{"create":{"status":400,"error":"text"}}]}`,
		`{"items":[{"create":{"status":201}},{"index":{"status":409}},{"create":{"status":503}}],"errors":false}`,
		`{"items":[{"create":{"status":201},"index":{}}]}`, `{"items":[{},{}]}`, `{"items":[1]}`, `{"items":{}}`, `{"items":null,"errors":true}`,
		`{"items":[{"a":{"status":-5}},{"a":{"status":1e99}}]}`, `{"items":[{"a":{"status":400,"error":{"caused_by":{"reason":"c"},"type":"t"}}}]}`,
		`{"error":{"type":"x"},"status":400}`, `{"errors":true,"items":[{"create":{"status":201}}],"items":[{"create":{"status":400}}]}`,
	} {
		f.Add(s, 3)
	}
	f.Fuzz(func(t *testing.T, s string, lines int) {
		lines = 1 + (lines&0xff+256)%256
		v, err := parseBulk(strings.NewReader(s), lines)
		if err != nil {
			if v.lines != nil || v.refused > 0 {
				t.Fatalf("%q: %v and yet %+v", s, err, v)
			}
			return
		}
		if v.lines == nil {
			return // all is written
		}
		todo, refused := 0, 0
		for _, l := range v.lines {
			switch l {
			case lineTodo:
				todo++
			case lineRefused:
				refused++
			}
		}
		if len(v.lines) != lines || (todo > 0) != (v.again != nil) && todo > 0 || refused > 0 && v.reason == "" {
			t.Fatalf("%q: %d lines became %+v", s, lines, v)
		}
	})
}

// FuzzLokiAnswer: no body of a 400 refuses more lines than there are.
func FuzzLokiAnswer(f *testing.F) {
	for _, s := range []string{
		"", "total ignored: 2 out of 3 for stream: {}", "total ignored: 3 out of 2", "total ignored: 1 out of 1 total ignored: 1 out of 1",
		"entry for stream '{}' has timestamp too old: x", "total ignored: 999999999 out of 999999999", "total ignored: -1 out of 3", "\xff",
	} {
		f.Add(s, 3, true)
		f.Add(s, 1, false)
	}
	format := newLokiFormat(Loki{LevelLabel: "level"})
	f.Fuzz(func(t *testing.T, body string, lines int, mixed bool) {
		lines = 1 + (lines&0xff+256)%256
		rec := httptest.NewRecorder()
		rec.WriteHeader(http.StatusBadRequest)
		rec.WriteString(body)
		v, err := format.readAnswer(rec.Result(), lines, mixed)
		if err != nil || v.refused > uint64(lines) || v.refused > 0 && v.reason == "" || v.lines != nil {
			t.Fatalf("%q of %d lines: %+v, %v", body, lines, v, err)
		}
		if !v.split && v.whole == nil && v.refused == 0 && !strings.Contains(body, "ignored: 0 out of") && !strings.Contains(body, "ignored: 00") {
			t.Fatalf("%q: a 400 that refuses nothing", body)
		}
		if v.split && !mixed {
			t.Fatalf("%q: one stream cannot be split", body)
		}
	})
}

// FuzzBodies: what is made of any lines is JSON, with an entry for each.
func FuzzBodies(f *testing.F) {
	for _, s := range []string{"a", `{"msg":"a"}`, "{}\n\xff", `{"level":"WARN"}` + "\n" + `{"level":"INFO"}` + "\nx", `{"@timestamp":1}`, "\x00\n\"\\", "{\t}", "{ \"a\":1}\r"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var lines [][]byte
		for l := range strings.SplitSeq(s, "\n") {
			lines = append(lines, []byte(l))
		}
		at := time.Unix(1779972000, 5)
		var push struct {
			Streams []struct {
				Stream map[string]string
				Values [][2]string
			}
		}
		body := newLokiFormat(Loki{LevelLabel: "level", Labels: map[string]string{"a": "b"}}).appendBody(nil, nil, lines, at, nil)
		if err := json.Unmarshal(body, &push); err != nil {
			t.Fatalf("%q became %q: %v", s, body, err)
		}
		n := 0
		for _, st := range push.Streams {
			n += len(st.Values)
			if len(st.Stream) != 2 {
				t.Fatalf("%q became %q", s, body)
			}
		}
		if n != len(lines) {
			t.Fatalf("%q: %d entries of %d lines", s, n, len(lines))
		}
		body = new(elasticFormat).appendBody(nil, nil, lines, at, func(i int) string { return fmt.Sprint(i) })
		docs := strings.Split(strings.TrimSuffix(string(body), "\n"), "\n")
		if len(docs) != 2*len(lines) {
			t.Fatalf("%q became %q", s, body)
		}
		for i, d := range docs {
			var doc map[string]json.RawMessage
			if err := json.Unmarshal([]byte(d), &doc); err != nil || i%2 == 1 && doc["@timestamp"] == nil {
				t.Fatalf("%q became %q: %v", s, d, err)
			}
		}
	})
}
