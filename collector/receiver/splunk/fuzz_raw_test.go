package splunk

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"net/url"
	"testing"
	"unicode/utf8"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver/decodetest"
)

// FuzzRaw sends any body as raw lines with any query: each line that is not blank
// is one event with its text and what the query says.
func FuzzRaw(f *testing.F) {
	f.Add([]byte("one\r\ntwo\n\n \nlast"), "h", "a&b=c")
	f.Add([]byte("\xff\n{\"msg\":1}\n\x00"), "", "\n")
	f.Fuzz(func(t *testing.T, body []byte, host, source string) {
		batch := new(normalize.Batch)
		query := url.Values{"host": {host}, "source": {source}}
		req := httptest.NewRequest("POST", "/?"+query.Encode(), nil)
		_, err := decodetest.Decode(Raw, normalize.New(normalize.Limits{MaxEvents: 1 << 20, Text: normalize.Text{Closed: true, Apart: true}}), batch, req, bytes.Clone(body), nil)
		decodetest.CheckLines(t, batch)
		var want [][]byte
		for line := range bytes.SplitSeq(body, []byte("\n")) {
			if len(bytes.TrimSpace(line)) > 0 {
				want = append(want, bytes.TrimSuffix(line, []byte("\r")))
			}
		}
		if batch.Records+batch.RejectedTotal != len(want) || (err == nil) != (len(want) > 0) {
			t.Fatalf("%d stored, %d rejected of %d: %v", batch.Records, batch.RejectedTotal, len(want), err)
		}
		if batch.RejectedTotal > 0 {
			return
		}
		i := 0
		for line := range bytes.Lines(batch.Lines) {
			var got struct {
				Msg   string
				Attrs struct{ Host, Source string }
			}
			if err := json.Unmarshal(line, &got); err != nil {
				t.Fatal(err)
			}
			if utf8.Valid(want[i]) && got.Msg != string(want[i]) || utf8.ValidString(host) && got.Attrs.Host != host || utf8.ValidString(source) && got.Attrs.Source != source {
				t.Fatalf("line %d, %q of host %q and source %q, became %s", i, want[i], host, source, line)
			}
			i++
		}
	})
}
