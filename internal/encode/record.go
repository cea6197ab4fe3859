package encode

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rollway/rollway/internal/jsonline"
)

// Record is one log call, without its attributes.
type Record struct {
	Sec     int64 // since 1970
	Nsec    int32 // 0 to 999,999,999
	HasTime bool  // false: a slog.Record without a time
	Level   slog.Level
	Message string
	Source  *Source // of the call, or nil

	Outer   []slog.Attr     // attributes outside of the Logger's groups
	Context context.Context // of the call, for Options.Custom

	HasTrace bool
	TraceID  [16]byte
	SpanID   [8]byte

	Replaced *Replaced // with Options.Replaces: other keys and values of fields

	unique bool // the attributes are complete, and each key is there once
}

// Source is where a call is.
type Source struct {
	slog.Source
	JSON [5]string // in the order of rollway.SourceFormat
}

// NewSource returns a Source in all its forms.
func NewSource(s slog.Source) *Source {
	file, function := string(jsonline.AppendEscaped(nil, s.File)), string(jsonline.AppendEscaped(nil, s.Function))
	line, short := strconv.Itoa(s.Line), file
	if i := strings.LastIndexByte(file, '/'); i >= 0 {
		short = file[strings.LastIndexByte(file[:i], '/')+1:]
	}
	return &Source{s, [...]string{
		`"` + short + ":" + line + `"`,
		`"` + file + ":" + line + `"`,
		`"` + function + `"`,
		`{"file":"` + file + `","line":` + line + `,"function":"` + function + `"}`,
		`{"file.name":"` + file + `","file.line":` + line + `,"function":"` + function + `"}`,
	}}
}

// Text returns s in one of its forms, as a text between quotes; an object as the path.
func (s *Source) Text(form uint8) string {
	if text := s.JSON[form]; text[0] == '"' {
		return text[1 : len(text)-1]
	}
	return s.Text(1)
}

// SetUnix sets the time from nanoseconds since 1970, which are not negative.
func (r *Record) SetUnix(ns int64) {
	r.Sec, r.Nsec, r.HasTime = ns/1e9, int32(ns%1e9), true
}

// SetTime sets the time.
func (r *Record) SetTime(t time.Time) {
	r.Sec, r.Nsec, r.HasTime = t.Unix(), int32(t.Nanosecond()), true
}

func (r *Record) time() time.Time { return time.Unix(r.Sec, int64(r.Nsec)) }

// Scratch is the memory for encoding one record. The call that took it owns it.
type Scratch struct {
	Buf    []byte
	list   []slog.Attr // all attributes of a line
	groups []slog.Attr // members of the groups in list
	bare   [2]Scope    // what remains of the Logger's and the context's Scope then
	second secondCache
	text   textLine
	custom Line
}

// MaxKept is the size in bytes up to which buffers are kept for reuse.
const MaxKept = 64 << 10

// Reset prepares s for the next record. It reports whether s is small enough to
// be kept.
func (s *Scratch) Reset() bool {
	if cap(s.Buf) > MaxKept || cap(s.list)+cap(s.groups) > MaxKept/64 {
		return false
	}
	if len(s.list) > 0 {
		s.clearLists()
	}
	return true
}

// clearLists keeps no value alive.
func (s *Scratch) clearLists() {
	clear(s.list)
	clear(s.groups)
	s.list = s.list[:0]
}

var scratchPool = sync.Pool{New: func() any { return new(Scratch) }}

func getScratch() *Scratch { return scratchPool.Get().(*Scratch) }

func (s *Scratch) free() {
	if s.Reset() {
		scratchPool.Put(s)
	}
}
