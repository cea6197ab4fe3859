package remote

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rollway/rollway/internal/levels"
)

// Journald says how lines become entries of systemd's journal. The zero value
// is the recommended setting.
//
// A line that is one JSON object gives an entry's PRIORITY, its MESSAGE (the text of
// msg) and TIME (RFC 3339). Its other fields, those of attrs among them, become fields
// with names of capitals, digits and _; a name that the journal gives a meaning to, or
// that does not begin with a letter, gets the prefix ATTR_. A source "file.go:12"
// becomes CODE_FILE and CODE_LINE. Of a line with more than 1,000 fields the MESSAGE is
// the line itself, and the first 1,000 become fields. Any other line is the MESSAGE as it
// is, with PRIORITY 6.
type Journald struct {
	// Identifier is SYSLOG_IDENTIFIER, by which journalctl -t selects. Default:
	// the program's file name.
	Identifier string

	// Line makes the whole line the MESSAGE and leaves out fields but PRIORITY
	// and SYSLOG_IDENTIFIER. Default false.
	Line bool
}

// maxJournalFields keeps an entry under the journal's limit of 1024 fields.
const maxJournalFields = 1000

func (o *Journald) setDefaults() error {
	if o.Identifier == "" {
		o.Identifier = printable(programName(), 255)
	}
	if strings.ContainsFunc(o.Identifier, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return fmt.Errorf("Options.Journald.Identifier is %q: it holds a control character", o.Identifier)
	}
	return nil
}

// A journalEncoder makes entries in the native protocol of systemd-journald,
// one datagram each:
//
//	KEY=value \n
//	KEY \n length of the value, 8 bytes little-endian, value \n
//
// The second form is for values with a line end.
type journalEncoder struct {
	opt   Journald
	rec   record
	value []byte
}

func (f *journalEncoder) appendMessage(dst, line []byte) []byte {
	r := &f.rec
	r.read(line, !f.opt.Line)
	severity := 6
	if r.hasLevel {
		severity = levels.Severity(r.level)
	}
	dst = append(dst, "PRIORITY="...)
	dst = append(dst, '0'+byte(severity), '\n')
	dst = append(dst, "SYSLOG_IDENTIFIER="...)
	dst = append(append(dst, f.opt.Identifier...), '\n')
	if f.opt.Line || r.msg == nil || len(r.fields) > maxJournalFields {
		f.value = append(f.value[:0], line...)
	} else {
		f.value = appendText(f.value[:0], r.msg, true)
	}
	dst = f.appendField(dst, "MESSAGE")
	if f.opt.Line {
		return dst
	}
	if !r.time.IsZero() {
		dst = append(dst, "TIME="...)
		dst = append(r.time.AppendFormat(dst, time.RFC3339Nano), '\n')
	}
	for _, fd := range r.fields[:min(len(r.fields), maxJournalFields)] {
		if !fd.attr && string(fd.key) == "source" && fd.value[0] == '"' {
			text := appendText(nil, fd.value[1:len(fd.value)-1], false)
			if i := bytes.LastIndexByte(text, ':'); i > 0 && isNumber(text[i+1:]) {
				dst = append(append(append(dst, "CODE_FILE="...), text[:i]...), '\n')
				dst = append(append(append(dst, "CODE_LINE="...), text[i+1:]...), '\n')
				continue
			}
		}
		if fd.value[0] == '"' {
			f.value = appendText(f.value[:0], fd.value[1:len(fd.value)-1], true)
		} else {
			f.value = append(f.value[:0], fd.value...)
		}
		dst = f.appendField(dst, journalName(appendText(nil, fd.key, true)))
	}
	return dst
}

// appendField appends f.value under name.
func (f *journalEncoder) appendField(dst []byte, name string) []byte {
	dst = append(dst, name...)
	if bytes.IndexByte(f.value, '\n') < 0 {
		dst = append(dst, '=')
	} else {
		dst = append(dst, '\n')
		dst = binary.LittleEndian.AppendUint64(dst, uint64(len(f.value)))
	}
	return append(append(dst, f.value...), '\n')
}

func isNumber(p []byte) bool {
	_, err := strconv.ParseUint(string(p), 10, 31)
	return err == nil
}

// journalMeanings are names that the journal and its readers understand, and
// beginnings of such names.
var (
	journalMeanings = []string{
		"DOCUMENTATION", "INVOCATION_ID", "MESSAGE", "MESSAGE_ID", "PRIORITY", "TID", "TIME", "UNIT", "USER_INVOCATION_ID", "USER_UNIT",
	}
	journalPrefixes = []string{"CODE_", "COREDUMP_", "OBJECT_", "SYSLOG_"}
)

// journalName returns key as the name of a field: at most 64 capitals, digits
// and _, the first a letter.
func journalName(key []byte) string {
	name := bytes.ToUpper(key)
	for i, c := range name {
		if (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			name[i] = '_'
		}
	}
	s := string(name[:min(len(name), 64)])
	if s == "" || s[0] < 'A' || s[0] > 'Z' || slices.Contains(journalMeanings, s) ||
		slices.ContainsFunc(journalPrefixes, func(p string) bool { return strings.HasPrefix(s, p) }) {
		s = "ATTR_" + s
	}
	return s[:min(len(s), 64)]
}
