package jsonline

import (
	"encoding/binary"
	"slices"
	"sync/atomic"
	"time"
)

// TimeLen is the length of a time as AppendTime writes it, for years 0 to 9999.
const TimeLen = len("2006-01-02T15:04:05.000000000Z")

// AppendTime appends t in UTC as RFC 3339 with nine fraction digits and no
// quotes. Years before 0 or after 9999, which RFC 3339 cannot hold, are written
// as the nearest instant that it can.
func AppendTime(dst []byte, t time.Time) []byte {
	return AppendUnix(dst, t.Unix(), t.Nanosecond())
}

// The first and the last second that RFC 3339 can hold.
const (
	FirstSecond = -62167219200 // 0000-01-01T00:00:00Z
	LastSecond  = 253402300799 // 9999-12-31T23:59:59Z
)

// AppendMilli is AppendTime with three fraction digits.
func AppendMilli(dst []byte, t time.Time) []byte {
	dst = AppendTime(dst, t)
	return append(dst[:len(dst)-len("000000Z")], 'Z')
}

// AppendUnix is AppendTime for sec seconds since 1970 and nsec nanoseconds in
// [0, 1e9).
func AppendUnix(dst []byte, sec int64, nsec int) []byte {
	if sec < FirstSecond {
		sec, nsec = FirstSecond, 0
	} else if sec > LastSecond {
		sec, nsec = LastSecond, 999_999_999
	}
	n := len(dst)
	dst = slices.Grow(dst, TimeLen)[:n+TimeLen]
	PutSecond((*[SecondLen]byte)(dst[n:]), sec)
	PutNanosZ((*[NanosLen]byte)(dst[n+SecondLen:]), nsec)
	return dst
}

// A time is the text of its second and the text of its fraction.
const (
	SecondLen = len("2006-01-02T15:04:05")
	NanosLen  = len(".000000000Z")
)

// PutSecond writes the first part of a time. sec must lie in the years 0 to
// 9999.
func PutSecond(b *[SecondLen]byte, sec int64) {
	days, rest := uint64(sec-FirstSecond)/86400, uint32(uint64(sec-FirstSecond)%86400)
	year, month, day := dateOf(days)
	put2(b[0:], year/100)
	put2(b[2:], year%100)
	b[4] = '-'
	put2(b[5:], month)
	b[7] = '-'
	put2(b[8:], day)
	b[10] = 'T'
	put2(b[11:], rest/3600)
	b[13] = ':'
	put2(b[14:], rest/60%60)
	b[16] = ':'
	put2(b[17:], rest%60)
}

// PutNanosZ writes the second part of a time, for nsec in [0, 1e9).
func PutNanosZ(b *[NanosLen]byte, nsec int) {
	n := uint32(nsec)
	b[0] = '.'
	b[1] = byte('0' + n/1e8)
	store64(b[2:10], digits8(n%1e8))
	b[10] = 'Z'
}

// digits8 returns the eight decimal digits of n, which is below 1e8, as ASCII
// bytes, the first one in the lowest byte. It halves numbers of eight, four and
// two digits in lanes of one word, dividing by multiplication: 10486/2^20 is a
// hundredth for numbers below 10000, 103/2^10 a tenth for those below 100.
func digits8(n uint32) uint64 {
	v := uint64(n/10000) | uint64(n%10000)<<32
	q := v * 10486 >> 20 & 0x7f_0000007f
	v = v<<16 - q*(100<<16-1) // q | (v-q*100)<<16
	q = v * 103 >> 10 & 0x000f_000f_000f_000f
	return v<<8 - q*(10<<8-1) | 0x30303030_30303030
}

// pairs holds the digits of 0 to 99, in the order in which they are stored.
var pairs = func() (t [128]uint16) {
	for i := range 100 {
		t[i] = uint16('0'+i/10) | uint16('0'+i%10)<<8
	}
	return t
}()

// put2 writes n, which is below 100, as two digits.
func put2(b []byte, n uint32) {
	binary.LittleEndian.PutUint16(b, pairs[n&127])
}

// lastDates holds the dates that were last worked out: days since year 0, year,
// month and day in 32, 16, 8 and 8 bits, each at the place of its last bits.
// Times that are logged together are mostly of one day, or of a few.
var lastDates [8]atomic.Uint64

// dateOf returns the date that many days after 0000-01-01.
func dateOf(days uint64) (year, month, day uint32) {
	last := &lastDates[days%uint64(len(lastDates))]
	d := last.Load()
	if d>>32 != days || d == 0 {
		y, m, dd := time.Unix(int64(days)*86400+FirstSecond, 0).UTC().Date()
		d = days<<32 | uint64(y)<<16 | uint64(m)<<8 | uint64(dd)
		last.Store(d)
	}
	return uint32(d >> 16 & 0xFFFF), uint32(d >> 8 & 0xFF), uint32(d & 0xFF)
}
