package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/protobuf/encoding/protowire"
)

// keepScratch is the size from which a Transcoder does not keep a buffer.
const keepScratch = 1 << 20

// Transcoder is what turns JSON into the protocol buffers that it stands for, so
// that both are read by the same code. What JSON there is and which fields it
// becomes is its user's affair. A Transcoder is used again and again; its zero
// value is ready after Init.
type Transcoder struct {
	JSON *jsontext.Decoder
	Out  []byte // the message, as far as it is written
	Raw  []byte // scratch; what Unquoted returned last may be in it

	src  bytes.Buffer
	used bool // JSON reads src
}

// Names may come twice, as a decoder of protocol buffers would have it, and bad
// UTF-8 becomes U+FFFD in lines, as it does there.
var jsonOptions = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}

// Init is called once, before anything else. The Transcoder does not move after it.
func (t *Transcoder) Init() { t.JSON = jsontext.NewDecoder(&t.src, jsonOptions...) }

// Reset begins a message that is made of body.
func (t *Transcoder) Reset(body []byte) {
	t.used = true
	t.src = *bytes.NewBuffer(body)
	t.JSON.Reset(&t.src, jsonOptions...)
	t.Out = t.Out[:0]
}

// Release forgets the body, and buffers that have become large.
func (t *Transcoder) Release() {
	if t.used {
		t.src = bytes.Buffer{}
		t.JSON.Reset(&t.src, jsonOptions...)
		t.used = false
	}
	if cap(t.Out) > keepScratch {
		t.Out = nil
	}
	if cap(t.Raw) > keepScratch {
		t.Raw = nil
	}
	t.Out, t.Raw = t.Out[:0], t.Raw[:0]
}

// Finish returns the message, which is valid until Release. err is what reading
// the body has ended with, and what is the name of that. Behind what was read there
// must be nothing.
func (t *Transcoder) Finish(what string, err error) ([]byte, error) {
	if err == nil {
		if _, err = t.JSON.ReadToken(); err == io.EOF {
			return t.Out, nil
		}
		if err == nil {
			err = errors.New("there is more behind its end")
		}
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return nil, fmt.Errorf("the body is not a valid %s in JSON at offset %d: %w; nothing was stored", what, t.JSON.InputOffset(), err)
}

// Unquoted returns the text of a string, valid until the next call and no longer
// than v. Lone surrogates become U+FFFD.
func (t *Transcoder) Unquoted(v jsontext.Value) []byte {
	if bytes.IndexByte(v, '\\') < 0 {
		return v[1 : len(v)-1]
	}
	t.Raw, _ = jsontext.AppendUnquote(t.Raw[:0], v) // the error is about lone surrogates
	return t.Raw
}

// Append appends a field of bytes or text.
func (t *Transcoder) Append(num protowire.Number, v []byte) {
	t.Out = protowire.AppendTag(t.Out, num, protowire.BytesType)
	t.Out = protowire.AppendBytes(t.Out, v)
}

// lengthBytes is how many bytes the length of a message takes up, which is not
// known before it is written: a varint may be longer than it needs to be.
const lengthBytes = 5

// Open begins a field that is a message, and Shut, which gets what it returns,
// ends it.
func (t *Transcoder) Open(num protowire.Number) int {
	t.Out = protowire.AppendTag(t.Out, num, protowire.BytesType)
	t.Out = append(t.Out, 0, 0, 0, 0, 0)
	return len(t.Out)
}

// Shut ends what Open began.
func (t *Transcoder) Shut(start int) {
	n := len(t.Out) - start
	for i := range lengthBytes - 1 {
		t.Out[start-lengthBytes+i] = byte(n>>(7*i)) | 0x80
	}
	t.Out[start-1] = byte(n >> (7 * (lengthBytes - 1)))
}
