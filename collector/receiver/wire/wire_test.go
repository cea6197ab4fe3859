package wire_test

import (
	"bytes"
	"io"
	"math"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rollway/rollway/collector/receiver/wire"
)

func message() []byte {
	b := protowire.AppendTag(nil, 1, protowire.BytesType)
	b = protowire.AppendString(b, "text")
	b = protowire.AppendTag(b, 2, protowire.VarintType)
	b = protowire.AppendVarint(b, math.MaxUint64)
	b = protowire.AppendTag(b, 3, protowire.StartGroupType)
	b = protowire.AppendTag(b, 3, protowire.EndGroupType)
	b = protowire.AppendTag(b, 4, protowire.Fixed64Type)
	b = protowire.AppendFixed64(b, math.Float64bits(1.5))
	b = protowire.AppendTag(b, 5, protowire.Fixed32Type)
	return protowire.AppendFixed32(b, 7)
}

func TestFields(t *testing.T) {
	f := wire.Over(message())
	for i, want := range []struct {
		value uint64
		bytes string
	}{{0, "text"}, {math.MaxUint64, ""}, {0, ""}, {math.Float64bits(1.5), ""}, {7, ""}} {
		if !f.Next() || int(f.Num) != i+1 || f.Value != want.value || string(f.Bytes) != want.bytes {
			t.Fatalf("field %d: %+v", i+1, f)
		}
		if f.Num == 4 && !f.Is(protowire.Fixed64Type) {
			t.Errorf("%+v", f)
		}
	}
	if f.Next() || f.Err() != nil {
		t.Errorf("at the end: %+v", f)
	}
}

func TestCutAnywhere(t *testing.T) {
	whole := message()
	ends := []int{0} // of fields
	for rest := whole; len(rest) > 0; {
		_, _, n := protowire.ConsumeField(rest)
		rest = rest[n:]
		ends = append(ends, len(whole)-len(rest))
	}
	for cut := range whole {
		n := 0
		f := wire.Over(whole[:cut])
		for f.Next() {
			n++
		}
		if slices.Contains(ends, cut) != (f.Err() == nil) || f.Err() != nil && f.Err() != io.ErrUnexpectedEOF {
			t.Errorf("cut at %d: %d fields, %v", cut, n, f.Err())
		}
		if f.Next() {
			t.Errorf("cut at %d: goes on behind its end", cut)
		}
	}
}

// FuzzFields compares with the reference's reader of single fields.
func FuzzFields(f *testing.F) {
	f.Add(message())
	f.Add([]byte{0x08, 0x80, 0x01, 0x12, 0x00, 0x12, 0x7f, 0x00})
	f.Add([]byte{0x07, 0x01, 0x0f, 0x01, 0x0c})
	f.Add(protowire.AppendBytes([]byte{0x0a}, make([]byte, 0x3fff)))
	f.Add(protowire.AppendBytes([]byte{0x0a}, make([]byte, 0x80))[:0x82])
	f.Fuzz(func(t *testing.T, msg []byte) {
		got := wire.Over(msg)
		for rest := msg; ; {
			num, typ, n := protowire.ConsumeTag(rest)
			size := protowire.ConsumeFieldValue(num, typ, rest[max(n, 0):])
			if next := got.Next(); next != (n > 0 && size >= 0) {
				t.Fatalf("%x: Next is %t before %x: %v", msg, next, rest, got.Err())
			}
			if n <= 0 || size < 0 {
				if (got.Err() == nil) != (len(rest) == 0) {
					t.Fatalf("%x: %v before %x", msg, got.Err(), rest)
				}
				return
			}
			value := rest[n : n+size]
			want := wire.Fields{Num: num, Type: typ}
			switch typ {
			case protowire.VarintType:
				want.Value, _ = protowire.ConsumeVarint(value)
			case protowire.Fixed32Type:
				v, _ := protowire.ConsumeFixed32(value)
				want.Value = uint64(v)
			case protowire.Fixed64Type:
				want.Value, _ = protowire.ConsumeFixed64(value)
			case protowire.BytesType:
				want.Bytes, _ = protowire.ConsumeBytes(value)
			}
			if got.Num != want.Num || got.Type != want.Type || got.Value != want.Value || !bytes.Equal(got.Bytes, want.Bytes) {
				t.Fatalf("%x: %+v, want %+v", msg, got, want)
			}
			rest = rest[n+size:]
			if num < 16 && typ == protowire.BytesType && len(want.Bytes) < 128 && n == 1 && size == 1+len(want.Bytes) {
				v, behind := wire.Short(msg[len(msg)-len(rest)-n-size:], byte(num))
				if v == nil || !bytes.Equal(v, want.Bytes) || len(behind) != len(rest) {
					t.Fatalf("%x: Short is %x with %x after it", msg, v, behind)
				}
			}
		}
	})
}

func TestShortLeavesTheRest(t *testing.T) {
	for _, msg := range [][]byte{nil, {0x0a}, {0x0a, 1}, {0x0a, 0x80, 0}, {0x12, 0}, {0x08, 0}} {
		if v, _ := wire.Short(msg, 1); v != nil {
			t.Errorf("%x has %x", msg, v)
		}
	}
}
