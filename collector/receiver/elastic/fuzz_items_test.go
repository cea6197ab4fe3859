package elastic

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"testing"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver/decodetest"
)

// FuzzItems sends any body and counts with encoding/json what is in it: as many
// items are stored or rejected, and deletions and updates are not among those
// stored.
func FuzzItems(f *testing.F) {
	f.Add([]byte(everyCase))
	f.Add([]byte("{\"delete\":{}}\n\n{\"index\":{\"_id\":-1}}"))
	f.Add([]byte("{\"update\":{\"_id\":\"1\"}}\n{\"doc\":{}}\n \r\n{\"create\":{}}\r\n{\"a\":1}\r\n{\"index\":{}}\n\n"))
	f.Add([]byte("\xef\xbb\xbf{\"index\":{},\"delete\":{}}\n{}"))
	decodetest.AddRecorded(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		batch := new(normalize.Batch)
		_, err := decodetest.Decode(Bulk, normalize.New(normalize.Limits{MaxEvents: 1 << 20}), batch, httptest.NewRequest("POST", "/_bulk", nil), bytes.Clone(body), nil)
		if err != nil {
			return
		}
		decodetest.CheckLines(t, batch)
		items, documents := 0, 0
		for rest := bytes.TrimPrefix(body, normalize.ByteOrderMark); len(rest) > 0; {
			var line []byte
			if line, rest, _ = bytes.Cut(rest, newline); len(bytes.TrimSpace(line)) == 0 {
				continue
			}
			var action map[string]json.RawMessage
			if json.Unmarshal(line, &action) != nil || len(action) == 0 {
				t.Fatalf("%q is taken for an action", line)
			}
			items++
			tokens := json.NewDecoder(bytes.NewReader(line))
			tokens.Token()          // the brace
			op, _ := tokens.Token() // what is beside the first name is ignored
			if op != "delete" {
				_, rest, _ = bytes.Cut(rest, newline)
			}
			if op != "delete" && op != "update" {
				documents++
			}
		}
		if batch.Records+batch.RejectedTotal != items || batch.Records > documents {
			t.Fatalf("%q: %d stored, %d rejected of %d items with %d documents", body, batch.Records, batch.RejectedTotal, items, documents)
		}
	})
}
