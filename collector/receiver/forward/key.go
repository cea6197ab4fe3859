package forward

import (
	"encoding/base64"
	"hash/crc32"
	"strconv"

	"github.com/rollway/rollway/collector/normalize"
)

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
