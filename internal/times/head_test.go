package times

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestHeadAsParse reads times of the forms that Parse takes as well, both ways.
func TestHeadAsParse(t *testing.T) {
	layouts := []string{
		"2006-01-02T15:04:05Z07:00", "2006-01-02 15:04:05.000", "2006-01-02 15:04:05,000000 -0700", "2006/01/02 15:04:05.000000", "2006-01-02 15:04:05 MST",
		"20060102T150405Z", "02/Jan/2006:15:04:05 -0700", "02-Jan-2006 15:04:05", "2 Jan 2006 15:04:05.000", "Mon Jan _2 15:04:05 2006",
		"Mon Jan 02 15:04:05.000000 2006", "Mon, 02 Jan 2006 15:04:05 MST", "Jan 2, 2006 3:04:05 PM",
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		layout := layouts[r.IntN(len(layouts))]
		text := []byte(time.Unix(r.Int64N(7_000_000_000), r.Int64N(1e9)).UTC().Format(layout))
		sec, nsec, ok := Parse(text)
		h := ParseHead(append(text, " and more"...), time.Unix(1779972000, 0), time.UTC)
		if !ok || !h.Sure || h.Sec != sec || h.Nsec != nsec || h.Len != len(text) {
			t.Fatalf("%s is %d.%09d, %t; as a head %+v", text, sec, nsec, ok, h)
		}
	}
}

// TestNearestYear compares with all years that are at most a week ahead.
func TestNearestYear(t *testing.T) {
	newYork, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 20_000 {
		zone := []*time.Location{time.UTC, newYork}[i%2]
		received := time.Unix(1_000_000_000+r.Int64N(1_000_000_000), 0)
		sent := time.Unix(1_000_000_000+r.Int64N(1_000_000_000), 0).In(zone)
		text := sent.Format("Jan _2 15:04:05")
		var want time.Time
		for year := received.Year() - 2; year <= received.Year()+2; year++ {
			at := time.Date(year, sent.Month(), sent.Day(), sent.Hour(), sent.Minute(), sent.Second(), 0, zone)
			if at.Day() == sent.Day() && at.Sub(received) <= 7*24*time.Hour && (want.IsZero() || at.Sub(received).Abs() < want.Sub(received).Abs()) {
				want = at
			}
		}
		// A 29 February may be years away.
		if h := ParseHead([]byte(text), received, zone); h.Len > 0 && h.Sec != want.Unix() || h.Len == 0 && text[:6] != "Feb 29" {
			t.Fatalf("%s, received %s: %s, expected %s", text, received, time.Unix(h.Sec, 0).In(zone), want)
		}
	}
}

func TestHeadDoubt(t *testing.T) {
	for text, want := range map[string]Head{
		"12:40:00 x":                    {Len: 8, Form: Doubt},
		"05/06/2026 12:40:00 x":         {Len: 19, Form: Doubt},
		"05/28/2026, 2:40:00 PM x":      {Len: 22, Sec: 1779979200, Sure: true},
		"28.05.2026 12:40:00.123":       {Len: 23, Sec: 1779972000, Nsec: 123000000, Sure: true},
		"2026-05-28 12:40:00 CST x":     {Len: 23, Sec: 1779972000},
		"2026-05-28 12:40:00 CSTX":      {Len: 19, Sec: 1779972000, Sure: true},
		"2026-05-28 12:40:00 -1 x":      {Len: 19, Sec: 1779972000, Sure: true},
		"2026-05-28 12:40:00 - x":       {Len: 19, Sec: 1779972000, Sure: true},
		"2026-05-28 12:40:00,x":         {Len: 19, Sec: 1779972000, Sure: true},
		"2026-05-28 12:40:00+02: x":     {Len: 22, Sec: 1779964800, Sure: true},
		"May 28 12:40:00 UTC: x":        {Len: 19, Sec: 1779972000, Sure: true, Form: Stamp},
		"May 28 12:40:00 UTC x":         {Len: 15, Sec: 1779972000, Sure: true, Form: Stamp},
		"28/05/26 12:40:00 x":           {Len: 17, Form: Doubt}, // not 2028
		"28/05/2026 12:40:00 x":         {Len: 19, Sec: 1779972000, Sure: true},
		"5/28/2026, 2:40:00 PM":         {Len: 21, Sec: 1779979200, Sure: true},
		"28.05.2026 12:40:00,123":       {Len: 23, Sec: 1779972000, Nsec: 123000000, Sure: true},
		"31/31/2026 12:40:00":           {},
		"2026-05-28 02:40:00 PM x":      {Len: 22, Sec: 1779979200, Sure: true},
		"2026-05-28 14:40:00 PM x":      {Len: 22, Sec: 1779979200, Sure: true},
		"2026-05-28 12:40:00 AMQP x":    {Len: 19, Sec: 1779972000, Sure: true},
		"2026-05-28 12:40:00 PM2 x":     {Len: 19, Sec: 1779972000, Sure: true},
		"05/06/2026 12:40:00 AMQP":      {Len: 19, Form: Doubt},
		"2026-05-28 12:40:00:123 x":     {Len: 23, Sec: 1779972000, Nsec: 123000000, Sure: true},
		"2026-05-28 12:40:00:1234 x":    {Len: 19, Sec: 1779972000, Sure: true},
		"2026-05-28  9:40:00 7 [Note]":  {Len: 19, Sec: 1779961200, Sure: true},
		"3:04PM INF x":                  {Len: 6, Form: Doubt},
		"3:04 INF x":                    {},
		"2026-05-28":                    {},
		"2026-05-28 12:40":              {},
		"2026-05-28 25:40:00":           {},
		"2026-02-30 12:40:00":           {},
		"1969-05-28 12:40:00":           {},
		"2026-05-28T12:40:00.":          {},
		"2026-05-28T12:40:00.1.2":       {},
		"Feb 30 12:40:00":               {},
		"May 28 12:40":                  {},
		"13-28 12:40:00.123":            {},
		"12:40:00 PM":                   {Len: 11, Form: Doubt},
		"13:40:00 PM":                   {Len: 11, Form: Doubt},
		"2026-05-28 12:40:00 +2500 x":   {Len: 19, Sec: 1779972000, Sure: true},
		"2026-05-28T12:40:00.123456789": {Len: 29, Sec: 1779972000, Nsec: 123456789, Sure: true},
	} {
		if got := ParseHead([]byte(text), time.Unix(1779972000, 0), time.UTC); got.Len != want.Len || want.Len > 0 && got != want {
			t.Errorf("%s: %+v, expected %+v", text, got, want)
		}
	}
}
