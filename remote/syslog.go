package remote

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Syslog says how lines become syslog messages. The zero value is the recommended
// setting. A line that is one JSON object gives a message its time and severity; any
// other line has no time, and Severity.
type Syslog struct {
	// Format is "rfc5424", "rfc3164", or "local", which is the latter without
	// the host's name, as daemons that listen at /dev/log expect. Default:
	// local for syslog+unix, otherwise rfc5424.
	Format string

	// Framing tells messages on a stream apart: "octets" writes the length before each
	// (RFC 6587, section 3.4.1), "newline" a line end after each. Default: octets for
	// rfc5424, otherwise newline. A datagram is one message.
	Framing string

	// Facility is kern, user, mail, daemon, auth, syslog, lpr, news, uucp,
	// cron, authpriv, ftp, ntp, audit, alert, clock or local0 to local7.
	// Default user.
	Facility string

	// Severity is that of lines without a level: debug, info, notice, warning,
	// err, crit, alert or emerg. Default info.
	Severity string

	// Hostname, AppName, ProcID and MsgID are printable ASCII without spaces of at most
	// 255, 48, 128 and 32 bytes. "-" means unknown. In the older formats AppName is
	// the tag, of at most 32 letters, digits and ._/-, and MsgID is not sent. Default:
	// the host's name, the program's file name, its process id, and "-".
	Hostname, AppName, ProcID, MsgID string

	// StructuredData is the SD-ID, such as "rollway@32473", of an element that
	// holds the line's other fields, those of attrs among them, as parameters.
	// rfc5424 only. Default "": none.
	StructuredData string

	// Text sends only the text of the line's msg. Control characters stay
	// escaped as in JSON. Default false: the message is the line itself.
	Text bool

	// MaxMessage is the longest message in bytes, without framing. A line that makes a
	// longer one is dropped and counted in Dropped.TooLarge. Many receivers take 8 KiB.
	// Default: 1024 for rfc3164, which allows no more; otherwise only MaxDatagram.
	MaxMessage int

	// Truncate cuts a message that is too long instead of dropping the line: at a
	// character boundary, followed by a mark that says how many bytes are missing:
	// [cut 512 bytes]. Such lines are counted in Stats.Truncated. A message whose
	// header alone is too long is still dropped. Default false.
	Truncate bool
}

const (
	rfc5424   = "rfc5424"
	rfc3164   = "rfc3164"
	local     = "local"
	byOctets  = "octets"
	byNewline = "newline"
)

var facilities = []string{
	"kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp",
	"ntp", "audit", "alert", "clock", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7",
}

var severities = []string{"emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"}

// setDefaults replaces every zero of o, or returns what is wrong with it.
func (o *Syslog) setDefaults(a *address) error {
	if o.Format == "" && a.local() {
		o.Format = local
	}
	o.Format = cmp.Or(o.Format, rfc5424)
	if o.Framing == "" && o.Format == rfc5424 {
		o.Framing = byOctets
	}
	o.Framing = cmp.Or(o.Framing, byNewline)
	o.Facility = cmp.Or(o.Facility, "user")
	o.Severity = cmp.Or(o.Severity, "info")
	if o.MaxMessage == 0 && o.Format == rfc3164 {
		o.MaxMessage = 1024
	}
	for _, c := range []struct {
		name, value string
		known       []string
	}{
		{"Format", o.Format, []string{rfc5424, rfc3164, local}},
		{"Framing", o.Framing, []string{byOctets, byNewline}},
		{"Facility", o.Facility, facilities},
		{"Severity", o.Severity, severities},
	} {
		if !slices.Contains(c.known, c.value) {
			return fmt.Errorf("Options.Syslog.%s is %q: known are %s", c.name, c.value, strings.Join(c.known, ", "))
		}
	}
	for _, c := range []struct {
		name  string
		value *string
		def   func() string
		max   int
	}{
		{"Hostname", &o.Hostname, hostname, 255},
		{"AppName", &o.AppName, programName, 48},
		{"ProcID", &o.ProcID, func() string { return strconv.Itoa(os.Getpid()) }, 128},
		{"MsgID", &o.MsgID, func() string { return "-" }, 32},
	} {
		if *c.value == "" {
			*c.value = printable(c.def(), c.max)
		} else if *c.value != printable(*c.value, c.max) {
			return fmt.Errorf("Options.Syslog.%s is %q: give at most %d bytes of printable ASCII without spaces", c.name, *c.value, c.max)
		}
	}
	switch {
	case o.StructuredData != "" && o.Format != rfc5424:
		return errors.New("leave out Options.Syslog.StructuredData: only rfc5424 has it")
	case o.StructuredData != sdName(o.StructuredData):
		return fmt.Errorf(`Options.Syslog.StructuredData is %q: give a name as "rollway@32473", at most 32 bytes of printable ASCII without space, = ] and "`, o.StructuredData)
	case o.MaxMessage < 0:
		return fmt.Errorf("Options.Syslog.MaxMessage is %d bytes: give a positive size, or 0 for the default", o.MaxMessage)
	}
	return nil
}

func hostname() string {
	h, _ := os.Hostname()
	return h
}

func programName() string {
	if len(os.Args) == 0 { // as in a C program that loads Go as a library
		return ""
	}
	return strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
}

// printable returns s as a header field may hold it: "-" if it is empty.
func printable(s string, limit int) string {
	return cmp.Or(replaceBytes(s[:min(len(s), limit)], ""), "-")
}

// replaceBytes replaces bytes that are not printable ASCII, spaces, and those of others.
func replaceBytes(s, others string) string {
	b := []byte(s)
	for i, c := range b {
		if c <= ' ' || c >= 0x7f || strings.IndexByte(others, c) >= 0 {
			b[i] = '_'
		}
	}
	return string(b)
}
