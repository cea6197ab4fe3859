package jsonline

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// decoded is what a JSON reader must get for s: every byte that is not part
// of valid UTF-8 becomes U+FFFD.
func decoded(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		b.WriteRune(r)
		i += size
	}
	return b.String()
}

func checkString(t *testing.T, s string) {
	t.Helper()
	got := AppendString([]byte("x"), s)[1:]
	if !json.Valid(got) || !utf8.Valid(got) {
		t.Fatalf("AppendString(%q) = %q: not valid JSON in UTF-8", s, got)
	}
	var back string
	if err := json.Unmarshal(got, &back); err != nil {
		t.Fatalf("AppendString(%q) = %q: %v", s, got, err)
	}
	if want := decoded(s); back != want {
		t.Fatalf("AppendString(%q) reads back as %q, want %q", s, back, want)
	}
	if strings.ContainsAny(string(got), "\n\r") {
		t.Fatalf("AppendString(%q) = %q holds a raw line break", s, got)
	}
}

func TestStringEveryByteAtEveryPlace(t *testing.T) {
	for b := range 256 {
		for pos := range 20 {
			s := []byte("abcdefghijklmnopqrst")
			s[pos] = byte(b)
			checkString(t, string(s))
			checkString(t, string(s[:pos+1]))
		}
	}
	for _, s := range []string{"", "\u2028\u2029", "😀", "\xf0\x9f\x98", "\xff\xfe", "a\xc3(", "\xed\xa0\x80", strings.Repeat("é", 100)} {
		checkString(t, s)
	}
}

func FuzzString(f *testing.F) {
	for _, s := range []string{"plain", "a\"b\\c\nd", "\x00\x1b\x7f", "\xff\xc3\x28", "日本\u2028"} {
		f.Add(s)
	}
	f.Fuzz(checkString)
}

func TestTimeAgainstStandardLibrary(t *testing.T) {
	const layout = "2006-01-02T15:04:05.000000000Z"
	check := func(sec int64, nsec int) {
		t.Helper()
		want := time.Unix(sec, int64(nsec)).UTC().Format(layout)
		if got := string(AppendUnix(nil, sec, nsec)); got != want {
			t.Fatalf("AppendUnix(%d, %d) = %s, want %s", sec, nsec, got, want)
		}
	}
	for _, sec := range []int64{0, -1, 1, FirstSecond, LastSecond, 951782400, 1709164800, 4107542400} {
		check(sec, 0)
		check(sec, 999_999_999)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		check(FirstSecond+rng.Int64N(LastSecond-FirstSecond), rng.IntN(1e9))
	}
	for day := int64(FirstSecond); day < LastSecond; day += 86400 * 13 {
		check(day, 1)
	}
	if got := string(AppendTime(nil, time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC))); got != "9999-12-31T23:59:59.999999999Z" {
		t.Errorf("year 12000 = %s", got)
	}
	if got := string(AppendTime(nil, time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC))); got != "0000-01-01T00:00:00.000000000Z" {
		t.Errorf("year -5 = %s", got)
	}
}

func TestFloatAgainstEncodingJSON(t *testing.T) {
	check := func(f float64) {
		t.Helper()
		want, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(AppendFloat(nil, f)); got != string(want) {
			t.Fatalf("AppendFloat(%g) = %s, want %s", f, got, want)
		}
	}
	for _, f := range []float64{0, math.Copysign(0, -1), 1, -1.5, 1e20, 1e21, 1e-6, 1e-7, 1e-10, math.MaxFloat64, math.SmallestNonzeroFloat64} {
		check(f)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for range 100_000 {
		if f := math.Float64frombits(rng.Uint64()); !math.IsNaN(f) && !math.IsInf(f, 0) {
			check(f)
		}
	}
	for range 200_000 { // decimals, and their neighbours
		f := float64(rng.Int64N(2e9)-1e9) / math.Pow10(rng.IntN(8))
		check(f)
		check(math.Nextafter(f, 0))
		check(math.Nextafter(f, 1e300))
		check(f * 1e6)
	}
	for f, want := range map[float64]string{math.Inf(1): `"+Inf"`, math.Inf(-1): `"-Inf"`} {
		if got := string(AppendFloat(nil, f)); got != want {
			t.Errorf("AppendFloat(%g) = %s, want %s", f, got, want)
		}
	}
	if got := string(AppendFloat(nil, math.NaN())); got != `"NaN"` {
		t.Errorf("AppendFloat(NaN) = %s", got)
	}
}

func TestIntAgainstStrconv(t *testing.T) {
	check := func(n int64) {
		t.Helper()
		if got, want := string(AppendInt([]byte("x"), n)), "x"+strconv.FormatInt(n, 10); got != want {
			t.Fatalf("AppendInt(%d) = %s", n, got)
		}
		if got, want := string(AppendUint(nil, uint64(n))), strconv.FormatUint(uint64(n), 10); got != want {
			t.Fatalf("AppendUint(%d) = %s", uint64(n), got)
		}
	}
	for p := int64(1); p > 0 && p <= 1e18; p *= 10 {
		for d := int64(-2); d <= 2; d++ {
			check(p + d)
			check(-p + d)
		}
	}
	for i := range 64 {
		check(1<<i - 1)
		check(1 << i)
		check(1<<i + 1)
	}
	for n := int64(-2000); n <= 2000; n++ {
		check(n)
	}
	rng := rand.New(rand.NewPCG(5, 6))
	for range 100_000 {
		check(int64(rng.Uint64() >> rng.IntN(64)))
	}
}

func TestLossNotice(t *testing.T) {
	got := string(AppendLossNotice(nil, time.Unix(0, 5), 812, `buffer "full"`))
	want := `{"time":"1970-01-01T00:00:00.000000005Z","level":"WARN","msg":"rollway: 812 lines dropped","attrs":{"reason":"buffer \"full\"","dropped":812}}` + "\n"
	if got != want {
		t.Errorf("got  %swant %s", got, want)
	}
}

// TestDigits8 compares every number that is a part of a second at the
// ends of each lane, and a stride through the rest.
func TestDigits8(t *testing.T) {
	check := func(n uint32) {
		var b [8]byte
		store64(b[:], digits8(n))
		if want := fmt.Sprintf("%08d", n); string(b[:]) != want {
			t.Fatalf("digits8(%d) is %s", n, b)
		}
	}
	for n := uint32(0); n < 10000; n++ {
		check(n)
		check(n * 10000)
		check(n*10000 + 9999)
	}
	for n := uint32(0); n < 1e8; n += 7919 {
		check(n)
	}
}
