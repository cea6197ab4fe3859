package forward

import (
	"fmt"

	"github.com/rollway/rollway/collector/receiver"
)

// Reread puts the event of c.Data, a time and a record as they are kept of one
// that was rejected, into c.Batch; context is its tag.
func Reread(c *receiver.Chunk, context []byte) error {
	var w walker
	rest := c.Data
	for range 2 {
		w.reset()
		n, err := w.value(rest)
		if err != nil {
			return fmt.Errorf("not a time and a record: %w", err)
		}
		rest = rest[n:]
	}
	if len(rest) > 0 {
		return fmt.Errorf("not a time and a record: %d bytes follow", len(rest))
	}
	b := c.Norm.Build(c.Batch, c.Received)
	defer b.Done()
	event(b, context, &reader{b: c.Data})
	return nil
}
