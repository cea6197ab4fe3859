package template

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func ExampleAppend() {
	fmt.Printf("%s\n", Append(nil, []byte(`order 4711 of "Jane Doe" failed after 1.5s: dial 10.0.0.7:5432`)))
	// Output: order <num> of "<str>" failed after <num>s: dial <ip>
}

func TestAppend(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "",
		"connection refused":        "connection refused",
		"took 15 ms":                "took <num> ms",
		"took 1m30.5s.":             "took <num>m<num>s.",
		"from -5 to +7, v1.2.3":     "from <num> to <num>, v<num>",
		"GET /api/v1/users/123 200": "GET /api/v<num>/users/<num> <num>",
		"id 4f9a02bc, ptr 0xc000":   "id <hex>, ptr <hex>",
		"key=cus_456":               "key=cus_<num>",
		"key=01HV6Z8Q3W9XKJ2M4N5P":  "key=<id>",
		"a 6ba7b810-9dad-11d1-80b4-00c04fd430c8.":        "a <uuid>.",
		"at 2026-05-28T12:40:00.5Z":                      "at <time>",
		"at 2026-05-28 12:40:00":                         "at <time> <time>",
		"[10.0.0.1:80] [fe80::1] [10.0.0.999]":           "[<ip>] [<ip>] [<num>]",
		`user "Jane 5" and ""`:                           `user "<str>" and ""`,
		`an open " 5`:                                    `an open " <num>`,
		"größe 5µs":                                      "größe <num>µs",
		strings.Repeat("x", 257):                         "<long>",
		"a " + strings.Repeat("b ", 199):                 "a " + strings.Repeat("b ", 199),
		strings.Repeat("b ", 201):                        strings.Repeat("b ", 102) + "…",
		strings.Repeat(strings.Repeat("y", 199)+" ", 21): strings.Repeat(strings.Repeat("y", 199)+" ", 20) + "…",
	} {
		if got := string(Append([]byte("5"), []byte(text))); got != "5"+want {
			t.Errorf("%.80s: got\n%s, want\n%s", text, got, "5"+want)
		}
	}
}

func FuzzAppend(f *testing.F) {
	for _, seed := range []string{`a 5 "b" 0x1 10.0.0.1:80 2026-05-28`, "\xff5\xff \"", strings.Repeat("a\t", 300), strings.Repeat("1,", 3000)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		once := Append(nil, text)
		switch twice := Append(nil, once); {
		case !bytes.Equal(once, twice):
			t.Fatalf("the template of %q is %q", once, twice)
		case len(once) > MaxBytes:
			t.Fatalf("%d bytes", len(once))
		case bytes.ContainsAny(once, "0123456789"):
			t.Fatalf("a digit is left: %q", once)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	text := []byte(`failed to charge customer cus_456 of 10.0.0.7:5432 after 1.5s: 6ba7b810-9dad-11d1-80b4-00c04fd430c8 not found`)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	var dst []byte
	for b.Loop() {
		dst = Append(dst[:0], text)
	}
}
