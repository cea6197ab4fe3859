package otlp

import (
	"bytes"
	"encoding/binary"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"

	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/decodetest"
)

// packings are what Grpc-Encoding may say in FuzzGRPC, each with how to pack by it.
var packings = []struct {
	name string
	pack func([]byte) []byte
}{
	{"", bytes.Clone}, {"identity", bytes.Clone}, {"compress", bytes.Clone},
	{"gzip", func(b []byte) []byte {
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		z.Write(b)
		z.Close()
		return out.Bytes()
	}},
	{"deflate", func(b []byte) []byte {
		var out bytes.Buffer
		z := zlib.NewWriter(&out)
		z.Write(b)
		z.Close()
		return out.Bytes()
	}},
	{"zstd", func(b []byte) []byte {
		z, _ := zstd.NewWriter(nil)
		return z.EncodeAll(b, nil)
	}},
	{"snappy", func(b []byte) []byte { return snappy.Encode(nil, b) }},
}

// framed is a message of gRPC.
func framed(flag byte, message []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{flag}, uint32(len(message))), message...)
}

// FuzzGRPC sends any body as a call with any coding. Where it is one whole message,
// what is stored, rejected and answered is what the same message comes to over HTTP;
// otherwise nothing is stored and the status says so.
func FuzzGRPC(f *testing.F) {
	message, err := requestOf("a", strings.Repeat("long", 100), "b").MarshalProto()
	if err != nil {
		f.Fatal(err)
	}
	for i, p := range packings {
		whole := framed(1, p.pack(message))
		f.Add(whole, byte(i))
		f.Add(whole[:len(whole)-3], byte(i))
		f.Add(framed(0, message), byte(i))
		f.Add(framed(1, p.pack(bytes.Repeat([]byte{0}, 100_000))), byte(i))
	}
	f.Add(append(framed(0, nil), framed(0, nil)...), byte(0))
	f.Add([]byte("\x02\x00\x00\x00\x00"), byte(0))
	f.Add([]byte("\x00\xff\xff\xff\xff"), byte(0))
	f.Add([]byte("\x00\x00\x00"), byte(0))
	const maxBody = 1 << 15
	limits := func(o *receiver.Options) {
		o.MaxBody, o.MaxUnpacked = maxBody, 1<<16
		o.Limits.MaxEventBytes, o.Limits.MaxEvents, o.Limits.MaxDepth = 300, 50, 10
		o.Limits.MaxPast, o.Limits.MaxFuture = -1, -1
	}
	f.Fuzz(func(t *testing.T, body []byte, coding byte) {
		encoding := packings[int(coding)%len(packings)].name
		s := newServer(t, limits)
		res := decodetest.Send(s.GRPC(GRPC), GRPCPath, string(body), "Content-Type", inGRPC, "Grpc-Encoding", encoding)
		status, h := res.Header().Get(grpcStatus), res.Header()
		if res.Code != 200 || (status == "") != (h[http.TrailerPrefix+grpcStatus] != nil) {
			t.Fatalf("%d %v", res.Code, h)
		}
		stats := s.Stats()
		if status == "" {
			status = h[http.TrailerPrefix+grpcStatus][0]
			answer, partial := res.Body.Bytes(), plogotlp.NewExportResponse()
			if len(answer) < 5 || answer[0] != 0 || int(binary.BigEndian.Uint32(answer[1:])) != len(answer)-5 {
				t.Fatalf("answered %q", answer)
			}
			if err := partial.UnmarshalProto(answer[5:]); err != nil || partial.PartialSuccess().RejectedLogRecords() != int64(stats.RejectedTotal()) {
				t.Fatalf("%d rejected, %v: %q", stats.RejectedTotal(), err, answer)
			}
		}
		if len(body) < 5 || body[0] > 1 || int64(binary.BigEndian.Uint32(body[1:])) != int64(len(body)-5) || encoding == "compress" ||
			body[0] == 1 && (encoding == "" || encoding == "identity" || len(body) == 5) || len(body)-5 > maxBody {
			if status == "0" || len(s.Lines) > 0 || !slices.Contains([]string{"3", "8", "12"}, status) {
				t.Fatalf("status %s, %q for %q in %q", status, s.Lines, body, encoding)
			}
			return
		}
		if body[0] == 0 {
			encoding = ""
			for _, magic := range []string{"\x1f\x8b", "\x28\xb5\x2f\xfd", "\xff\x06\x00\x00sNaPpY"} {
				if strings.HasPrefix(string(body[5:]), magic) {
					return // over HTTP that is packed all the same
				}
			}
		}
		plain := newServer(t, limits)
		code, _, _ := plain.post(inProtobuf, string(body[5:]), "Content-Encoding", encoding)
		other := plain.Stats()
		if !slices.Equal(timeless(s.Lines), timeless(plain.Lines)) || stats.RejectedTotal() != other.RejectedTotal() || status != strconv.Itoa(statusOf(code)) {
			t.Fatalf("%q in %q: status %s, %d rejected, %q; over HTTP %d, %d rejected, %q", body, encoding, status, stats.RejectedTotal(), s.Lines, code, other.RejectedTotal(), plain.Lines)
		}
	})
}

// timeless are lines without their first member, the time.
func timeless(lines []string) (out []string) {
	for _, line := range lines {
		_, rest, _ := strings.Cut(line, ",")
		out = append(out, rest)
	}
	return out
}
