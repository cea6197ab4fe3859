package testkit

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// ended is what a test ends by, as a panic.
type ended string

// A recorder is a test that tells how it ended and which attributes it has.
type recorder struct {
	testing.TB
	attrs map[string]string
}

func (recorder) Helper()                        {}
func (recorder) Fatalf(format string, a ...any) { panic(ended("failed: " + fmt.Sprintf(format, a...))) }
func (recorder) Skipf(format string, a ...any)  { panic(ended("skipped: " + fmt.Sprintf(format, a...))) }
func (r recorder) Attr(key, value string)       { r.attrs[key] = value }

// record calls f and returns how it ended the test, "" if it did not, and the
// test's attributes.
func record(t *testing.T, f func(testing.TB)) (end ended, attrs map[string]string) {
	attrs = map[string]string{}
	defer func() {
		if got := recover(); got != nil {
			end = got.(ended)
		}
	}()
	f(recorder{t, attrs})
	return "", attrs
}

func TestMissing(t *testing.T) {
	for environment, want := range map[string]ended{
		"":    "skipped: this needs the program there-is-none",
		"all": "failed: REQUIRE=all, but this needs the program there-is-none",
	} {
		t.Setenv("REQUIRE", environment)
		if got, _ := record(t, func(tb testing.TB) { Program(tb, "there-is-none") }); got != want {
			t.Errorf("REQUIRE=%s: %v", environment, got)
		}
	}
	if path := Program(t, "go"); path == "" {
		t.Error("go has no path")
	}
}

// TestNightly: with REQUIRE=all too, a test is left to the part that has it.
func TestNightly(t *testing.T) {
	t.Setenv("REQUIRE", "all")
	for environment, on := range map[string]bool{"": false, "kills bench": false, "engines": true, "kills engines": true} {
		t.Setenv("ROLLWAY_NIGHTLY", environment)
		end, left, shortened, rounds := ended(""), map[string]string{}, map[string]string{}, 100
		if !on {
			end, left = "skipped: left to make nightly PARTS=engines: it is large", map[string]string{"nightly": "engines"}
			rounds, shortened = 3, map[string]string{"rounds": "engines"}
		}
		got, attrs := record(t, func(tb testing.TB) { Nightly(tb, Engines, "it is large") })
		if got != end || !reflect.DeepEqual(attrs, left) {
			t.Errorf("ROLLWAY_NIGHTLY=%s: %q %v, want %q %v", environment, got, attrs, end, left)
		}
		_, attrs = record(t, func(tb testing.TB) {
			if n := Rounds(tb, Engines, 3, 100); n != rounds {
				t.Errorf("ROLLWAY_NIGHTLY=%s: %d rounds, want %d", environment, n, rounds)
			}
		})
		if !reflect.DeepEqual(attrs, shortened) {
			t.Errorf("ROLLWAY_NIGHTLY=%s: %v, want %v", environment, attrs, shortened)
		}
	}
}

func TestNoRace(t *testing.T) {
	end, want := ended(""), map[string]string{}
	if race {
		end, want = "skipped: left to the run without the race detector: it allocates", map[string]string{"norace": "it allocates"}
	}
	if got, attrs := record(t, func(tb testing.TB) { NoRace(tb, "it allocates") }); got != end || !reflect.DeepEqual(attrs, want) {
		t.Errorf("%q %v, want %q %v", got, attrs, end, want)
	}
	_, attrs := record(t, func(tb testing.TB) {
		if Race(tb, "it allocates") != race {
			t.Error("race is ", !race)
		}
	})
	if !reflect.DeepEqual(attrs, want) {
		t.Errorf("attributes %v, want %v", attrs, want)
	}
	rounds := 0
	if _, attrs = record(t, func(tb testing.TB) { rounds = RaceRounds(tb, 2, 20) }); (rounds == 2) != race || (rounds == 20) == race || len(attrs) != len(want) {
		t.Errorf("%d rounds, attributes %v", rounds, attrs)
	}
}

func TestAttackReport(t *testing.T) {
	a := Attack{"a flood", 3, "p99 <= 250 ms", "12 ms\nat most"}
	_, attrs := record(t, func(tb testing.TB) { a.Report(tb) })
	var got Attack
	if err := json.Unmarshal([]byte(attrs[AttrAttack]), &got); err != nil || got != a || strings.Contains(attrs[AttrAttack], "\n") {
		t.Errorf("%q: %+v, %v", attrs, got, err)
	}
}
