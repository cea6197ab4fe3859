// Package deadletter keeps events that the collector has rejected, to be read and
// sent again. They are lines of a file, bounded by dropping the oldest.
package deadletter

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/ulid"
	"github.com/rollway/rollway/file"
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
	buf bytes.Buffer // guarded by mu
	ids ulid.Source
	s   Stats // guarded by mu
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
	kept := q.encodeLocked(receiver, tenant, received, batch)
	if kept > 0 {
		if _, err := q.file.Write(q.buf.Bytes()); err != nil {
			kept = 0 // onError has got the error
		}
	}
	q.s.Kept += kept
	q.s.Lost += uint64(batch.RejectedTotal) - kept
	if q.buf.Cap() > 4*MaxBatch {
		q.buf = bytes.Buffer{}
	}
}

// encodeLocked puts the lines of a batch into buf and returns how many there are.
func (q *Queue) encodeLocked(receiver, tenant string, received time.Time, batch *normalize.Batch) uint64 {
	q.buf.Reset()
	lines := json.NewEncoder(&q.buf)
	lines.SetEscapeHTML(false)
	list := batch.DeadLetters()
	for i := range list {
		l := &list[i]
		e := Entry{Time: received, Receiver: receiver, Tenant: tenant, Reason: l.Reason, Detail: l.Detail, Cut: l.Cut, Withheld: l.Withheld}
		e.ID = string(q.ids.Append(nil, received))
		if !l.Withheld {
			e.setTexts(l, batch)
		}
		lines.Encode(&e) // never fails: all of it is text
	}
	return uint64(len(list))
}

// setTexts sets the event and its context, in base64 if they are not UTF-8.
func (l *Entry) setTexts(of *normalize.DeadLetter, batch *normalize.Batch) {
	if text := batch.Text(of); utf8.Valid(text) {
		l.Event = string(text)
	} else {
		l.Base64 = base64.StdEncoding.EncodeToString(text)
	}
	switch l.Whole = of.Whole; {
	case of.Whole:
	case of.HasContext:
		context := string(batch.Context(of))
		if utf8.ValidString(context) {
			l.Context = &context
		} else {
			l.ContextBase64 = base64.StdEncoding.EncodeToString([]byte(context))
		}
	default:
		l.ContextCut = of.ContextCut
	}
}

// Stats returns the counts.
func (q *Queue) Stats() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.s
}

// Close writes out what is left and closes the file.
func (q *Queue) Close() error { return q.file.Close() }
