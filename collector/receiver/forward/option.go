package forward

import (
	"encoding/base64"
	"hash/crc32"
	"strconv"

	"github.com/rollway/rollway/collector/normalize"
)

// option is what matters of a message's option.
type option struct {
	chunk  []byte // the value as it was sent; nil: no acknowledgement is wanted
	packed []byte // how the entries are compressed; empty: not at all
	id     id
	named  bool // id is that of this message alone
}

// read reads it from r; anything but a map is no option.
func (o *option) read(r *reader) {
	head := r.next()
	if head.kind != isMap {
		r.skip(head)
		return
	}
	fluentBit := false
	for range head.n {
		key := r.next()
		r.skip(key)
		before := r.b
		v := r.next()
		r.skip(v)
		switch string(key.data) {
		case "chunk":
			if v.kind == isString || v.kind == isBinary {
				o.chunk = before[:len(before)-len(r.b)]
				o.named = o.id.parse(v.data)
			}
		case "fluent_signal":
			fluentBit = true
		case "compressed":
			o.packed = v.data
			if string(v.data) == "text" {
				o.packed = nil
			}
		}
	}
	o.named = o.named && !fluentBit
}

// id is the unique id of a message.
type id [16]byte

// parse reads an id from base64, which Fluentd ends with a line break. Anything else
// is not known to be unique: Fluent Bit before 2.0 sends half a hash of the content as
// hexadecimal digits.
func (i *id) parse(text []byte) bool {
	var buf [21]byte
	if len(text) > base64.StdEncoding.EncodedLen(len(buf)) {
		return false
	}
	n, err := base64.StdEncoding.Decode(buf[:], text)
	return err == nil && n == copy(i[:], buf[:])
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// key names a message of content, which b has the events of. The content is in it, so
// that of a client which gives one id to many messages none but equal ones are lost;
// the number of events, so that a message which has become other events, since limits
// have changed, is another one.
func (m *delivery) key(b *normalize.Batch, content []byte) string {
	sum := crc32.Update(crc32.Checksum(m.tag, castagnoli), castagnoli, content)
	key := base64.RawStdEncoding.AppendEncode([]byte("forward/"), m.id[:])
	for _, n := range [...]int{int(sum), len(content), b.Events()} {
		key = strconv.AppendInt(append(key, '/'), int64(n), 36)
	}
	return string(key)
}
