package sentry

import (
	"fmt"

	"github.com/rollway/rollway/collector/receiver"
)

// The context of an event that is rejected is its kind. The project is
// in the name of the receiver.
const (
	kindEvent = "event"
	kindLog   = "log"
)

func (d *decoder) keepKind(kind string) {
	d.b.Context(len(kind), func(dst []byte) []byte { return append(dst, kind...) })
}

// Reread implements receiver.Rereader.
func (envelope) Reread(q *receiver.Request, context []byte) error { return reread(q, context) }

// Reread implements receiver.Rereader.
func (store) Reread(q *receiver.Request, context []byte) error { return reread(q, context) }

func reread(q *receiver.Request, context []byte) error {
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
