//go:build !race

package syslog

import (
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/pool"
	"github.com/rollway/rollway/internal/testkit"
)

// Under the race detector pools forget what they hold.
func TestNoAllocationPerEvent(t *testing.T) {
	for name, message := range map[string]string{
		"RFC 5424": `<165>1 2003-10-11T22:14:15.003Z m evntslog - ID47 [x@1 a="\"3\"" b="c"] text` + "\n",
		"RFC 3164": "<34>Oct 11 22:14:15 mymachine su[5]: failed\n",
		"no host":  "<14>hello\x00",
		"JSON":     `<14>Oct 11 22:14:15 h t: {"level":"info","msg":"hi","a":[1,2]}` + "\n",
	} {
		session, chunk := Protocol{}.Open(), newChunk("")
		stream := []byte(strings.Repeat(message, 1000))
		data := make([]byte, len(stream))
		got := testkit.Mallocs(func() {
			chunk.Batch.Reset()
			chunk.Data = data[:copy(data, stream)] // values are unescaped in place
			if n, err := session.Decode(chunk); n != len(data) || err != nil || chunk.Batch.Records != 1000 {
				t.Fatal(name, n, err, chunk.Batch.Records)
			}
		})
		if got != 0 && !pool.Poisons { // such a pool allocates
			t.Errorf("%s: %d allocations for 1000 events", name, got)
		}
	}
}
