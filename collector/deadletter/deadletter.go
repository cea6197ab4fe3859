// Package deadletter keeps events that the collector has rejected, to be looked at and
// sent again. They are lines of a file, bounded by dropping the oldest.
package deadletter

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/ulid"
	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/internal/jsonline"
)

// Name is the file that entries are written to. Older files are beside it, with the
// time in their names.
const Name = "rejected.ndjson"

// files is how many files the bytes of a Queue are spread over. One at a time is
// dropped.
const files = 8

// MaxBatch is how many bytes of the events of one batch a Queue should get.
const MaxBatch = 1 << 20

// Entry is one line of the file.
type Entry struct {
	ID       string    `json:"id,omitempty"`       // a ULID, the key under which it is sent again
	Time     time.Time `json:"time"`               // of the rejection
	Receiver string    `json:"receiver"`           // where the event came in: a path or a protocol
	Tenant   string    `json:"tenant,omitempty"`   // whose it was
	Reason   string    `json:"reason"`             // see package normalize
	Detail   string    `json:"detail,omitempty"`   // what was found and what was expected
	Cut      bool      `json:"cut,omitempty"`      // Event is the beginning only
	Event    string    `json:"event,omitempty"`    // as it was sent
	Base64   string    `json:"base64,omitempty"`   // the same if it is not UTF-8
	Withheld bool      `json:"withheld,omitempty"` // Event is not kept, as rules redact events
	Whole    bool      `json:"whole,omitempty"`    // Event is a request, in which no events could be found

	// What Event shared with others, or came in, as its receiver needs it to read it
	// again: labels, a tag. Nil: nothing.
	Context       *string `json:"context,omitempty"`
	ContextBase64 string  `json:"context_base64,omitempty"` // the same if it is not UTF-8
	ContextCut    bool    `json:"context_cut,omitempty"`    // there was some, too large to be kept
}

// Text returns the event.
func (l *Entry) Text() ([]byte, error) { return decode(l.Event, l.Base64) }

// ContextBytes returns the context; nil: there is none.
func (l *Entry) ContextBytes() ([]byte, error) {
	switch {
	case l.ContextBase64 != "":
		return decode("", l.ContextBase64)
	case l.Context != nil:
		return []byte(*l.Context), nil
	}
	return nil, nil
}

func decode(text, encoded string) ([]byte, error) {
	if encoded == "" {
		return []byte(text), nil
	}
	return base64.StdEncoding.DecodeString(encoded)
}

// A Queue is the file of dead letters. It is safe for concurrent use.
type Queue struct {
	file *file.File

	mu  sync.Mutex
	buf []byte      // guarded by mu
	ids ulid.Source // guarded by mu
	s   Stats       // guarded by mu
}

// Stats are counts since Open. Rejected events that are not Kept are Lost: the file
// could not be written, or a batch had too many bytes of them.
type Stats struct {
	Kept, Lost uint64
}

// Open opens the file in dir, and makes dir if it is missing. All files together have
// at most maxBytes, which are at least 1 MiB. onError, unless it is nil, gets the errors
// of later writes.
func Open(dir string, maxBytes int64, onError func(error)) (*Queue, error) {
	if maxBytes < 1<<20 {
		return nil, fmt.Errorf("dead letters: %d bytes are too few, at least 1 MiB is needed", maxBytes)
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("dead letters: %w", err)
	}
	f, err := file.Open(filepath.Join(dir, Name), file.Options{MaxSize: maxBytes / files, KeepSize: maxBytes, OnError: onError})
	if err != nil {
		return nil, fmt.Errorf("dead letters: %w", err)
	}
	return &Queue{file: f}, nil
}

// Add adds the dead letters of a batch.
func (q *Queue) Add(receiver, tenant string, received time.Time, batch *normalize.Batch) {
	if batch.RejectedTotal == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.buf = q.buf[:0]
	list := batch.DeadLetters()
	for i := range list {
		l := &list[i]
		q.buf = q.ids.Append(append(q.buf, `{"id":"`...), received)
		q.buf = appendEntry(q.buf, receiver, tenant, received, l, batch.Text(l), batch.Context(l))
	}
	kept := uint64(len(list))
	if kept > 0 {
		if _, err := q.file.Write(q.buf); err != nil {
			kept = 0 // onError has got the error
		}
	}
	q.s.Kept += kept
	q.s.Lost += uint64(batch.RejectedTotal) - kept
	if cap(q.buf) > 4*MaxBatch {
		q.buf = nil
	}
}

// appendEntry appends a line, from the end of its id on.
func appendEntry(dst []byte, receiver, tenant string, received time.Time, l *normalize.DeadLetter, text, context []byte) []byte {
	dst = append(dst, `","time":"`...)
	dst = jsonline.AppendTime(dst, received)
	dst = append(dst, `","receiver":`...)
	dst = jsonline.AppendString(dst, receiver)
	if tenant != "" {
		dst = append(dst, `,"tenant":`...)
		dst = jsonline.AppendString(dst, tenant)
	}
	dst = append(dst, `,"reason":`...)
	dst = jsonline.AppendString(dst, l.Reason)
	if l.Detail != "" {
		dst = append(dst, `,"detail":`...)
		dst = jsonline.AppendString(dst, l.Detail)
	}
	if l.Cut {
		dst = append(dst, `,"cut":true`...)
	}
	if l.Withheld {
		return append(dst, ",\"withheld\":true}\n"...)
	}
	dst = appendText(dst, `,"event":`, `,"base64":"`, text)
	switch {
	case l.Whole:
		dst = append(dst, `,"whole":true`...)
	case l.HasContext:
		dst = appendText(dst, `,"context":`, `,"context_base64":"`, context)
	case l.ContextCut:
		dst = append(dst, `,"context_cut":true`...)
	}
	return append(dst, "}\n"...)
}

// appendText appends text under the first of two keys if it is UTF-8, and else
// encoded under the other.
func appendText(dst []byte, key, encoded string, text []byte) []byte {
	if utf8.Valid(text) {
		return jsonline.AppendStringBytes(append(dst, key...), text)
	}
	dst = base64.StdEncoding.AppendEncode(append(dst, encoded...), text)
	return append(dst, '"')
}

// Stats returns the counts.
func (q *Queue) Stats() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.s
}

// Close writes out what is left and closes the file.
func (q *Queue) Close() error { return q.file.Close() }
