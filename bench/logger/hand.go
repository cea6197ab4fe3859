package logger

import (
	"encoding/json"
	"io"
	"log/slog"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/rollway/rollway/bench/internal/rivals"
)

// handBuffer is what a call takes from the pool: an unfinished line, and the
// last second as text.
type handBuffer struct {
	line   []byte
	second int64
	text   [len("2006-01-02T15:04:05.")]byte
}

var handPool = sync.Pool{New: func() any { return &handBuffer{line: make([]byte, 0, 1024)} }}

// begin takes a buffer and writes time, level and message into it.
func begin() *handBuffer {
	h := handPool.Get().(*handBuffer)
	now := time.Now()
	if second := now.Unix(); second != h.second {
		h.second = second
		now.UTC().AppendFormat(h.text[:0], "2006-01-02T15:04:05.")
	}
	b := append(h.line[:0], `{"time":"`...)
	b = append(b, h.text[:]...)
	var digits [9]byte
	nanos := now.Nanosecond()
	for i := len(digits) - 1; i >= 0; i-- {
		digits[i] = byte('0' + nanos%10)
		nanos /= 10
	}
	b = append(b, digits[:]...)
	b = append(b, `Z","level":"INFO","msg":`...)
	h.line = appendQuoted(b, message)
	return h
}

func (h *handBuffer) end(w io.Writer) {
	h.line = append(h.line, "}\n"...)
	if _, err := w.Write(h.line); err != nil {
		panic(err) // the counter returns none
	}
	handPool.Put(h)
}

// appendQuoted looks at each byte, as valid JSON requires, and leaves the rare
// case to encoding/json.
func appendQuoted(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			quoted, _ := json.Marshal(s) // a string has no error
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// enabled is never true, which the compiler does not know.
var enabled bool

// build is a disabled call: its attributes are built, and nothing is done with
// them.
func build(attrs ...slog.Attr) {
	if enabled {
		use(attrs)
	}
}

//go:noinline
func use(attrs []slog.Attr) int { return len(attrs[0].Key) }

func appendSix(b []byte) []byte {
	b = append(b, `,"customer":`...)
	b = appendQuoted(b, customer)
	b = append(b, `,"retry":`...)
	b = strconv.AppendInt(b, int64(retry), 10)
	b = append(b, `,"size":`...)
	b = strconv.AppendInt(b, size, 10)
	b = append(b, `,"ratio":`...)
	b = strconv.AppendFloat(b, ratio, 'f', -1, 64)
	b = append(b, `,"cached":`...)
	b = strconv.AppendBool(b, cached)
	b = append(b, `,"took":`...)
	return strconv.AppendInt(b, int64(took), 10)
}

// handLoops makes the lines without a logger, in plain code with the standard
// library's functions. It is a reference, not a lower bound: tuned code such as
// package rollway's formats the time and copies strings faster.
func handLoops(w io.Writer) map[string]func(n int) {
	context := appendSix(nil)
	context = append(context, `,"route":`...)
	context = appendQuoted(context, route)
	context = append(context, `,"when":"`...)
	context = when.AppendFormat(context, rivals.TimeFormat)
	context = append(context, `","string":`...)
	context = appendQuoted(context, customer)
	context = append(context, `,"int":`...)
	context = strconv.AppendInt(context, int64(retry), 10)
	return map[string]func(n int){
		caseDisabled: func(n int) {
			for range n {
				build(slog.String("customer", customer), slog.Int("retry", retry), slog.Duration("took", took))
			}
		},
		caseMessage: func(n int) {
			for range n {
				begin().end(w)
			}
		},
		caseSix: func(n int) {
			for range n {
				h := begin()
				h.line = appendSix(h.line)
				h.end(w)
			}
		},
		caseContext: func(n int) {
			for range n {
				h := begin()
				h.line = append(h.line, context...)
				h.end(w)
			}
		},
	}
}
