package times

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
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
		"2026-05-28": "",
		// Other ways, see parseDate.
		"2026/05/28 12:40:00":                                    "2026-05-28T12:40:00.000000000Z",
		"2026/05/28 12:40:00.123456":                             "2026-05-28T12:40:00.123456000Z",
		"2026/05/28T12:40:00+02:00":                              "2026-05-28T10:40:00.000000000Z",
		"2026/5/28 12:40:00":                                     "",
		"20260528T124000Z":                                       "2026-05-28T12:40:00.000000000Z",
		"20260528T124000.5+0200":                                 "2026-05-28T10:40:00.500000000Z",
		"20260528 12:40:00.123456":                               "2026-05-28T12:40:00.123456000Z",
		"20260528T12:40":                                         "",
		"20260528X124000":                                        "",
		"20261328T124000Z":                                       "",
		"2026-05-28T12:40Z":                                      "2026-05-28T12:40:00.000000000Z",
		"2026-05-28 12:40":                                       "2026-05-28T12:40:00.000000000Z",
		"2026-05-28T12:40+02:00":                                 "2026-05-28T10:40:00.000000000Z",
		"2026-05-28T12:4":                                        "",
		"2026-W22-4T12:40:00Z":                                   "2026-05-28T12:40:00.000000000Z",
		"2020-W53-7T12:40:00Z":                                   "2021-01-03T12:40:00.000000000Z",
		"2026-W01-1T00:00:00Z":                                   "2025-12-29T00:00:00.000000000Z",
		"2026-W53-7T00:00:00Z":                                   "2027-01-03T00:00:00.000000000Z",
		"2025-W53-1T00:00:00Z":                                   "",
		"2026-W00-1T00:00:00Z":                                   "",
		"2026-W22-8T00:00:00Z":                                   "",
		"2026-148T12:40:00Z":                                     "2026-05-28T12:40:00.000000000Z",
		"2024-366 12:40:00":                                      "2024-12-31T12:40:00.000000000Z",
		"2026-366T12:40:00Z":                                     "",
		"2026-000T12:40:00Z":                                     "",
		"2026-05-28 12:40:00 UTC":                                "2026-05-28T12:40:00.000000000Z",
		"2026-05-28 12:40:00.123 GMT":                            "2026-05-28T12:40:00.123000000Z",
		"2026-05-28 12:40:00 CEST":                               "",
		"2026-05-28 12:40:00 UTCX":                               "",
		"2026-05-28T14:40:00+02:00[Europe/Berlin]":               "2026-05-28T12:40:00.000000000Z",
		"2026-05-28T12:40:00Z[UTC]":                              "2026-05-28T12:40:00.000000000Z",
		"2026-05-28 14:40:00.5 +0200 CEST":                       "2026-05-28T12:40:00.500000000Z",
		"2026-05-28 12:40:00.5 +0000 UTC m=+0.012345":            "2026-05-28T12:40:00.500000000Z",
		"2026-05-28 12:40:00.5 +0000 UTC m=x":                    "",
		"2026-05-28 14:40:00 +0200 [CEST":                        "",
		"Thu, 28 May 2026 12:40:00 GMT":                          "2026-05-28T12:40:00.000000000Z",
		"Thu, 28 May 2026 14:40:00 +0200":                        "2026-05-28T12:40:00.000000000Z",
		"Thu, 28 May 2026 12:40 UT":                              "2026-05-28T12:40:00.000000000Z",
		"Thu, 28 May 2026 12:40:00 EST":                          "",
		"28 May 26 12:40:00 Z":                                   "2026-05-28T12:40:00.000000000Z",
		"Thursday, 28-May-26 12:40:00 GMT":                       "2026-05-28T12:40:00.000000000Z",
		"Thursday, 28-May-69 12:40:00 GMT":                       "1969-05-28T12:40:00.000000000Z",
		"Thu May 28 12:40:00 2026":                               "2026-05-28T12:40:00.000000000Z",
		"Fri May  1 12:40:00 2026":                               "2026-05-01T12:40:00.000000000Z",
		"Thu May 28 12:40:00.123456 2026":                        "2026-05-28T12:40:00.123456000Z",
		"[Thu May 28 12:40:00.123456 2026]":                      "2026-05-28T12:40:00.123456000Z",
		"Thu May 28 12:40:00 UTC 2026":                           "2026-05-28T12:40:00.000000000Z",
		"Thu May 28 14:40:00 +0200 2026":                         "2026-05-28T12:40:00.000000000Z",
		"Thu May 28 14:40:00 CEST 2026":                          "",
		"Thu May 28 2026 14:40:00 GMT+0200 (Central European S)": "2026-05-28T12:40:00.000000000Z",
		"28/May/2026:12:40:00 +0000":                             "2026-05-28T12:40:00.000000000Z",
		"[28/May/2026:14:40:00 +0200]":                           "2026-05-28T12:40:00.000000000Z",
		"May 28, 2026 12:40:00 PM":                               "2026-05-28T12:40:00.000000000Z",
		"May 28, 2026 12:40:00 am":                               "2026-05-28T00:40:00.000000000Z",
		"May 28, 2026 1:40:00 PM":                                "2026-05-28T13:40:00.000000000Z",
		"May 28, 2026 13:40:00 PM":                               "",
		"September 9, 2026 12:40:00":                             "2026-09-09T12:40:00.000000000Z",
		"Sept 9, 2026 12:40:00":                                  "2026-09-09T12:40:00.000000000Z",
		"Septem 9, 2026 12:40:00":                                "",
		"Thu, 31 Jun 2026 12:40:00 GMT":                          "",
		"Thu, 28 May 2026 24:40:00 GMT":                          "",
		"Thu, 28 May 2026 GMT, good":                             "",
		"Thu, 28 May 2026 12:40:00 GMT GMT":                      "",
		"Thu, 28 May 2026 12:40:00 12:40:00":                     "",
		"Thu, 28 28 May 2026 12:40:00":                           "",
		"May 28 12:40:00":                                        "",
		"28.05.2026 12:40:00":                                    "",
		"05/28/2026 12:40:00":                                    "",
		"0528 12:40:00.123456 some":                              "",
		"the 28 May 2026 at 12:40:00":                            "",
		"2026-02-29T00:00:00Z":                                   "",
		"2026-05-28T24:00:00Z":                                   "",
		"2026-05-28T12:40:00.Z":                                  "",
		"2026-05-28T12:40:00 ":                                   "2026-05-28T12:40:00.000000000Z",
		"2026-05-28T12:40:00+24:00":                              "",
		"2026-05-28T12:40:00Zzz":                                 "",
		"2026-0x-28T12:40:00Z":                                   "",
		"x026-05-28T12:40:00Z":                                   "",
		"20x6-05-28T12:40:00Z":                                   "",
		"9999-12-31T23:59:60Z":                                   "",
		"0000-01-01T00:00:00+01:00":                              "",
		"yesterday":                                              "",
		"":                                                       "",
		"-":                                                      "",
		"1.":                                                     "",
		".5":                                                     "",
		"1e":                                                     "",
		"1e400":                                                  "",
		"1e999999999999":                                         "",
		"300000000000000000000":                                  "",
		"-99999999999":                                           "",
		"1779972000x":                                            "",
		"NaN":                                                    "",
		"+5":                                                     "",
	} {
		got := ""
		if sec, nsec, ok := Parse([]byte(in)); ok {
			got = string(jsonline.AppendUnix(nil, sec, nsec))
		}
		if got != want {
			t.Errorf("Parse(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestParseTimeAgainstStandardLibrary(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 7))
	for range 100_000 {
		want := time.Unix(jsonline.FirstSecond+rng.Int64N(jsonline.LastSecond-jsonline.FirstSecond), rng.Int64N(1e9)).UTC()
		for _, text := range []string{
			want.Format("2006-01-02T15:04:05.000000000Z"),
			want.In(time.FixedZone("", rng.IntN(24*60)*60-12*3600)).Format(time.RFC3339Nano),
		} {
			if text[0] == '-' || len(text) > 4 && text[4] != '-' { // a zone took it out of the four-digit years
				continue
			}
			sec, nsec, ok := Parse([]byte(text))
			if !ok || sec != want.Unix() || nsec != want.Nanosecond() {
				t.Fatalf("Parse(%s) = %d, %d, %v, want %d, %d", text, sec, nsec, ok, want.Unix(), want.Nanosecond())
			}
		}
	}
}

// TestDatesAgainstStandardLibrary compares with package time, of years that its
// layouts of two digits can have.
func TestDatesAgainstStandardLibrary(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 7))
	first, last := time.Date(1969, 1, 2, 0, 0, 0, 0, time.UTC).Unix(), time.Date(2068, 12, 30, 0, 0, 0, 0, time.UTC).Unix()
	for range 20_000 {
		at := time.Unix(first+rng.Int64N(last-first), rng.Int64N(1e9)).In(time.FixedZone("", rng.IntN(24*60)*60-12*3600))
		for _, layout := range dateLayouts {
			text := at.Format(layout)
			want, err := time.Parse(layout, text)
			if err != nil {
				t.Fatal(err)
			}
			sec, nsec, ok := Parse([]byte(text))
			if !ok || sec != want.Unix() || nsec != want.Nanosecond() {
				t.Fatalf("Parse(%s) = %d, %d, %v, want %d, %d", text, sec, nsec, ok, want.Unix(), want.Nanosecond())
			}
		}
		// Weeks, which package time writes no layout for.
		utc := at.UTC()
		year, week := utc.ISOWeek()
		text := fmt.Sprintf("%04d-W%02d-%d", year, week, (int(utc.Weekday())+6)%7+1) + utc.Format("T15:04:05Z")
		if sec, _, ok := Parse([]byte(text)); !ok || sec != utc.Unix() {
			t.Fatalf("Parse(%s) = %d, %v, want %d", text, sec, ok, utc.Unix())
		}
	}
}

// dateLayouts are those of package time that parseDate takes, and some of others.
var dateLayouts = []string{
	time.ANSIC, time.RubyDate, time.RFC822Z, time.RFC1123Z, "Mon, 02 Jan 2006 15:04:05.000 GMT", "Monday, 02-Jan-06 15:04:05 UTC",
	"2006/01/02 15:04:05", "2006/01/02 15:04:05.000000", "02/Jan/2006:15:04:05 -0700", "20060102T150405Z0700", "20060102 15:04:05.000",
	"2006-002T15:04:05-07:00", "2006-01-02T15:04Z07:00", "Jan _2, 2006 3:04:05 PM", "Mon Jan 02 2006 15:04:05 GMT-0700", "January 2, 2006 15:04",
}

func FuzzTime(f *testing.F) {
	for _, s := range []string{"2026-05-28T12:40:00.5+02:00", "2026-05-28 12:40:00,123", "1779972000.25", "-1e-9", "1e21"} {
		f.Add(s)
	}
	for _, layout := range dateLayouts {
		f.Add(time.Date(2026, 5, 28, 12, 40, 0, 123456000, time.UTC).Format(layout))
	}
	f.Fuzz(func(t *testing.T, s string) {
		sec, nsec, ok := Parse([]byte(s))
		if ok && (sec < jsonline.FirstSecond || sec > jsonline.LastSecond || nsec < 0 || nsec > 999_999_999) {
			t.Fatalf("Parse(%q) = %d, %d", s, sec, nsec)
		}
		// Seconds agree with what a float64 says, as far as it can say it.
		if v, err := strconv.ParseFloat(s, 64); ok && err == nil && v > -1e9 && v < 1e10 && !strings.ContainsAny(s, "xX_iIpP+") {
			if diff := float64(sec) + float64(nsec)/1e9 - v; diff > 1e-5 || diff < -1e-5 {
				t.Fatalf("Parse(%q) = %d, %d, off by %g", s, sec, nsec, diff)
			}
		}
		// What package time reads by one of the layouts is the same time.
		for _, layout := range dateLayouts {
			if want, err := time.Parse(layout, s); ok && err == nil && (want.Unix() != sec || want.Nanosecond() != nsec) {
				t.Fatalf("Parse(%q) = %d, %d, want %d, %d as of %q", s, sec, nsec, want.Unix(), want.Nanosecond(), layout)
			}
		}
		var last Cache
		for range 2 {
			if sec2, nsec2, ok2 := last.Parse([]byte(s)); sec2 != sec || nsec2 != nsec || ok2 != ok {
				t.Fatalf("Parse(%q) = %d, %d, %t, and %d, %d, %t where the second is known", s, sec, nsec, ok, sec2, nsec2, ok2)
			}
		}
	})
}
