package wire

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

func TestTranscoder(t *testing.T) {
	var tr Transcoder
	tr.Init()
	text := strings.Repeat("x", 300)
	tr.Reset([]byte(`"a\u00e9\ud800" "` + text + `"`))
	start := tr.Open(3)
	for num := range 2 {
		v, err := tr.JSON.ReadValue()
		if err != nil {
			t.Fatal(err)
		}
		tr.Append(protowire.Number(1+num), tr.Unquoted(v))
	}
	tr.Shut(start)
	msg, err := tr.Finish("pair", nil)
	if err != nil {
		t.Fatal(err)
	}
	f := Over(msg)
	if !f.Next() || f.Num != 3 || len(f.rest) > 0 {
		t.Fatalf("field %d, then %d bytes, %v", f.Num, len(f.rest), f.Err())
	}
	key, value, err := Pair(f.Bytes)
	if err != nil || string(key) != "aé\uFFFD" || string(value) != text {
		t.Errorf("%q = %q, %v", key, value, err)
	}
}

func TestTranscoderFinish(t *testing.T) {
	var tr Transcoder
	tr.Init()
	for _, c := range []struct {
		body string
		err  error
		want string
	}{
		{"1 2", nil, "the body is not a valid thing in JSON at offset 3: there is more behind its end; nothing was stored"},
		{"1", io.EOF, "the body is not a valid thing in JSON at offset 1: unexpected EOF; nothing was stored"},
		{"1 }", nil, "at offset 1: jsontext: invalid character '}'"},
	} {
		tr.Reset([]byte(c.body))
		if _, err := tr.JSON.ReadValue(); err != nil {
			t.Fatal(err)
		}
		if _, err := tr.Finish("thing", c.err); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.body, err, c.want)
		}
	}
}

// Nothing of a body is kept, and no large buffer.
func TestTranscoderRelease(t *testing.T) {
	var tr Transcoder
	tr.Init()
	tr.Reset([]byte("1"))
	tr.Append(1, bytes.Repeat([]byte("x"), keepScratch))
	tr.Raw = make([]byte, 10, keepScratch)
	tr.Release()
	if tr.Out != nil || len(tr.Raw) != 0 || cap(tr.Raw) != keepScratch {
		t.Errorf("%d bytes of a message, %d of %d of scratch", cap(tr.Out), len(tr.Raw), cap(tr.Raw))
	}
	if _, err := tr.JSON.ReadToken(); err != io.EOF {
		t.Errorf("after Release: %v", err)
	}
}
