package remote

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rollway/rollway/internal/levels"
)

// A syslogEncoder makes syslog messages.
type syslogEncoder struct {
	opt      Syslog
	facility int
	severity int    // of lines without a level
	fixed    string // the header after the time
	rec      record
	header   int // bytes of the latest message before its text
}

func newSyslogEncoder(o Syslog) *syslogEncoder {
	f := &syslogEncoder{opt: o, facility: slices.Index(facilities, o.Facility), severity: slices.Index(severities, o.Severity)}
	switch o.Format {
	case rfc5424:
		f.fixed = " " + o.Hostname + " " + o.AppName + " " + o.ProcID + " " + o.MsgID + " "
	case rfc3164:
		host, _, _ := strings.Cut(o.Hostname, ".") // by section 4.1.2 without the domain
		f.fixed = " " + host + " " + tag(o.AppName, o.ProcID)
	default:
		f.fixed = " " + tag(o.AppName, o.ProcID)
	}
	return f
}

// tag returns the prefix of a message in the older formats.
func tag(app, proc string) string {
	keep := func(s string, limit int) string {
		return strings.Map(func(r rune) rune {
			if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("._/-", r) {
				return r
			}
			return '_'
		}, s[:min(len(s), limit)])
	}
	t := keep(app, 32)
	if proc != "-" {
		t += "[" + keep(proc, 32) + "]"
	}
	return t + ": "
}

func (f *syslogEncoder) appendMessage(dst, line []byte) []byte {
	r, begin := &f.rec, len(dst)
	r.read(line, f.opt.StructuredData != "")
	severity := f.severity
	if r.hasLevel {
		severity = levels.Severity(r.level)
	}
	dst = append(dst, '<')
	dst = strconv.AppendInt(dst, int64(f.facility*8+severity), 10)
	dst = append(dst, '>')
	if f.opt.Format == rfc5424 {
		dst = append(dst, '1', ' ')
		if r.time.IsZero() {
			dst = append(dst, '-')
		} else {
			dst = r.time.UTC().AppendFormat(dst, "2006-01-02T15:04:05.000000Z") // at most six digits
		}
		dst = append(dst, f.fixed...)
		dst = append(f.appendData(dst), ' ')
	} else {
		t := r.time
		if t.IsZero() {
			t = time.Now()
		}
		dst = t.Local().AppendFormat(dst, time.Stamp)
		dst = append(dst, f.fixed...)
	}
	f.header = len(dst) - begin
	if f.opt.Text && r.msg != nil {
		return appendText(dst, r.msg, false)
	}
	return append(dst, line...)
}

// cut shortens msg, which appendMessage has just made, to limit bytes with a mark at its
// end. It reports false if header and mark do not fit, or if it must not.
func (f *syslogEncoder) cut(msg []byte, limit int) ([]byte, bool) {
	const mark = "[cut %d bytes]"
	if !f.opt.Truncate {
		return msg, false
	}
	room := limit - len(fmt.Sprintf(mark, len(msg))) // no less than the mark takes in the end
	if room < f.header {
		return msg, false
	}
	for range utf8.UTFMax - 1 { // of no use in what is not UTF-8
		if room > f.header && !utf8.RuneStart(msg[room]) {
			room--
		}
	}
	return fmt.Appendf(msg[:room], mark, len(msg)-room), true
}

// appendData appends the structured data (RFC 5424, section 6.3).
func (f *syslogEncoder) appendData(dst []byte) []byte {
	if f.opt.StructuredData == "" || len(f.rec.fields) == 0 {
		return append(dst, '-')
	}
	dst = append(dst, '[')
	dst = append(dst, f.opt.StructuredData...)
	for _, fd := range f.rec.fields {
		dst = append(dst, ' ')
		mark := len(dst)
		dst = appendText(dst, fd.key, true)
		dst = append(append(dst[:mark], cmp.Or(sdName(string(dst[mark:])), "_")...), '=', '"')
		mark = len(dst)
		dst = appendPlain(dst, fd.value)
		dst = append(escapeParam(dst, mark), '"')
	}
	return append(dst, ']')
}

// appendPlain appends a JSON value: a string as its text, on one line, and
// anything else as it is.
func appendPlain(dst, value []byte) []byte {
	if value[0] == '"' {
		return appendText(dst, value[1:len(value)-1], false)
	}
	for _, c := range value {
		if c < ' ' { // insignificant white space
			c = ' '
		}
		dst = append(dst, c)
	}
	return dst
}

// sdName returns s as an SD-NAME: at most 32 bytes.
func sdName(s string) string {
	return replaceBytes(s[:min(len(s), 32)], `=]"`)
}

// escapeParam escapes dst from mark on as a PARAM-VALUE.
func escapeParam(dst []byte, mark int) []byte {
	if !bytes.ContainsAny(dst[mark:], `"\]`) {
		return dst
	}
	for _, c := range bytes.Clone(dst[mark:]) {
		if c == '"' || c == '\\' || c == ']' {
			dst = append(dst[:mark], '\\')
			mark++
		}
		dst = append(dst[:mark], c)
		mark++
	}
	return dst
}
