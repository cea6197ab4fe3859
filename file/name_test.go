package file

import (
	"strings"
	"testing"
	"time"
)

func TestNames(t *testing.T) {
	at := time.Date(2026, 11, 21, 8, 3, 9, 123456789, time.UTC)
	for path, want := range map[string]string{
		"/var/log/payment-api.log": "payment-api-20261121T080309.123456789Z-5f3a2c.log",
		"service":                  "service-20261121T080309.123456789Z-5f3a2c",
		".hidden":                  ".hidden-20261121T080309.123456789Z-5f3a2c",
		"a.b.json":                 "a.b-20261121T080309.123456789Z-5f3a2c.json",
		"name.":                    "name.-20261121T080309.123456789Z-5f3a2c",
		"a.b-c":                    "a.b-c-20261121T080309.123456789Z-5f3a2c",
	} {
		s := newSeries(path, Options{Location: time.UTC})
		if got := s.name(member{time: at, inode: 0x5f3a2c}); got != want {
			t.Errorf("%s: name %s, want %s", path, got, want)
		}
	}
	s := newSeries("log", Options{})
	if got, want := s.name(member{time: at.In(time.FixedZone("", 2*3600)), inode: 1, compressed: ".gz", partial: true}), "log-20261121T100309.123456789+0200-1.gz.part"; got != want {
		t.Errorf("name %s, want %s", got, want)
	}
}

func TestForeignNames(t *testing.T) {
	s := newSeries("payment-api.log", Options{Location: time.UTC})
	const good = "payment-api-20261121T080309.123456789Z-5f3a2c.log"
	for _, name := range []string{good, good + ".gz", good + ".zst", good + ".gz.part", strings.Replace(good, "Z-", "-0530-", 1)} {
		if _, ok := s.parse(name); !ok {
			t.Errorf("%s is not known", name)
		}
	}
	for _, name := range []string{
		"", "payment-api.log", "payment-api.log.1", "payment-api-20261121.log", "payment-api-" + good,
		"x" + good, good + "x", good + ".gz.gz", good + ".part", good + ".bz2", good + ".gz.part.part",
		strings.Replace(good, "5f3a2c", "5F3A2C", 1), strings.Replace(good, "5f3a2c", "0", 1) + "0",
		strings.Replace(good, "5f3a2c", "", 1), strings.Replace(good, "5f3a2c", "05", 1),
		strings.Replace(good, "Z-", "+0000-", 1), strings.Replace(good, ".123", ",123", 1),
		strings.Replace(good, "1121T", "1131T", 1), strings.Replace(good, ".log", ".txt", 1),
		"payment-api-2016-11-04T18-30-00.000.log", // lumberjack's
	} {
		if m, ok := s.parse(name); ok {
			t.Errorf("%s was taken for %+v", name, m)
		}
	}
}

// What parses is what name makes, and its time and number sort as they say.
func FuzzParseName(f *testing.F) {
	for _, seed := range []string{
		"payment-api-20261121T080309.123456789Z-5f3a2c.log", "payment-api-20261121T080309.123456789+0200-5f3a2c.log.gz",
		"payment-api-00010101T000000.000000000Z-0.log.zst.part", "payment-api-99991231T235959.999999999-2359-ffffffffffffffff.log",
		"payment-api.log", "payment-api-", "payment-api-20261121T080309.123456789Z-.log",
	} {
		f.Add("payment-api.log", seed)
	}
	f.Add("service", "service-20261121T080309.123456789Z-5f3a2c.gz")
	f.Add(".log", ".log-20261121T080309.123456789Z-5f3a2c")
	f.Fuzz(func(t *testing.T, path, name string) {
		s := newSeries(path, Options{Location: time.UTC})
		m, ok := s.parse(name)
		if !ok {
			return
		}
		if again := s.name(m); again != name {
			t.Fatalf("%q parses to %+v, which is named %q", name, m, again)
		}
		if back, ok := s.parse(s.name(member{time: m.time, inode: m.inode})); !ok || back.compressed != "" || back.partial || !back.time.Equal(m.time) || back.inode != m.inode {
			t.Fatalf("%q: the plain name of %+v parses to %+v, %v", name, m, back, ok)
		}
	})
}
