package otlp

import (
	"bytes"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/wire"
)

// The context of a LogRecord that is rejected is the ResourceLogs that it came in,
// with one ScopeLogs and without records, in the form of the request. In JSON the
// empty array of records comes last.

// endOfContext is how a context in JSON ends: between its first and its second byte
// a record may be.
const endOfContext = "]}]}"

// end ends the event of a record; one that is rejected is kept with its resource
// and its scope.
func (r *reader) end(res *resource, sc *scope) {
	if r.b.End() {
		return
	}
	const heads = 128 // of all fields
	r.b.Context(heads+sharedSize(res, sc), func(dst []byte) []byte {
		if r.json {
			return appendJSONContext(dst, res, sc)
		}
		dst = appendField(dst, 1, res.msg.bytes)
		dst = appendField(dst, 2, appendField(appendField(nil, 1, sc.msg.bytes), 3, sc.schemaURL))
		return appendField(dst, 3, res.schemaURL)
	})
}

// appendField appends a field that has a length, unless it is empty.
func appendField(dst []byte, num protowire.Number, b []byte) []byte {
	if len(b) == 0 {
		return dst
	}
	return protowire.AppendBytes(protowire.AppendTag(dst, num, protowire.BytesType), b)
}

func appendJSONContext(dst []byte, res *resource, sc *scope) []byte {
	dst = append(dst, '{')
	dst = appendMember(dst, `"resource":`, res.msg.bytes)
	dst = appendMember(dst, `"schemaUrl":`, res.schemaURL)
	dst = append(dst, `"scopeLogs":[{`...)
	dst = appendMember(dst, `"scope":`, sc.msg.bytes)
	dst = appendMember(dst, `"schemaUrl":`, sc.schemaURL)
	return append(dst, `"logRecords":[`+endOfContext...)
}

// appendMember appends a member and a comma, unless there is no value.
func appendMember(dst []byte, name string, value []byte) []byte {
	if len(value) == 0 {
		return dst
	}
	dst = append(append(dst, name...), value...)
	return append(dst, ',')
}

// Reread implements receiver.Rereader.
func (overHTTP) Reread(q *receiver.Request, context []byte) error { return reread(q, context) }

// Reread implements receiver.Rereader.
func (overGRPC) Reread(q *receiver.Request, context []byte) error { return reread(q, context) }

// reread takes no context as that of a record without resource and scope.
func reread(q *receiver.Request, context []byte) error {
	r := readers.Get()
	defer r.release()
	if len(context) == 0 && bytes.HasPrefix(q.Body, []byte{'{'}) {
		context = appendJSONContext(nil, new(resource), new(scope))
	}
	if before, is := bytes.CutSuffix(context, []byte(endOfContext)); is && bytes.HasPrefix(before, []byte{'{'}) {
		q.Body = slices.Concat([]byte(`{"resourceLogs":[`), before, q.Body, []byte(endOfContext+"]}"))
		return r.read(q, true)
	}
	var logs, scopeLogs []byte
	f := wire.Over(context)
	for f.Next() {
		if f.Num == 2 {
			scopeLogs = append(scopeLogs, f.Bytes...)
		} else {
			logs = appendField(logs, f.Num, f.Bytes)
		}
	}
	if err := broken(&resourceLogsMsg, f.Err()); err != nil {
		return err
	}
	// An empty record is a record too.
	record := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), q.Body)
	q.Body = appendField(nil, 1, appendField(logs, 2, append(scopeLogs, record...)))
	return r.read(q, false)
}
