package loki

import (
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver/decodetest"
)

// TestJoinedEntries sends a stack trace entry by entry, in both forms: it is one event, with
// the time of the first; but not an entry with other metadata.
func TestJoinedEntries(t *testing.T) {
	entries := [][]byte{entryOf("ERROR: it failed"), entryOf("\tat a.B(C.java:7)"), entryOf("Caused by: \"x\""), entryOf("done"), entryOf(" more", "a", "b"), entryOf(" of it", "a", "b"), entryOf(" apart", "a", "c"), entryOf("{\"msg\":\"x\"}"), entryOf("  y")}
	const want = `"level":"ERROR","msg":"ERROR: it failed\n\tat a.B(C.java:7)\nCaused by: \"x\""}|"level":"INFO","msg":"done"}|"level":"INFO","msg":" more\n of it","attrs":{"a":"b"}}|"level":"INFO","msg":" apart","attrs":{"a":"c"}}|"level":"INFO","msg":"{\"msg\":\"x\"}\n  y"}`
	value := func(line, more string) string { return `["` + stamp + `",` + strconv.Quote(line) + more + `]` }
	json := `{"streams":[{"values":[` + strings.Join([]string{value("ERROR: it failed", ""), value("\tat a.B(C.java:7)", ""), value(`Caused by: "x"`, ""), value("done", ""),
		value(" more", `,{"a":"b"}`), value(" of it", ` , {"a":"b"}`), value(" apart", `,{"a":"c"}`), value(`{"msg":"x"}`, ""), value("  y", "")}, ",\n") + `]}]}`
	for kind, body := range map[string]string{ofJSON: json, ofProto: string(push1("{}", entries...))} {
		for _, apart := range []bool{false, true} {
			req := httptest.NewRequest("POST", "/", nil)
			req.Header.Set("Content-Type", kind)
			b := new(normalize.Batch)
			if _, err := decodetest.Decode(Protocol, normalize.New(normalize.Limits{Text: normalize.Text{Apart: apart}}), b, req, []byte(body), nil); err != nil {
				t.Fatal(err)
			}
			var got []string
			for line := range strings.Lines(string(b.Lines)) {
				_, rest, _ := strings.Cut(strings.TrimSpace(line), `Z",`)
				got = append(got, rest)
			}
			if apart && b.Records != len(entries) || !apart && strings.Join(got, "|") != want {
				t.Errorf("%s, apart: %v:\n got %s\nwant %s", kind, apart, strings.Join(got, "|"), want)
			}
		}
	}
}
