package wire_test

import (
	"io"
	"math"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rollway/rollway/collector/door/wire"
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
		if f.Num == 4 && (f.Float() != 1.5 || !f.Is(protowire.Fixed64Type)) {
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

func FuzzFields(f *testing.F) {
	f.Add(message())
	f.Fuzz(func(t *testing.T, msg []byte) {
		total := 0
		fields := wire.Over(msg)
		for fields.Next() {
			total += len(fields.Bytes)
		}
		if total > len(msg) {
			t.Fatalf("%d bytes in a message of %d", total, len(msg))
		}
		if n := consume(msg); (n < 0) != (fields.Err() != nil) {
			t.Fatalf("%v, but protowire says %d", fields.Err(), n)
		}
	})
}

// consume walks over a message by protowire's own means.
func consume(msg []byte) int {
	for len(msg) > 0 {
		_, _, n := protowire.ConsumeField(msg)
		if n < 0 {
			return n
		}
		msg = msg[n:]
	}
	return 0
}
