package logger

import (
	"strings"
	"testing"
	"time"
)

func TestEveryLibraryWritesTheSameValues(t *testing.T) {
	if err := Check(); err != nil {
		t.Error(err)
	}
}

// TestCheckNotices: a check that takes everything would be worth nothing.
func TestCheckNotices(t *testing.T) {
	var six Case
	for _, c := range Cases() {
		if c.Name == caseSix {
			six = c
		}
	}
	good := `{"time":"NOW","level":"INFO","msg":"request finished","attrs":{"customer":"cus_8f14e45fceea","retry":3,"size":48213,"ratio":0.8125,"cached":true,"took":1234567}}` + "\n"
	good = strings.Replace(good, "NOW", nowText(), 1)
	if err := checkLine(six, []byte(good)); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{`"retry":3`, `"retry":4`}, {`,"cached":true`, ``}, {`"took":1234567`, `"took":1234`}, {`"took":1234567`, `"took":1`},
		{"INFO", "WARN"}, {"request finished", "request"}, {"\n", ""}, {"}}", "}"}, {`"size":48213`, `"size":48213,"more":1`}, {`"size":48213`, `"size":"48213"`},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		if err := checkLine(six, []byte(bad)); err == nil {
			t.Errorf("taken: %s", bad)
		}
	}
}

func nowText() string { return time.Now().UTC().Format(time.RFC3339Nano) }
