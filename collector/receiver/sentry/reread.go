package sentry

import (
	"fmt"

	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/wire"
)

// The context of an event that is rejected is its kind. The project is
// in the name of the receiver.
const (
	kindEvent = "event"
	kindLog   = "log"
)

func (d *decoder) keepKind(kind string) {
	d.Context(len(kind), func(dst []byte) []byte { return append(dst, kind...) })
}

// Reread implements receiver.Rereader.
func (answerer) Reread(q *receiver.Request, context []byte) error {
	if string(context) != kindLog {
		return decode(q, (*decoder).single)
	}
	return decode(q, func(d *decoder, body []byte) error {
		value, _, err := wire.Object(body, "it")
		if err != nil {
			return fmt.Errorf("invalid log: %w", err)
		}
		if d.Start(value) {
			d.log(value)
		}
		return nil
	})
}
