package gelf

import (
	"bytes"
	"net/http"

	"github.com/rollway/rollway/collector/receiver"
)

// HTTP is the protocol of /gelf.
var HTTP receiver.Protocol = overHTTP{}

type overHTTP struct{}

// errEmpty is the answer to a body without a message.
var errEmpty = &receiver.Refusal{Code: http.StatusBadRequest, Text: `the body is empty; expected a GELF message, such as {"short_message":"hello"}`, Empty: true}

// Decode reads messages in a row, or in arrays.
func (overHTTP) Decode(q *receiver.Request) error {
	d := decoders.Get()
	defer decoders.Put(d)
	d.Builder = q.Norm.Build(q.Batch, q.Received)
	d.lines.Names, d.lines.Most = messageNames, q.Norm.MostJoined()
	defer d.Done()
	for value, err := range d.lines.Each(bytes.TrimRight(q.Body, "\x00")) {
		if d.Start(value) {
			d.value(value, err)
		}
	}
	if q.Batch.Events() == 0 {
		return errEmpty
	}
	return nil
}

// Answer is Graylog's, 202 without a body, if all is stored.
func (overHTTP) Answer(a *receiver.Answer) {
	stored := a.Code == http.StatusOK
	if stored {
		a.Code = http.StatusAccepted
	}
	if stored && a.Batch.RejectedTotal == 0 {
		a.Header.Del("Content-Type")
		return
	}
	a.Body = receiver.AppendAnswer(a.Body, a)
}
