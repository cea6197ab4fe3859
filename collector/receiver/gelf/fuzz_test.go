package gelf

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver/decodetest"
)

// FuzzDatagrams sends any message in chunks, in any order and some of them twice: it
// becomes what it becomes in one datagram. Then it sends pieces of it as datagrams of their
// own, some as chunks: at most one event comes of each, and nothing is left in the end.
func FuzzDatagrams(f *testing.F) {
	for _, m := range messages {
		f.Add([]byte(m.message), 30, uint64(1))
	}
	for _, how := range []string{"zlib", "gzip"} {
		f.Add([]byte(packed(f, how, text("packed"))), 7, uint64(2))
	}
	f.Add([]byte("\x1e\x0f12345678\x00\x02{|\x1e\x0f12345678\x01\x02}|\x1e\x0f12345678\x01\x02]|\x1e\x0f12345678\x00\x01{}|{}"), 1, uint64(3))
	f.Fuzz(func(t *testing.T, data []byte, size int, seed uint64) {
		size = min(max(size, 1, len(data)/maxChunks+1), 64<<10)
		p := Protocol{MaxMessage: 2000}
		if len(data) > 0 && !bytes.HasPrefix(data, chunkMagic) {
			want, got := newChunk(string(data)), newTester(p)
			p.DecodePacket(want)
			list := chunksOf(seed, string(data), size)
			list = append(list, list[:len(list)/2]...)
			rand.New(rand.NewPCG(seed, 1)).Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			got.send(a, list...)
			got.end(t)
			if len(data) <= p.MaxMessage && (!bytes.Equal(got.c.Batch.Lines, want.Batch.Lines) || !slices.Equal(got.c.Batch.Rejected, want.Batch.Rejected)) {
				t.Fatalf("%q in %d chunks:\n%s%+v\nat once\n%s%+v", data, len(list), got.c.Batch.Lines, got.c.Batch.Rejected, want.Batch.Lines, want.Batch.Rejected)
			}
		}
		s := newTester(p)
		pieces := strings.Split(string(data), "|")
		for i, d := range pieces {
			before := s.c.Batch.Events() + len(s.messages)
			s.c.Received = received.Add(time.Duration(i) * time.Second)
			s.send([]string{a, b}[seed>>(i%64)&1], d)
			if after := s.c.Batch.Events(); after > before+1 {
				t.Fatalf("%q: %d events after %d", pieces[:i+1], after, before)
			}
		}
		s.end(t)
		if n := s.c.Batch.Events(); n > len(pieces) {
			t.Fatalf("%d events of %q", n, pieces)
		}
		decodetest.CheckLines(t, s.c.Batch)
	})
}

// FuzzFrames sends messages over a connection that is cut anywhere, each ended by NUL or
// by LF: each becomes what it becomes as a datagram, and those that are too long are
// counted one by one.
func FuzzFrames(f *testing.F) {
	for _, m := range messages {
		f.Add([]byte(m.message+"|"+m.message), false, 7, 20)
		f.Add([]byte(m.message+"|x|"+m.message), true, 7, 20)
	}
	f.Add([]byte("a\nb|{}\n|"+strings.Repeat("long", 60)+"|\x00\n\r|9"), false, 1, 2)
	f.Add([]byte("{}|"+strings.Repeat("long", 60)+"|end"), true, 2, 200)
	f.Fuzz(func(t *testing.T, data []byte, lf bool, i, j int) {
		const most = 150
		var sent []byte
		want, tooLong := newChunk(""), 0
		if lf { // by it the framing shows
			data = append([]byte("{}|"), data...)
		}
		first := true
		for _, message := range bytes.Split(data, []byte("|")) {
			message = bytes.ReplaceAll(message, []byte("\x00"), []byte(" "))
			if lf {
				message = bytes.ReplaceAll(message, []byte("\n"), []byte(" "))
			}
			message = bytes.TrimSpace(message)
			if first && !lf { // by it the framing must not show
				message = bytes.ReplaceAll(message, []byte("\n"), []byte(" "))
			}
			first = first && len(message) == 0
			if sent = append(sent, message...); lf {
				sent = append(sent, '\n')
			} else {
				sent = append(sent, 0)
			}
			if len(message) > most {
				tooLong++
				continue
			}
			if len(message) > 0 && (message[0] == 0x78 || bytes.HasPrefix(message, gzipMagic) || bytes.HasPrefix(message, chunkMagic)) {
				return // a datagram would be packed
			}
			want.Data = bytes.Clone(message)
			Protocol{}.DecodePacket(want)
			want.End = false
		}
		i = min(max(i, 0), len(sent))
		j = min(max(i, j), len(sent))
		got := stream(t, Protocol{MaxMessage: most}, normalize.Text{Apart: true}, string(sent), i, j)
		if !bytes.Equal(got.Lines, want.Batch.Lines) || got.RejectedFor(normalize.ReasonTooLarge) != want.Batch.RejectedFor(normalize.ReasonTooLarge)+tooLong || got.RejectedTotal != want.Batch.RejectedTotal+tooLong {
			t.Fatalf("%q cut at %d and %d: %+v\n%s\nwant %d too long, %+v\n%s", sent, i, j, got.Rejected, got.Lines, tooLong, want.Batch.Rejected, want.Batch.Lines)
		}
		whole, parts := stream(t, Protocol{MaxMessage: most}, normalize.Text{}, string(sent)), stream(t, Protocol{MaxMessage: most}, normalize.Text{}, string(sent), i, j)
		if !bytes.Equal(whole.Lines, parts.Lines) || whole.RejectedTotal != parts.RejectedTotal || whole.RejectedTotal != got.RejectedTotal {
			t.Fatalf("%q cut at %d and %d, joined: %+v\n%s\nwhole: %+v\n%s", sent, i, j, parts.Rejected, parts.Lines, whole.Rejected, whole.Lines)
		}
	})
}
