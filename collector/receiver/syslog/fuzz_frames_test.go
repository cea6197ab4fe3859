package syslog

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver/decodetest"
)

// FuzzFrames sends messages over a connection in one of the three framings, cut
// anywhere: each becomes the line that it becomes as a datagram, and those that
// are too long are counted one by one.
func FuzzFrames(f *testing.F) {
	for _, b := range decodetest.Recorded(f, "*udp*.request") {
		for framing := range byte(3) {
			f.Add(b, framing, 7, 20)
		}
	}
	f.Add([]byte("a\nb|12 <1>|{\"msg\":\"x\"}|"+strings.Repeat("long", 60)+"|\x00\n\r|9"), byte(0), 1, 2)
	f.Add([]byte("a\nb|12 <1>|"+strings.Repeat("long", 60)+"|end"), byte(2), 1, 200)
	f.Fuzz(func(t *testing.T, data []byte, framing byte, a, b int) {
		const most = 150
		var stream []byte
		want := newChunk("")
		tooLong := 0
		for i, text := range bytes.Split(data, []byte("|")) {
			message := append([]byte("<13>"), text...)
			switch framing % 3 {
			case 0:
				stream = fmt.Appendf(stream, "%d %s", len(message), message)
			case 1:
				message = bytes.ReplaceAll(bytes.ReplaceAll(message, []byte("\n"), []byte(" ")), []byte("\x00"), []byte(" "))
				stream = append(append(stream, message...), '\n')
			case 2:
				message = bytes.ReplaceAll(bytes.ReplaceAll(message, []byte("\x00"), []byte(" ")), []byte("\n<"), []byte("\n>"))
				if i == 0 { // by it the framing shows
					message = bytes.ReplaceAll(message, []byte("\n"), []byte(" "))
				}
				stream = append(append(stream, message...), 0)
			}
			if len(message) > most {
				tooLong++
				continue
			}
			want.Data = bytes.Clone(message)
			Protocol{}.DecodePacket(want)
		}
		got := newChunk("")
		got.Norm = normalize.New(normalize.Limits{MaxPast: -1, MaxFuture: -1, Text: normalize.Text{Apart: true}})
		session := Protocol{MaxMessage: most}.Open()
		a = min(max(a, 0), len(stream))
		b = min(max(b, a), len(stream))
		var left []byte
		for _, piece := range [][]byte{stream[:a], stream[a:b], stream[b:], nil} {
			left = append(left, piece...)
			got.Data, got.End = bytes.Clone(left), piece == nil
			n, err := session.Decode(got)
			if err != nil || n < 0 || n > len(left) {
				t.Fatalf("%d of %d bytes taken, %v", n, len(left), err)
			}
			if left = left[n:]; len(left) > (Protocol{}).MaxFrame(most, 0) {
				t.Fatalf("%d bytes are left, which no frame has", len(left))
			}
		}
		if string(got.Batch.Lines) != string(want.Batch.Lines) || got.Batch.Records != want.Batch.Records || got.Batch.RejectedTotal != want.Batch.RejectedTotal+tooLong || len(left) > 0 {
			t.Fatalf("%q cut at %d and %d: %d rejected, %d bytes left\n%s\nwant %d rejected\n%s", stream, a, b, got.Batch.RejectedTotal, len(left), got.Batch.Lines, want.Batch.RejectedTotal+tooLong, want.Batch.Lines)
		}
	})
}
