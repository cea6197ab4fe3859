package otlp

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/wire"
)

// The context of a LogRecord that is rejected is the ResourceLogs that it came
// in, with one ScopeLogs and without records. One that was made from JSON has
// this field besides.
const fieldJSON = 1003

// end ends the event of a record; one that is rejected is kept with its resource
// and its scope.
func (r *reader) end(res *resource, sc *scope) {
	if r.b.End() {
		return
	}
	const heads = 64 // of all fields
	r.b.Context(heads+len(res.msg)+len(res.schemaURL)+len(sc.msg)+len(sc.schemaURL), func(dst []byte) []byte {
		dst = appendField(dst, 1, res.msg)
		dst = appendField(dst, 2, appendField(appendField(nil, 1, sc.msg), 3, sc.schemaURL))
		dst = appendField(dst, 3, res.schemaURL)
		if r.json {
			dst = appendField(dst, fieldJSON, []byte{1})
		}
		return dst
	})
}

// appendField appends a field that has a length, unless it is empty.
func appendField(dst []byte, num protowire.Number, b []byte) []byte {
	if len(b) == 0 {
		return dst
	}
	return protowire.AppendBytes(protowire.AppendTag(dst, num, protowire.BytesType), b)
}

// Reread implements receiver.Rereader.
func (overHTTP) Reread(q *receiver.Request, context []byte) error { return reread(q, context) }

// Reread implements receiver.Rereader.
func (overGRPC) Reread(q *receiver.Request, context []byte) error { return reread(q, context) }

func reread(q *receiver.Request, context []byte) error {
	var logs, scopeLogs []byte
	json := false
	f := wire.Over(context)
	for f.Next() {
		switch f.Num {
		case 2:
			scopeLogs = append(scopeLogs, f.Bytes...)
		case fieldJSON:
			json = true
		default:
			logs = appendField(logs, f.Num, f.Bytes)
		}
	}
	if err := broken("ResourceLogs", f.Err()); err != nil {
		return err
	}
	// An empty record is a record too.
	record := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), q.Body)
	logs = appendField(logs, 2, append(scopeLogs, record...))
	r := readers.Get()
	defer r.release()
	return r.read(q, appendField(nil, 1, logs), json)
}
