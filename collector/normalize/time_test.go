package normalize

import (
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/jsonline"
)

func TestParseTime(t *testing.T) {
	for in, want := range map[string]string{
		"2026-05-28T12:40:00Z":              "2026-05-28T12:40:00.000000000Z",
		"2026-05-28t12:40:00z":              "2026-05-28T12:40:00.000000000Z",
		"2026-05-28T12:40:00.1Z":            "2026-05-28T12:40:00.100000000Z",
		"2026-05-28T12:40:00.123456789999Z": "2026-05-28T12:40:00.123456789Z",
		"2026-05-28T12:40:00,5+02:00":       "2026-05-28T10:40:00.500000000Z",
		"2026-05-28T12:40:00-0530":          "2026-05-28T18:10:00.000000000Z",
		"2026-05-28T12:40:00+01":            "2026-05-28T11:40:00.000000000Z",
		"2026-05-28 12:40:00":               "2026-05-28T12:40:00.000000000Z",
		"2026-05-28 12:40:00.123":           "2026-05-28T12:40:00.123000000Z",
		"2026-05-28 12:40:00.123 +0200":     "2026-05-28T10:40:00.123000000Z",
		"2026-12-31T23:59:60Z":              "2027-01-01T00:00:00.000000000Z",
		"0000-01-01T00:00:00Z":              "0000-01-01T00:00:00.000000000Z",
		"0000-03-01T00:00:00Z":              "0000-03-01T00:00:00.000000000Z",
		"9999-12-31T23:59:59.999999999Z":    "9999-12-31T23:59:59.999999999Z",
		"0":                                 "1970-01-01T00:00:00.000000000Z",
		"-0.5":                              "1969-12-31T23:59:59.500000000Z",
		"1779972000":                        "2026-05-28T12:40:00.000000000Z",
		"1779972000.25":                     "2026-05-28T12:40:00.250000000Z",
		"1.77997200025e9":                   "2026-05-28T12:40:00.250000000Z",
		"1779972000.1234567891":             "2026-05-28T12:40:00.123456789Z",
		"1779972000123":                     "2026-05-28T12:40:00.123000000Z",
		"1779972000123.456":                 "2026-05-28T12:40:00.123456000Z",
		"1779972000123456":                  "2026-05-28T12:40:00.123456000Z",
		"1779972000123456789":               "2026-05-28T12:40:00.123456789Z",
		"12345678901234567890":              "2361-03-21T19:15:01.234567890Z",
		"99999999999":                       "5138-11-16T09:46:39.000000000Z",
		"100000000000":                      "1973-03-03T09:46:40.000000000Z",
		"0.000000001":                       "1970-01-01T00:00:00.000000001Z",
		"5e-324":                            "1970-01-01T00:00:00.000000000Z",
		"0000000001779972000":               "2026-05-28T12:40:00.000000000Z",
		" 1779972000 ":                      "2026-05-28T12:40:00.000000000Z",
		"0e999999999":                       "1970-01-01T00:00:00.000000000Z",
		"1779972000.00000000000000000000000000000000000000000000000000001": "2026-05-28T12:40:00.000000000Z",
		"2026-05-28":                "",
		"2026-02-29T00:00:00Z":      "",
		"2026-05-28T24:00:00Z":      "",
		"2026-05-28T12:40:00.Z":     "",
		"2026-05-28T12:40:00 ":      "2026-05-28T12:40:00.000000000Z",
		"2026-05-28T12:40:00+24:00": "",
		"2026-05-28T12:40:00Zzz":    "",
		"2026-0x-28T12:40:00Z":      "",
		"x026-05-28T12:40:00Z":      "",
		"20x6-05-28T12:40:00Z":      "",
		"9999-12-31T23:59:60Z":      "",
		"0000-01-01T00:00:00+01:00": "",
		"yesterday":                 "",
		"":                          "",
		"-":                         "",
		"1.":                        "",
		".5":                        "",
		"1e":                        "",
		"1e400":                     "",
		"1e999999999999":            "",
		"300000000000000000000":     "",
		"-99999999999":              "",
		"1779972000x":               "",
		"NaN":                       "",
		"+5":                        "",
	} {
		got := ""
		if sec, nsec, ok := parseTime([]byte(in)); ok {
			got = string(jsonline.AppendUnix(nil, sec, nsec))
		}
		if got != want {
			t.Errorf("parseTime(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestParseTimeAgainstStandardLibrary(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 7))
	for range 100_000 {
		want := time.Unix(minUnix+rng.Int64N(maxUnix-minUnix), rng.Int64N(1e9)).UTC()
		for _, text := range []string{
			want.Format("2006-01-02T15:04:05.000000000Z"),
			want.In(time.FixedZone("", rng.IntN(24*60)*60-12*3600)).Format(time.RFC3339Nano),
		} {
			if text[0] == '-' || len(text) > 4 && text[4] != '-' { // a zone took it out of the four-digit years
				continue
			}
			sec, nsec, ok := parseTime([]byte(text))
			if !ok || sec != want.Unix() || nsec != want.Nanosecond() {
				t.Fatalf("parseTime(%s) = %d, %d, %v, want %d, %d", text, sec, nsec, ok, want.Unix(), want.Nanosecond())
			}
		}
	}
}

func TestParseLevel(t *testing.T) {
	for in, want := range map[string]slog.Level{
		"trace": -8, "TRACE": -8, "Verbose": -8, "fine": -4, "FINEST": -8, "Debug": -4, "dbg": -4, "CONFIG": -2,
		"info": 0, "Information": 0, "notice": 2, "Warn": 4, "WARNING": 4, "error": 8, "err": 8, "eror": 8, "SEVERE": 8,
		"dpanic": 9, "panic": 10, "critical": 12, "CRIT": 12, "fatal": 12, "alert": 13, "emerg": 14, "Emergency": 14,
		"WARN+1": 5, "TRACE-1": -9, "info+2": 2, "ERROR+1": 9, "FATAL+100": 112, "INFO+4": 4, "INFO-2": -2,
		"-8": -8, "-4": -4, "0": 0, "4": 4, "8": 8, "9": 9, "12": 12,
		"10": -8, "20": -4, "30": 0, "35": 2, "40": 4, "50": 8, "60": 12, " warn ": 4,
	} {
		if got, ok := ParseLevel(in); !ok || got != want {
			t.Errorf("ParseLevel(%q) = %d, %v, want %d", in, int(got), ok, int(want))
		}
	}
	for _, in := range []string{"", " ", "loud", "11", "13", "33", "65", "-9", "30.0", "warn+", "warn+x", "+1", "w+1", "alert+1", "a very long text that is no level at all", "INFO+9999999999"} {
		if got, ok := ParseLevel(in); ok {
			t.Errorf("ParseLevel(%q) = %d", in, int(got))
		}
	}
	for l := slog.Level(-50); l < 50; l++ {
		name := string(jsonline.AppendLevel(nil, l))
		if got, ok := ParseLevel(name); !ok || got != l {
			t.Errorf("ParseLevel(%q) = %d, %v, want %d", name, int(got), ok, int(l))
		}
	}
}
