package forward

import (
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/pool"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/internal/testkit"
)

func TestNoAllocationPerEvent(t *testing.T) {
	record := dict(str("log"), str("hello"), str("level"), str("warn"), "\x07", num(9), str("a"), arr("\x01", "\xc0"),
		str("raw"), "\xc4\x01\xff", str("then"), at(1, 2), str("m"), dict(str("x"), "\xca\x3f\xc0\x00\x00"))
	entry := arr(at(1749988800, 5), record)
	for name, message := range map[string]string{
		"JSON":          strings.Repeat(`["t",1749988800,{"log":"hello","level":"warn","a":[1,null]},{"chunk":"c1"}]`, 1000),
		"Message":       strings.Repeat(arr(str("t"), num(1749988800), record, chunk), 1000),
		"Forward":       "\x93" + str("t") + "\xdc\x03\xe8" + strings.Repeat(entry, 1000) + chunk,
		"PackedForward": arr(str("t"), bin(strings.Repeat(entry, 1000)), chunk),
		"compressed":    arr(str("t"), bin(packed(strings.Repeat(entry, 1000))), dict(str("compressed"), str("gzip"))),
	} {
		c := &receiver.Chunk{Received: received, Norm: normalize.New(normalize.Limits{}), Batch: new(normalize.Batch)}
		session := Protocol{}.Open()
		data := []byte(message)
		got := testkit.Mallocs(func() {
			c.Batch.Reset()
			c.Data, c.Reply = data, c.Reply[:0]
			if n, err := session.Decode(c); n != len(data) || err != nil || c.Batch.Records != 1000 {
				t.Fatal(name, n, err, c.Batch.Records)
			}
		})
		if got > 0 && !pool.Poisons { // such a pool allocates
			t.Errorf("%s: %d allocations for 1000 events", name, got)
		}
	}
}
