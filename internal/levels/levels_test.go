package levels

import (
	"log/slog"
	"testing"
)

func TestLevelRoundTrip(t *testing.T) {
	for l := slog.Level(-20); l <= 20; l++ {
		name := string(Append(nil, l))
		if back, ok := Parse([]byte(name)); !ok || back != l {
			t.Errorf("level %d is written %s and read %d, %v", int(l), name, int(back), ok)
		}
	}
	for l, want := range map[slog.Level]string{-8: "TRACE", -4: "DEBUG", 0: "INFO", 2: "INFO+2", 4: "WARN", 8: "ERROR", 9: "ERROR+1", 10: "PANIC", 12: "FATAL", -9: "TRACE-1"} {
		if got := string(Append(nil, l)); got != want {
			t.Errorf("level %d = %s, want %s", int(l), got, want)
		}
	}
	if _, ok := Parse([]byte("loud")); ok {
		t.Error("Parse took loud")
	}
}

func TestParseAny(t *testing.T) {
	for in, want := range map[string]slog.Level{
		"trace": -8, "TRACE": -8, "Verbose": -8, "fine": -4, "FINEST": -8, "Debug": -4, "dbg": -4, "CONFIG": -2,
		"info": 0, "Information": 0, "notice": 2, "Warn": 4, "WARNING": 4, "error": 8, "err": 8, "eror": 8, "SEVERE": 8,
		"dpanic": 9, "panic": 10, "critical": 12, "CRIT": 12, "fatal": 12, "alert": 13, "emerg": 14, "Emergency": 14,
		"WARN+1": 5, "TRACE-1": -9, "info+2": 2, "ERROR+1": 9, "FATAL+100": 112, "INFO+4": 4, "INFO-2": -2,
		"-8": -8, "-4": -4, "0": 0, "4": 4, "8": 8, "9": 9, "12": 12,
		"10": -8, "20": -4, "30": 0, "35": 2, "40": 4, "50": 8, "60": 12, " warn ": 4,
	} {
		if got, ok := ParseAny([]byte(in)); !ok || got != want {
			t.Errorf("ParseAny(%q) = %d, %v, want %d", in, int(got), ok, int(want))
		}
	}
	for _, in := range []string{"", " ", "loud", "11", "13", "33", "65", "-9", "30.0", "warn+", "warn+x", "+1", "w+1", "alert+1", "a very long text that is no level at all", "INFO+9999999999"} {
		if got, ok := ParseAny([]byte(in)); ok {
			t.Errorf("ParseAny(%q) = %d", in, int(got))
		}
	}
	for l := slog.Level(-50); l < 50; l++ {
		name := string(Append(nil, l))
		if got, ok := ParseAny([]byte(name)); !ok || got != l {
			t.Errorf("ParseAny(%q) = %d, %v, want %d", name, int(got), ok, int(l))
		}
	}
}

func TestSeverity(t *testing.T) {
	for l, want := range map[slog.Level]int{-100: 7, -8: 7, -4: 7, -1: 7, 0: 6, 1: 6, 2: 5, 3: 5, 4: 4, 7: 4, 8: 3, 9: 3, 10: 2, 12: 2, 13: 1, 14: 0, 100: 0} {
		if got := Severity(l); got != want {
			t.Errorf("Severity(%d) = %d, want %d", l, got, want)
		}
	}
	for severity, name := range SeverityNames {
		if l, ok := ParseNamed([]byte(name)); !ok || Severity(l) != severity {
			t.Errorf("%s is level %d of severity %d, want %d", name, l, Severity(l), severity)
		}
	}
	if got := string(AppendLower([]byte("A"), 5)); got != "Awarn+1" {
		t.Errorf("WARN+1 in small letters is %s", got)
	}
}

func TestProtocols(t *testing.T) {
	for in, want := range map[string]slog.Level{"0": 14, "3": 8, "7": -4, "warning": 4} {
		if got, ok := ParseSyslog([]byte(in)); !ok || got != want {
			t.Errorf("ParseSyslog(%q) = %d, %v, want %d", in, int(got), ok, int(want))
		}
	}
	for in, want := range map[string]slog.Level{"1": -8, "9": 0, "24": 15, "INFO": 0} {
		if got, ok := ParseOTel([]byte(in)); !ok || got != want {
			t.Errorf("ParseOTel(%q) = %d, %v, want %d", in, int(got), ok, int(want))
		}
	}
	for _, in := range []string{"", "-1", "8", "25", "30", "00"} {
		if got, ok := ParseSyslog([]byte(in)); ok {
			t.Errorf("ParseSyslog(%q) = %d", in, int(got))
		}
		if got, ok := ParseOTel([]byte(in)); ok && in != "8" {
			t.Errorf("ParseOTel(%q) = %d", in, int(got))
		}
	}
}
