// Package elastic takes the bulk requests of Elasticsearch and OpenSearch and
// answers what their clients ask before they send any.
//
// A body is lines: an action and, except for delete, the document after it. Documents
// become lines by the keys of package normalize and these of the Elastic Common Schema,
// written with dots or nested:
//
//	log.level    level         service.name  service    error.*  error
//	log.logger   logger        trace.id      trace_id
//	@timestamp   time          span.id       span_id
//
// What else an action says, above all _index and _id, is in attrs; _index may come from
// the path. A "time" that says the same as @timestamp is left out.
//
// Every item is answered, in order; _seq_no is the offset in the journal. A broken action
// rejects the request, because what follows it cannot be told apart. As in Elasticsearch 8,
// what else is in the line of an action, beside it, is ignored.
//
// A single document may come to /INDEX/_doc or /INDEX/_create, with or without an id.
package elastic

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/http"
	"unicode/utf8"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/pool"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/wire"
	"github.com/rollway/rollway/internal/jsonline"
	"github.com/rollway/rollway/internal/jsonwalk"
)

// Bulk is the protocol of _bulk requests.
var Bulk receiver.Protocol = bulk{}

type bulk struct{}

// op is what an action does.
type op byte

const (
	opIndex op = iota
	opCreate
	opUpdate
	opDelete
)

var opNames = [...]string{"index", "create", "update", "delete"}

// decoder is the memory of one Decode.
type decoder struct {
	wire.Event
	note  []byte
	index []byte // of the path, as JSON; or empty
	line  int    // from 1
	act   action
}

// action is what an action line says; its slices are parts of the line.
type action struct {
	op    op
	meta  []byte // the object
	index []byte // a JSON string, or nil
	id    []byte // a JSON string or number, or nil
}

var decoders = pool.Pool[*decoder]{New: func() *decoder { return new(decoder) }}

// Memory is for the pool.
func (d *decoder) Memory() pool.Memory { return pool.Memory{d.index, d.Scratch()} }

// maxIndexName is Elasticsearch's, in bytes.
const maxIndexName = 255

// itemBytes is about what an answer says of an item, without its names.
const itemBytes = 200

var newline = []byte("\n")

var errNoBody = &receiver.Refusal{Code: http.StatusBadRequest, Text: "request body is required", Empty: true}

// Decode reads a bulk request.
func (bulk) Decode(q *receiver.Request) error {
	return decode(q, func(d *decoder) error { return d.items(bytes.TrimPrefix(q.Body, normalize.ByteOrderMark)) })
}

// decode has read give the documents of a request to the Builder.
func decode(q *receiver.Request, read func(d *decoder) error) error {
	index := q.HTTP.PathValue("index")
	if len(index) > maxIndexName {
		return fmt.Errorf("the index name of %d bytes is longer than %d", len(index), maxIndexName)
	}
	// The index is in every item of the answer, which grows.
	items := bytes.Count(q.Body, newline)/2 + 1
	if err := q.Reserve(2 * int64(items) * int64(len(index)+itemBytes)); err != nil {
		return err
	}
	d := decoders.Get()
	defer decoders.Put(d)
	d.index = d.index[:0]
	if index != "" {
		d.index = jsonline.AppendString(d.index, index)
	}
	d.note = appendNoteHead(q.Note[:0], q, d.index)
	d.Builder = q.Norm.Build(q.Batch, q.Received)
	err := read(d)
	d.Done()
	q.Note = d.note
	d.note, d.act = nil, action{}
	if err != nil {
		q.Note = q.Note[:0]
	}
	return err
}

// items reads the lines of a body. The error is that of the request.
func (d *decoder) items(rest []byte) error {
	d.line = 0
	taken, over := 0, 0
	for {
		var line []byte
		line, rest = d.cut(rest)
		if line == nil {
			break
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if err := d.action(line); err != nil {
			return fmt.Errorf("malformed action/metadata line [%d]: %w", d.line, err)
		}
		var doc []byte
		if d.act.op != opDelete {
			doc, rest = d.cut(rest)
		}
		d.Begin()
		if d.Raw(doc); doc == nil {
			d.Raw(line)
		}
		if d.Failed() { // too many
			d.End()
			d.keepAction()
			d.noteItem(why429)
			// Each item is answered, which must not cost without end.
			if over++; over > taken {
				return &receiver.Refusal{Code: http.StatusRequestEntityTooLarge, Text: "too many items for one request; nothing of it was stored, send smaller ones"}
			}
			continue
		}
		taken++
		d.item(doc)
	}
	if taken+over == 0 {
		return errNoBody
	}
	return nil
}

// cut returns the next line without its end, or nil.
func (d *decoder) cut(b []byte) (line, rest []byte) {
	if len(b) == 0 {
		return nil, nil
	}
	d.line++
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		return b[:i], b[i+1:]
	}
	return b, nil
}

// action reads an action line into d.act.
func (d *decoder) action(line []byte) error {
	value, reason, err := wire.Object(line, "it")
	if reason == normalize.ReasonNotObject {
		return fmt.Errorf("expected an object such as {\"create\":{}}")
	}
	if err == nil && !utf8.Valid(line) { // the answer has its id
		err = fmt.Errorf("it is not valid UTF-8")
	}
	if err != nil {
		return err
	}
	d.act = action{}
	w := wire.Members(value)
	if !w.Next() {
		return fmt.Errorf("expected one of create and index")
	}
	known := false
	for o, name := range opNames {
		if w.Is(name) {
			d.act.op, known = op(o), true
		}
	}
	if !known {
		return fmt.Errorf("expected create or index, found %.50s", w.RawName())
	}
	if !wire.IsObject(w.RawValue()) {
		return fmt.Errorf("expected an object after %s", w.RawName())
	}
	d.act.meta = w.RawValue()
	for m := wire.Members(d.act.meta); m.Next(); {
		switch {
		case m.Is("_index") && wire.IsNull(m.RawValue()):
		case m.Is("_index"):
			if !wire.IsString(m.RawValue()) || len(m.RawValue()) > maxIndexName+2 {
				return fmt.Errorf("_index is not a string of at most %d bytes", maxIndexName)
			}
			d.act.index = m.RawValue()
		case m.Is("_id"):
			if wire.IsString(m.RawValue()) || '0' <= m.RawValue()[0] && m.RawValue()[0] <= '9' || m.RawValue()[0] == '-' {
				d.act.id = m.RawValue()
			} else if !wire.IsNull(m.RawValue()) {
				return fmt.Errorf("_id is neither a string nor a number")
			}
		case isOpType(&m):
			d.act.op = opCreate
		}
	}
	return nil
}

// item makes a line of the document after d.act. The event has begun.
func (d *decoder) item(doc []byte) {
	reject := func(reason, detail string) {
		d.Reject(reason, detail)
		d.keepAction()
		d.noteItem(why400)
	}
	switch {
	case d.act.op == opDelete:
		reject(normalize.ReasonUnsupported, "lines are only added: a deletion is not possible")
		return
	case d.act.op == opUpdate:
		reject(normalize.ReasonUnsupported, "lines are only added: an update is not possible")
		return
	case doc == nil:
		reject(normalize.ReasonSyntax, "the request ends before the document")
		return
	}
	value, reason, err := wire.Object(doc, "the document")
	if err != nil {
		detail := ""
		if d.Describes() {
			detail = fmt.Sprintf("failed to parse line %d: %v", d.line, err)
		}
		reject(reason, detail)
		return
	}
	d.document(value)
	d.meta()
	switch {
	case !d.End():
		d.keepAction()
		d.noteItem(why400)
	case d.Dropped():
		d.noteItem(dropped)
	default:
		d.noteItem(stored)
	}
}

// meta adds what the action says to attrs.
func (d *decoder) meta() {
	if d.act.index == nil && len(d.index) > 0 {
		d.Attr(nameIndex)
		d.JSON(d.index)
	}
	for m := wire.Members(d.act.meta); m.Next() && !d.Failed(); {
		if wire.IsNull(m.RawValue()) && (m.Is("_id") || m.Is("_index")) || isOpType(&m) {
			continue
		}
		d.PutAttr(m.RawName(), m.RawValue())
	}
}

// isOpType tells the older way of writing create: as a member of index.
func isOpType(m *jsonwalk.Walk) bool {
	return m.Is("op_type") && jsonwalk.Equal(m.RawValue(), "create")
}

var nameIndex = []byte("_index")

// A note tells Answer of each item. It begins with a head:
//
//	1 byte   the version of the vendor type that the client wants, 0 for none
//	8 bytes  nanoseconds since 1970 when the request had arrived
//	         the index of the path: its length, itself
//
// and goes on for each item with
//
//	1 byte   op
//	1 byte   what became of it: one of the constants below
//	         the index: its length, itself; a length of 0 is the path's
//	         the id: its length, itself; a length of 0 says that it has none
//
// where a length is a uvarint and names are JSON.
const (
	stored = iota
	why400
	why429
	dropped // by a rule
)

func appendNoteHead(note []byte, q *receiver.Request, index []byte) []byte {
	note = append(note, byte(vendorVersion(q.HTTP.Header)))
	note = binary.LittleEndian.AppendUint64(note, uint64(q.Received.UnixNano()))
	return appendNoted(note, index)
}

func (d *decoder) noteItem(outcome byte) {
	d.note = append(d.note, byte(d.act.op), outcome)
	d.note = appendNoted(d.note, d.act.index)
	d.note = appendNoted(d.note, d.act.id)
}

func appendNoted(note, text []byte) []byte {
	note = binary.AppendUvarint(note, uint64(len(text)))
	return append(note, text...)
}

func cutNoted(note []byte) (text, rest []byte) {
	n, size := binary.Uvarint(note)
	note = note[size:]
	return note[:n], note[n:]
}

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
