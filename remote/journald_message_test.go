package remote

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

var journalField = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,63}$`)

// parseEntry reads an entry of the native protocol, strictly.
func parseEntry(p []byte) (fields [][2]string, err error) {
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			return nil, fmt.Errorf("no line end in %q", p)
		}
		line, rest := p[:i], p[i+1:]
		name, value, ok := bytes.Cut(line, []byte("="))
		if !ok {
			if len(rest) < 8 {
				return nil, fmt.Errorf("no length in %q", rest)
			}
			n := binary.LittleEndian.Uint64(rest)
			if rest = rest[8:]; n >= uint64(len(rest)) || rest[n] != '\n' {
				return nil, fmt.Errorf("length %d in %q", n, rest)
			}
			value, rest = rest[:n], rest[n+1:]
		}
		if !journalField.Match(name) {
			return nil, fmt.Errorf("name %q", name)
		}
		fields = append(fields, [2]string{string(name), string(value)})
		p = rest
	}
	return fields, nil
}

func TestJournalEntry(t *testing.T) {
	for _, c := range []struct {
		o    Journald
		line string
		want string // fields joined by |
	}{
		{Journald{}, `{"time":"2026-05-28T12:40:00.123456789Z","level":"ERROR","msg":"disk full","service":"pay","source":"db.go:12","trace_id":"ab","error":{"k":[1]},"attrs":{"customer.id":"c_1","n":2}}`,
			`PRIORITY=3|SYSLOG_IDENTIFIER=shop|MESSAGE=disk full|TIME=2026-05-28T12:40:00.123456789Z|SERVICE=pay|CODE_FILE=db.go|CODE_LINE=12|TRACE_ID=ab|ERROR={"k":[1]}|CUSTOMER_ID=c_1|N=2`},
		{Journald{}, `{"msg":"two\nlines","attrs":{"stack":"a\nb\n"}}`, "PRIORITY=6|SYSLOG_IDENTIFIER=shop|MESSAGE=two\nlines|STACK=a\nb\n"},
		{Journald{}, `{"msg":"m","attrs":{"message":"forged","MESSAGE":"again","priority":0,"_uid":"0","9x":1,"":2,"syslog_identifier":"root","source":"x:1","` + strings.Repeat("k", 70) + `":3}}`,
			`PRIORITY=6|SYSLOG_IDENTIFIER=shop|MESSAGE=m|ATTR_MESSAGE=forged|ATTR_MESSAGE=again|ATTR_PRIORITY=0|ATTR__UID=0|ATTR_9X=1|ATTR_=2|ATTR_SYSLOG_IDENTIFIER=root|SOURCE=x:1|` + strings.Repeat("K", 64) + `=3`},
		{Journald{}, `{"level":"WARN"}`, `PRIORITY=4|SYSLOG_IDENTIFIER=shop|MESSAGE={"level":"WARN"}`},
		{Journald{}, `panic: oh`, `PRIORITY=6|SYSLOG_IDENTIFIER=shop|MESSAGE=panic: oh`},
		{Journald{Line: true}, `{"level":"DEBUG","msg":"m","attrs":{"a":1}}`, `PRIORITY=7|SYSLOG_IDENTIFIER=shop|MESSAGE={"level":"DEBUG","msg":"m","attrs":{"a":1}}`},
		{Journald{}, `{"source":{"file":"a.go"},"msg":""}`, `PRIORITY=6|SYSLOG_IDENTIFIER=shop|MESSAGE=|SOURCE={"file":"a.go"}`},
	} {
		c.o.Identifier = "shop"
		f := &journalEncoder{opt: c.o}
		fields, err := parseEntry(f.appendMessage(nil, []byte(c.line)))
		var got []string
		for _, f := range fields {
			got = append(got, f[0]+"="+f[1])
		}
		if err != nil || strings.Join(got, "|") != c.want {
			t.Errorf("%s: %v\n got %s\nwant %s", c.line, err, strings.Join(got, "|"), c.want)
		}
	}
}

// FuzzJournal: whatever a line holds, its entry can be read, has one message,
// one priority and one identifier, and nothing that passes for more.
func FuzzJournal(f *testing.F) {
	for _, s := range []string{"", "plain", `{"msg":"a\nb"}`, `{"msg":"m","attrs":{"a\nMESSAGE=x":"b\nPRIORITY=0"}}`, `{"PRIORITY":1,"code_line":"x","é":"\ud800"}`, `{"source":"a\n:1"}`, "{\"a\":[1,\r2]}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		line = bytes.ReplaceAll(line, []byte("\n"), nil)
		j := &journalEncoder{opt: Journald{Identifier: "shop"}}
		entry := j.appendMessage(nil, line)
		fields, err := parseEntry(entry)
		if err != nil {
			t.Fatalf("%q became %q: %v", line, entry, err)
		}
		seen := map[string]int{}
		for _, f := range fields {
			seen[f[0]]++
		}
		if seen["MESSAGE"] != 1 || seen["PRIORITY"] != 1 || seen["SYSLOG_IDENTIFIER"] != 1 || seen["CODE_LINE"] != seen["CODE_FILE"] {
			t.Fatalf("%q became %q", line, entry)
		}
	})
}
