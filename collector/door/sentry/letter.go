package sentry

import (
	"fmt"

	"github.com/rollway/rollway/collector/receive"
)

// The context of an event that is rejected is of which kind it is. The project is
// in the name of the door.
const (
	kindEvent = "event"
	kindLog   = "log"
)

func (d *decoder) keepKind(kind string) {
	d.b.Context(len(kind), func(dst []byte) []byte { return append(dst, kind...) })
}

// Reread implements receive.Rereader.
func (envelope) Reread(q *receive.Request, context []byte) error { return reread(q, context) }

// Reread implements receive.Rereader.
func (store) Reread(q *receive.Request, context []byte) error { return reread(q, context) }

func reread(q *receive.Request, context []byte) error {
	if string(context) != kindLog {
		return decode(q, (*decoder).single)
	}
	return decode(q, func(d *decoder, body []byte) error {
		value, err := d.object(body)
		if err != nil {
			return fmt.Errorf("invalid log: %w", err)
		}
		if d.begin(value) {
			d.log(value)
		}
		return nil
	})
}
