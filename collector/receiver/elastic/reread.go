package elastic

import "github.com/rollway/rollway/collector/receiver"

// keepAction keeps what the action says with its document, which was rejected:
// the object after create or index. The index of the path is in the name of
// the receiver.
func (d *decoder) keepAction() {
	if d.act.op <= opCreate {
		d.Context(len(d.act.meta), func(dst []byte) []byte { return append(dst, d.act.meta...) })
	}
}

// Reread implements receiver.Rereader.
func (bulk) Reread(q *receiver.Request, context []byte) error {
	body := append([]byte(`{"index":`), context...)
	body = append(append(body, '}', '\n'), q.Body...)
	q.Body = append(body, '\n')
	return Bulk.Decode(q)
}
