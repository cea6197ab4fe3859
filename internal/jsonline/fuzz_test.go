package jsonline

import (
	"encoding/json"
	"math"
	"strconv"
	"testing"
	"time"
)

// into returns slices to append to: of no room, of just enough, of plenty.
func into(need int) [][]byte {
	roomy := make([]byte, 3, need+64)
	copy(roomy, "abc")
	return [][]byte{nil, []byte("abc")[:3:3], append(make([]byte, 0, 3+need), "abc"...), roomy}
}

func FuzzNumber(f *testing.F) {
	for _, n := range []uint64{0, 9, 10, 99, 100, 1e8 - 1, 1e8, 1<<63 - 1, 1 << 63, 1<<64 - 1, math.Float64bits(0.1), math.Float64bits(1e-6), math.Float64bits(999999999.999999), math.Float64bits(-123456.25), math.Float64bits(97.5312)} {
		f.Add(n)
	}
	f.Fuzz(func(t *testing.T, n uint64) {
		for _, number := range []float64{
			math.Float64frombits(n),
			float64(int64(n)) / 1e6,
			float64(int64(n)%1e15) / 1e6,
			float64(int64(n)%1e12) / 1e3,
		} {
			if math.IsNaN(number) || math.IsInf(number, 0) {
				continue
			}
			want, err := json.Marshal(number)
			if err != nil {
				t.Fatal(err)
			}
			for _, dst := range into(len(want)) {
				before := string(dst)
				if got := string(AppendFloat(dst, number)); got != before+string(want) {
					t.Errorf("AppendFloat(%q, %v) = %s", before, number, got)
				}
			}
		}
		for shift := 0; shift < 64; shift += 7 {
			u := n >> shift
			want, signed := strconv.FormatUint(u, 10), strconv.FormatInt(int64(u), 10)
			for _, dst := range into(len(want)) {
				before := string(dst)
				if got := string(AppendUint(dst, u)); got != before+want {
					t.Errorf("AppendUint(%q, %d) = %s", before, u, got)
				}
				if got := string(AppendInt(dst, int64(u))); got != before+signed {
					t.Errorf("AppendInt(%q, %d) = %s", before, int64(u), got)
				}
			}
		}
	})
}

func FuzzTime(f *testing.F) {
	for _, sec := range []int64{0, -1, FirstSecond, LastSecond, FirstSecond - 1, LastSecond + 1, 951782400, math.MinInt64, math.MaxInt64} {
		f.Add(sec, uint32(999_999_999))
	}
	f.Fuzz(func(t *testing.T, sec int64, nsec uint32) {
		nsec %= 1e9
		for _, s := range []int64{sec, sec % LastSecond} {
			at := time.Unix(s, int64(nsec)).UTC()
			nanos, millis := at.Format("2006-01-02T15:04:05.000000000Z"), at.Format("2006-01-02T15:04:05.000Z")
			switch {
			case s < FirstSecond:
				nanos, millis = "0000-01-01T00:00:00.000000000Z", "0000-01-01T00:00:00.000Z"
			case s > LastSecond:
				nanos, millis = "9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59.999Z"
			}
			for _, dst := range into(TimeLen) {
				before := string(dst)
				if got := string(AppendUnix(dst, s, int(nsec))); got != before+nanos {
					t.Errorf("AppendUnix(%q, %d, %d) = %s, want %s", before, s, nsec, got, nanos)
				}
				if s != sec || sec > -1<<55 && sec < 1<<55 { // time.Time cannot hold more
					if got := string(AppendTime(dst, at)); got != before+nanos {
						t.Errorf("AppendTime(%q, %v) = %s", before, at, got)
					}
					if got := string(AppendMilli(dst, at)); got != before+millis {
						t.Errorf("AppendMilli(%q, %v) = %s, want %s", before, at, got, millis)
					}
				}
			}
		}
	})
}
