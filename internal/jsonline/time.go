package jsonline

import (
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
	dst = AppendSecond(dst, sec)
	return AppendNanosZ(dst, nsec)
}

// AppendSecond appends the first 19 bytes of a time: 2006-01-02T15:04:05. sec
// must lie in the years 0 to 9999.
func AppendSecond(dst []byte, sec int64) []byte {
	days := sec / 86400
	rest := uint32(sec - days*86400)
	if sec < days*86400 {
		days--
		rest = uint32(sec - days*86400)
	}
	year, month, day := dateOf(days)
	var b [19]byte
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
	return append(dst, b[:]...)
}

// AppendNanosZ appends the last 11 bytes of a time: .000000000Z.
func AppendNanosZ(dst []byte, nsec int) []byte {
	n := uint32(nsec)
	hi, lo := n/10000, n%10000 // 5 and 4 digits
	var b [11]byte
	b[0] = '.'
	b[1] = byte('0' + hi/10000)
	hi %= 10000
	put2(b[2:], hi/100)
	put2(b[4:], hi%100)
	put2(b[6:], lo/100)
	put2(b[8:], lo%100)
	b[10] = 'Z'
	return append(dst, b[:]...)
}

// digitPairs holds 00 to 99.
const digitPairs = "00010203040506070809101112131415161718192021222324" +
	"25262728293031323334353637383940414243444546474849" +
	"50515253545556575859606162636465666768697071727374" +
	"75767778798081828384858687888990919293949596979899"

// put2 writes n, which is below 100, as two digits.
func put2(b []byte, n uint32) {
	_ = b[1]
	n = min(n, 99) * 2
	b[0], b[1] = digitPairs[n], digitPairs[n+1]
}

// lastDate holds the date that was last worked out: days since year 0, year,
// month and day in 32, 16, 8 and 8 bits. Times that are logged together are
// mostly of one day.
var lastDate atomic.Uint64

func dateOf(days int64) (year, month, day uint32) {
	const yearZero = 719528 // days from 0000-01-01 to 1970-01-01
	key := uint64(days + yearZero)
	if d := lastDate.Load(); d>>32 == key && d != 0 {
		return uint32(d >> 16 & 0xFFFF), uint32(d >> 8 & 0xFF), uint32(d & 0xFF)
	}
	y, m, d := civil(days)
	lastDate.Store(key<<32 | uint64(y)<<16 | uint64(m)<<8 | uint64(d))
	return uint32(y), uint32(m), uint32(d)
}

// civil turns days since 1970-01-01 into a date of the proleptic Gregorian
// calendar. Source of the arithmetic: Howard Hinnant, "chrono-Compatible
// Low-Level Date Algorithms", civil_from_days.
func civil(days int64) (year, month, day int64) {
	z := days + 719468
	era := z / 146097
	if z < 0 {
		era = (z - 146096) / 146097
	}
	doe := z - era*146097
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	day = doy - (153*mp+2)/5 + 1
	month = mp + 3
	if month > 12 {
		month -= 12
	}
	year = yoe + era*400
	if month <= 2 {
		year++
	}
	return year, month, day
}
