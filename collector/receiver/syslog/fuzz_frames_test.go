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
		a = min(max(a, 0), len(stream))
		b = min(max(b, a), len(stream))
		send := func(how normalize.Text, pieces ...[]byte) *normalize.Batch {
			got, left := newChunk(""), []byte(nil)
			got.Holds = true
			got.Norm = normalize.New(normalize.Limits{MaxPast: -1, MaxFuture: -1, Text: how})
			session := Protocol{MaxMessage: most}.Open()
			for _, piece := range append(pieces, nil) {
				left = append(left, piece...)
				got.Data, got.End = bytes.Clone(left), piece == nil
				n, err := session.Decode(got)
				if err != nil || n < 0 || n > len(left) {
					t.Fatalf("%d of %d bytes taken, %v", n, len(left), err)
				}
				if left = left[n:]; how.Apart && len(left) > (Protocol{}).MaxFrame(most, 0) || got.End && len(left) > 0 {
					t.Fatalf("%d bytes are left, which no frame has", len(left))
				}
			}
			return got.Batch
		}
		got := send(normalize.Text{Apart: true}, stream[:a], stream[a:b], stream[b:])
		if string(got.Lines) != string(want.Batch.Lines) || got.Records != want.Batch.Records || got.RejectedTotal != want.Batch.RejectedTotal+tooLong {
			t.Fatalf("%q cut at %d and %d: %d rejected\n%s\nwant %d rejected\n%s", stream, a, b, got.RejectedTotal, got.Lines, want.Batch.RejectedTotal+tooLong, want.Batch.Lines)
		}
		whole, parts := send(normalize.Text{}, stream), send(normalize.Text{}, stream[:a], stream[a:b], stream[b:])
		if string(whole.Lines) != string(parts.Lines) || whole.RejectedTotal != parts.RejectedTotal {
			t.Fatalf("%q cut at %d and %d, joined: %d rejected\n%s\nwhole: %d rejected\n%s", stream, a, b, parts.RejectedTotal, parts.Lines, whole.RejectedTotal, whole.Lines)
		}
	})
}
