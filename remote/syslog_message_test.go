package remote

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func encoderFor(t testing.TB, o Syslog, localSocket bool) *syslogEncoder {
	t.Helper()
	a := address{scheme: scheme{network: "tcp", dialect: syslogMessages}}
	if localSocket {
		a.network = "unix"
	}
	err := o.setDefaults(&a)
	if err != nil {
		t.Fatal(err)
	}
	return newSyslogEncoder(o)
}

func TestSyslogMessage(t *testing.T) {
	const line = `{"time":"2026-05-28T12:40:00.123456789Z","level":"ERROR","msg":"disk \"a\"\nfull","service":"pay","attrs":{"n":2,"path":"C:\\x]","a b":"c\nd","o":{"x":1}}}`
	id := Syslog{Hostname: "host.example", AppName: "my app"[:2], ProcID: "77"}
	with := func(change func(*Syslog)) Syslog {
		o := id
		change(&o)
		return o
	}
	stamp := time.Date(2026, 5, 28, 12, 40, 0, 0, time.UTC).Local().Format(time.Stamp)
	for _, c := range []struct {
		name string
		o    Syslog
		line string
		want string
	}{
		{"5424", id, line, `<11>1 2026-05-28T12:40:00.123456Z host.example my 77 - - ` + line},
		{"facility and MSGID", with(func(o *Syslog) { o.Facility, o.MsgID = "local7", "ID47" }), line,
			`<187>1 2026-05-28T12:40:00.123456Z host.example my 77 ID47 - ` + line},
		{"text", with(func(o *Syslog) { o.Text = true }), line,
			`<11>1 2026-05-28T12:40:00.123456Z host.example my 77 - - disk "a"\nfull`},
		{"structured data", with(func(o *Syslog) { o.Text, o.StructuredData = true, "rollway@32473" }), line,
			`<11>1 2026-05-28T12:40:00.123456Z host.example my 77 - [rollway@32473 service="pay" n="2" path="C:\\x\]" a_b="c\\nd" o="{\"x\":1}"] disk "a"\nfull`},
		{"structured data of a line without fields", with(func(o *Syslog) { o.StructuredData = "rollway@32473" }), `{"msg":"m"}`,
			`<14>1 - host.example my 77 - - {"msg":"m"}`},
		{"not JSON", id, "panic: runtime error\x1b[0m", "<14>1 - host.example my 77 - - panic: runtime error\x1b[0m"},
		{"not JSON, other severity", with(func(o *Syslog) { o.Severity, o.Text = "crit", true }), `{"level":"DEBUG"`, `<10>1 - host.example my 77 - - {"level":"DEBUG"`},
		{"level without msg", with(func(o *Syslog) { o.Text = true }), `{"level":"DEBUG"}`, `<15>1 - host.example my 77 - - {"level":"DEBUG"}`},
		{"empty", id, "", "<14>1 - host.example my 77 - - "},
		{"3164", with(func(o *Syslog) { o.Format = "rfc3164" }), line, `<11>` + stamp + ` host my[77]: ` + line},
		{"local", with(func(o *Syslog) { o.Format = "local"; o.ProcID = "-"; o.AppName = "a:b[c]" }), line, `<11>` + stamp + ` a_b_c_: ` + line},
	} {
		if got := string(encoderFor(t, c.o, false).appendMessage(nil, []byte(c.line))); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestSyslogDefaults(t *testing.T) {
	for _, c := range []struct {
		o     Syslog
		local bool
		want  Syslog // some of it
	}{
		{Syslog{}, false, Syslog{Format: "rfc5424", Framing: "octets"}},
		{Syslog{}, true, Syslog{Format: "local", Framing: "newline"}},
		{Syslog{Format: "rfc3164"}, false, Syslog{Format: "rfc3164", Framing: "newline", MaxMessage: 1024}},
		{Syslog{Format: "rfc3164", MaxMessage: 8192}, false, Syslog{Format: "rfc3164", Framing: "newline", MaxMessage: 8192}},
	} {
		o := encoderFor(t, c.o, c.local).opt
		if o.Format != c.want.Format || o.Framing != c.want.Framing || o.MaxMessage != c.want.MaxMessage {
			t.Errorf("%+v, local %v: %+v", c.o, c.local, o)
		}
		for _, s := range []string{o.Hostname, o.AppName, o.ProcID, o.MsgID} {
			if s == "" || strings.ContainsAny(s, " \n") {
				t.Errorf("default %q of %+v", s, o)
			}
		}
	}
	if got := printable("a\nb c\x00é", 20); got != "a_b_c___" {
		t.Errorf("printable = %q", got)
	}
	if got := printable(strings.Repeat("x", 99), 48); len(got) != 48 {
		t.Errorf("printable = %q", got)
	}
}

// A message5424 is what parse5424 reads.
type message5424 struct {
	pri                         int
	time, host, app, proc, msID string
	id                          string
	params                      [][2]string
	msg                         string
}

// parse5424 is a strict reader of RFC 5424, section 6, written from its
// grammar and for these tests.
func parse5424(p string) (m message5424, err error) {
	rest, ok := strings.CutPrefix(p, "<")
	pri, rest, found := strings.Cut(rest, ">1 ")
	if m.pri, err = strconv.Atoi(pri); !ok || !found || err != nil || m.pri > 191 || len(pri) > 3 {
		return m, fmt.Errorf("bad PRI or VERSION")
	}
	for _, f := range []struct {
		to  *string
		max int
	}{{&m.time, 32}, {&m.host, 255}, {&m.app, 48}, {&m.proc, 128}, {&m.msID, 32}} {
		if *f.to, rest, ok = strings.Cut(rest, " "); !ok || *f.to == "" || len(*f.to) > f.max {
			return m, fmt.Errorf("bad header at %q", *f.to)
		}
		for _, c := range []byte(*f.to) {
			if c < 33 || c > 126 {
				return m, fmt.Errorf("byte %q in the header", c)
			}
		}
	}
	if m.time != "-" {
		if _, err := time.Parse("2006-01-02T15:04:05.000000Z", m.time); err != nil {
			return m, err
		}
	}
	if after, ok := strings.CutPrefix(rest, "- "); ok {
		m.msg = after
		return m, nil
	}
	if rest, ok = strings.CutPrefix(rest, "["); !ok {
		return m, fmt.Errorf("no structured data at %q", rest)
	}
	name := func() string {
		n := strings.IndexAny(rest, " =]\"")
		if n < 1 || n > 32 || strings.ContainsFunc(rest[:n], func(r rune) bool { return r < 33 || r > 126 }) {
			err = fmt.Errorf("bad name at %q", rest)
			return ""
		}
		s := rest[:n]
		rest = rest[n:]
		return s
	}
	m.id = name()
	for err == nil && strings.HasPrefix(rest, " ") {
		rest = rest[1:]
		param := [2]string{name()}
		if rest, ok = strings.CutPrefix(rest, `="`); !ok {
			return m, fmt.Errorf("no value at %q", rest)
		}
		var value strings.Builder
		for {
			if rest == "" || rest[0] == ']' {
				return m, fmt.Errorf("a value ends or has a bare bracket at %q", rest)
			}
			c := rest[0]
			rest = rest[1:]
			if c == '"' {
				break
			}
			if c == '\\' && rest != "" && strings.IndexByte(`"\]`, rest[0]) >= 0 {
				c, rest = rest[0], rest[1:]
			}
			value.WriteByte(c)
		}
		param[1] = value.String()
		m.params = append(m.params, param)
	}
	if rest, ok = strings.CutPrefix(rest, "] "); !ok && err == nil {
		err = fmt.Errorf("structured data does not end at %q", rest)
	}
	m.msg = rest
	return m, err
}

// FuzzSyslog: whatever a line holds, its message has the header that was
// configured, readable structured data, and the line or its text after it.
func FuzzSyslog(f *testing.F) {
	for _, s := range []string{
		"", "plain", `{"msg":"a\nb"}`, `{"time":"2026-05-28T12:40:00Z","level":"WARN","msg":"m","attrs":{"a]\"=\\":"]\"\\"}}`,
		`{"attrs":{"":1,"é":"é\u0000","k\n":["a", "b"]}}`, "{\"a\":\"\xff\"}", `{"a":"]","msg":"\ud800"}`, "<11>1 - evil",
		"{\"k\": {\t\"x\" :1}}",
	} {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	o := Syslog{Hostname: "h", AppName: "a", ProcID: "1", MsgID: "m", StructuredData: "rw@1"}
	f.Fuzz(func(t *testing.T, line []byte, text bool) {
		line = bytes.ReplaceAll(line, []byte("\n"), nil)
		o := o
		o.Text = text
		messageEncoder := encoderFor(t, o, false)
		got := string(messageEncoder.appendMessage([]byte("before"), line))
		got, _ = strings.CutPrefix(got, "before")
		m, err := parse5424(got)
		if err != nil {
			t.Fatalf("%q became %q: %v", line, got, err)
		}
		if m.pri/8 != 1 || m.host != "h" || m.app != "a" || m.proc != "1" || m.msID != "m" || m.id != "" && m.id != "rw@1" {
			t.Fatalf("%q became %q: header %+v", line, got, m)
		}
		r := messageEncoder.rec
		if len(m.params) != len(r.fields) {
			t.Fatalf("%q: %d parameters of %d fields", line, len(m.params), len(r.fields))
		}
		for i, p := range m.params {
			if want := string(appendPlain(nil, r.fields[i].value)); p[1] != want || !utf8.ValidString(p[1]) && utf8.Valid(line) {
				t.Fatalf("%q: parameter %q, want %q", line, p, want)
			}
		}
		if strings.Contains(got, "\n") {
			t.Fatalf("%q became two lines: %q", line, got)
		}
		if !text && m.msg != string(line) {
			t.Fatalf("%q: message %q", line, m.msg)
		}
	})
}
