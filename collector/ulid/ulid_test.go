package ulid

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/testkit"
)

// TestText compares with the example of the specification, its greatest value,
// and with arithmetic on big numbers.
func TestText(t *testing.T) {
	text := func(high, low uint64) string { return string(appendText(nil, high, low)) }
	if got := text(1469918176385<<16, 0)[:10]; got != "01ARYZ6S41" {
		t.Errorf("the specification's time is %s", got)
	}
	if got := text(math.MaxUint64, math.MaxUint64); got != "7"+strings.Repeat("Z", 25) {
		t.Errorf("the greatest is %s", got)
	}
	var raw [16]byte
	for i := range uint64(1000) {
		binary.BigEndian.PutUint64(raw[:], i*0x9E3779B97F4A7C15)
		binary.BigEndian.PutUint64(raw[8:], i*0xC2B2AE3D27D4EB4F)
		digits := new(big.Int).SetBytes(raw[:]).Text(32)
		want := strings.Map(func(r rune) rune {
			return rune(alphabet[strings.IndexRune("0123456789abcdefghijklmnopqrstuv", r)])
		}, strings.Repeat("0", Len-len(digits))+digits)
		if got := text(binary.BigEndian.Uint64(raw[:]), binary.BigEndian.Uint64(raw[8:])); got != want {
			t.Fatalf("%x is %s, want %s", raw, got, want)
		}
	}
}

// value reads an identifier back.
func value(t *testing.T, id string) (ms uint64, random *big.Int) {
	t.Helper()
	n := new(big.Int)
	for _, c := range []byte(id) {
		n.Add(n.Lsh(n, 5), big.NewInt(int64(strings.IndexByte(alphabet, c))))
	}
	mask := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 80), big.NewInt(1))
	random = new(big.Int).And(n, mask)
	return n.Rsh(n, 80).Uint64(), random
}

// Within a millisecond the random part counts up by one, as the specification
// has it; another millisecond begins elsewhere.
func TestOneMillisecond(t *testing.T) {
	m, now := new(Source), time.UnixMilli(1469918176385)
	make := func(now time.Time) string { return string(m.Append(nil, now)) }
	firstMs, before := value(t, make(now))
	for range 1000 {
		ms, random := value(t, make(now))
		if ms != firstMs || new(big.Int).Sub(random, before).Cmp(big.NewInt(1)) != 0 {
			t.Fatalf("%d %v follows %d %v", ms, random, firstMs, before)
		}
		before = random
	}
	ms, random := value(t, make(now.Add(time.Millisecond)))
	if distance := new(big.Int).Sub(random, before); ms != firstMs+1 || distance.CmpAbs(big.NewInt(1<<32)) < 0 {
		t.Errorf("the next millisecond begins with %d %v behind %v", ms, random, before)
	}
}

// A number with a carry, and a clock that goes back.
func TestOrderIsKept(t *testing.T) {
	m, now, last := new(Source), time.UnixMilli(5_000_000), ""
	next := func(now time.Time) {
		id := string(m.Append(nil, now))
		if len(id) != Len || id <= last {
			t.Fatalf("%s follows %s", id, last)
		}
		last = id
	}
	next(now)
	m.high, m.low = 0x7FFF, math.MaxUint64 // the greatest to begin with
	next(now)
	next(now.Add(-time.Hour))
	next(time.UnixMilli(-1))
	next(now.Add(time.Hour))
	if ms, _ := value(t, last); ms != 5_000_000+3_600_000 {
		t.Errorf("the clock is not followed: %d", ms)
	}
}

// Many goroutines: all identifiers differ, and each goroutine's rise.
func TestConcurrent(t *testing.T) {
	source, now := new(Source), time.Now()
	lists := make([][]string, 8)
	var wg sync.WaitGroup
	for g := range lists {
		wg.Go(func() {
			for i := range 5000 {
				lists[g] = append(lists[g], string(source.Append(nil, now.Add(time.Duration(i)*time.Microsecond))))
			}
		})
	}
	wg.Wait()
	for _, list := range lists {
		if !slices.IsSorted(list) {
			t.Error("a goroutine's do not rise")
		}
	}
	all := slices.Concat(lists...)
	slices.Sort(all)
	if n := len(slices.Compact(all)); n != 8*5000 {
		t.Errorf("%d of %d differ", n, 8*5000)
	}
}

func TestNoAllocation(t *testing.T) {
	m, buf, now := new(Source), make([]byte, 0, Len), time.Now()
	fewest := testkit.Mallocs(func() {
		for i := range 1000 {
			buf = m.Append(buf[:0], now.Add(time.Duration(i)*time.Millisecond))
		}
	})
	if fewest != 0 {
		t.Errorf("%d allocations for 1000", fewest)
	}
}

func BenchmarkAppend(b *testing.B) {
	var source Source
	b.RunParallel(func(p *testing.PB) {
		buf := make([]byte, 0, Len)
		for p.Next() {
			buf = source.Append(buf[:0], time.Now())
		}
	})
}

func ExampleSource() {
	var m Source
	id := m.Append(nil, time.UnixMilli(1469918176385))
	fmt.Printf("%s and %d characters that nobody can guess\n", id[:10], len(id)-10)
	// Output: 01ARYZ6S41 and 16 characters that nobody can guess
}
