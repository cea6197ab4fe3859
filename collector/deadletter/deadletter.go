// Package deadletter keeps events that the collector has rejected, so that
// they can be looked at and sent again: a file of lines, one for each event,
// bounded by dropping the oldest.
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

// Name is the file that letters are written to. Older ones are in files beside
// it with the time in their names.
const Name = "rejected.ndjson"

// files is how many files the bytes of a Box are spread over: that many times
// the oldest go.
const files = 8

// MaxBatch is how much of the events of one batch a Box is meant to get, in bytes.
const MaxBatch = 1 << 20

// Letter is one line of the file.
type Letter struct {
	ID       string    `json:"id,omitempty"`       // a ULID, by which it is sent again once; letters of earlier releases have none
	Time     time.Time `json:"time"`               // of the rejection
	Receiver string    `json:"receiver"`           // where the event came: a path, or a protocol
	Tenant   string    `json:"tenant,omitempty"`   // whose it was
	Reason   string    `json:"reason"`             // see package normalize
	Detail   string    `json:"detail,omitempty"`   // what was found and what was expected
	Cut      bool      `json:"cut,omitempty"`      // Event is the beginning only
	Event    string    `json:"event,omitempty"`    // as it was sent
	Base64   string    `json:"base64,omitempty"`   // the same where it is not UTF-8
	Withheld bool      `json:"withheld,omitempty"` // Event is not kept, as rules redact events
	Whole    bool      `json:"whole,omitempty"`    // Event is a request, in which events could not be found

	// What Event shared with others, or came in, as its receiver needs it to read it
	// again: labels, a tag. Nil: nothing.
	Context       *string `json:"context,omitempty"`
	ContextBase64 string  `json:"context_base64,omitempty"` // the same where it is not UTF-8
	ContextCut    bool    `json:"context_cut,omitempty"`    // there was some, too large to be kept
}

// Text returns the event.
func (l *Letter) Text() ([]byte, error) { return decode(l.Event, l.Base64) }

// Surroundings returns the context; nil: there is none.
func (l *Letter) Surroundings() ([]byte, error) {
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

// Box keeps letters. It is safe for concurrent use.
type Box struct {
	file *file.File

	mu  sync.Mutex
	buf []byte     // guarded by mu
	ids ulid.Maker // guarded by mu
	s   Stats      // guarded by mu
}

// Stats are counts since Open. Rejected events that are not Kept are Lost: the
// file could not be written, or they were over MaxBatch together.
type Stats struct {
	Kept, Lost uint64
}

// Open opens the file in dir, which is made if it is missing. All files
// together take up maxBytes, at least 1 MiB. onError, or nil, is told what goes
// wrong later.
func Open(dir string, maxBytes int64, onError func(error)) (*Box, error) {
	if maxBytes < 1<<20 {
		return nil, fmt.Errorf("dead letters: %d bytes are too few, 1 MiB is wanted at least", maxBytes)
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("dead letters: %w", err)
	}
	f, err := file.Open(filepath.Join(dir, Name), file.Options{MaxSize: maxBytes / files, KeepSize: maxBytes, OnError: onError})
	if err != nil {
		return nil, fmt.Errorf("dead letters: %w", err)
	}
	return &Box{file: f, ids: ulid.NewSource().Maker()}, nil
}

// Keep keeps the letters of a batch.
func (b *Box) Keep(receiver, tenant string, received time.Time, batch *normalize.Batch) {
	if batch.RejectedTotal == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buf = b.buf[:0]
	letters := batch.Letters()
	for i := range letters {
		l := &letters[i]
		b.buf = b.ids.Append(append(b.buf, `{"id":"`...), received)
		b.buf = appendLetter(b.buf, receiver, tenant, received, l, batch.Text(l), batch.Context(l))
	}
	kept := uint64(len(letters))
	if kept > 0 {
		if _, err := b.file.Write(b.buf); err != nil {
			kept = 0 // the file has told OnError
		}
	}
	b.s.Kept += kept
	b.s.Lost += uint64(batch.RejectedTotal) - kept
	if cap(b.buf) > 4*MaxBatch {
		b.buf = nil
	}
}

// appendLetter appends the rest of a line behind the letter's id.
func appendLetter(dst []byte, receiver, tenant string, received time.Time, l *normalize.Letter, text, context []byte) []byte {
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
func (b *Box) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.s
}

// Close writes out what is left and closes the file.
func (b *Box) Close() error { return b.file.Close() }
