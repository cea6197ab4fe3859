package direct

import (
	"encoding/hex"
	"hash/crc32"
	"math/rand/v2"
	"strconv"
)

// A record is one JSON line:
//
//	{"c":"89abcdef","g":"0012","s":"000000345","p":"…"}
//
// c is the CRC-32C of what follows it, g the producer, s the producer's number
// of the record, p text that differs from record to record.
const (
	recordCRC  = len(`{"c":"`)
	recordBody = recordCRC + 8
	recordG    = recordBody + len(`","g":"`)
	recordS    = recordG + 4 + len(`","s":"`)
	recordText = recordS + 9 + len(`","p":"`)
	recordTail = len(`"}`)
	minRecord  = recordText + recordTail // bytes, without a newline
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// text is what payloads are cut from, so that what was not copied, or copied
// from elsewhere, shows in the checksum.
var text = func() []byte {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	rng := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 1<<20)
	for i := range b {
		b[i] = letters[rng.Uint32()%64]
	}
	return b
}()

// newRecord returns memory for a record of size bytes, its newline included. The
// newline is there, after the end.
func newRecord(size int) []byte {
	b := make([]byte, size)
	b[size-1] = '\n'
	return b[:size-1]
}

// fillRecord makes all of b, minRecord bytes to half a MiB, a record without
// its newline.
func fillRecord(b []byte, producer, number int) {
	copy(b, `{"c":"`)
	copy(b[recordBody:], `","g":"`)
	digits(b[recordG:recordG+4], producer)
	copy(b[recordG+4:], `","s":"`)
	digits(b[recordS:recordS+9], number)
	copy(b[recordS+9:], `","p":"`)
	payload := b[recordText : len(b)-recordTail]
	from := (number*7919 + producer*104729) % (len(text) - len(payload))
	copy(payload, text[from:])
	copy(b[len(b)-recordTail:], `"}`)
	sum := crc32.Checksum(b[recordBody:], castagnoli)
	hex.Encode(b[recordCRC:recordBody], []byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)})
}

func digits(b []byte, n int) {
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
}

// parseRecord reads a record of size bytes, its newline included. ok is false
// for anything that fillRecord has not made.
func parseRecord(size int) func(line []byte) (producer, number int, ok bool) {
	return func(line []byte) (producer, number int, ok bool) {
		if len(line) != size {
			return 0, 0, false
		}
		b := line[:size-1]
		want, err := strconv.ParseUint(string(b[recordCRC:recordBody]), 16, 32)
		if err != nil || crc32.Checksum(b[recordBody:], castagnoli) != uint32(want) {
			return 0, 0, false
		}
		producer, err1 := strconv.Atoi(string(b[recordG : recordG+4]))
		number, err2 := strconv.Atoi(string(b[recordS : recordS+9]))
		return producer, number, err1 == nil && err2 == nil
	}
}
