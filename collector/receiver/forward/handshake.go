package forward

import (
	"crypto/rand"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/hex"
	"net/http"

	"github.com/rollway/rollway/collector/receiver"
)

// Security asks clients for a secret before their first message, by the
// handshake of the forward protocol, version 1.5: the server sends HELO with a
// nonce, the client a PING with digests, the server a PONG that says whether they
// are right and shows that it has the key as well. No secret crosses the wire.
type Security struct {
	SharedKey string            // required
	Users     map[string]string // passwords by name; empty: the key alone is asked for
	Host      string            // what the server calls itself; must be another than the client's name
}

const (
	nonceBytes = 16
	maxPing    = 4 << 10 // bytes that a stranger may send
)

// handshake is that of one connection.
type handshake struct {
	nonce, salt [nonceBytes]byte
	over        bool // the client is who it says
}

// Greet is the HELO.
func (s *session) Greet(dst []byte) []byte {
	if s.Security == nil {
		return dst
	}
	rand.Read(s.hands.nonce[:])
	rand.Read(s.hands.salt[:])
	dst = append(dst, 0x92)
	dst = appendString(dst, "HELO")
	dst = append(dst, 0x83)
	dst = appendString(dst, "nonce")
	dst = appendBinary(dst, s.hands.nonce[:])
	dst = appendString(dst, "auth")
	dst = appendBinary(dst, s.userSalt())
	dst = appendString(dst, "keepalive")
	return append(dst, 0xc3)
}

// userSalt is what a user's digest begins with; empty: no user is asked for.
func (s *session) userSalt() []byte {
	if len(s.Security.Users) == 0 {
		return nil
	}
	return s.hands.salt[:]
}

// Reasons that a client is told, as Fluentd words them.
const (
	wrongKey  = "shared_key mismatch"
	wrongUser = "username/password mismatch"
)

var errNoPing error = &receiver.Refusal{Code: http.StatusUnauthorized, Text: "the first message of a client must be a PING, as a shared key is asked for here"}

// shake takes the PING and answers it. An error closes the connection.
func (s *session) shake(c *receiver.Chunk) (taken int, err error) {
	n, err := s.walk.value(c.Data)
	switch {
	case err == errShort && len(c.Data) <= maxPing && !c.End:
		return 0, nil
	case err == errShort && c.End && len(c.Data) <= maxPing:
		return len(c.Data), nil // no event was begun
	case err != nil:
		return 0, errNoPing
	}
	s.walk.reset()
	p, ok := readPing(c.Data[:n])
	if !ok {
		return 0, errNoPing
	}
	reason := s.judge(&p)
	c.Reply = s.appendPong(c.Reply, &p, reason)
	if reason != "" {
		return len(c.Data), &receiver.Refusal{Code: http.StatusUnauthorized, Text: "the client is refused: " + reason}
	}
	s.hands.over = true
	return n, nil
}

// ping is what a client says of itself; its parts point into the message.
type ping struct{ host, salt, digest, user, userDigest []byte }

// readPing reads ["PING", host, salt, digest, user, digest].
func readPing(data []byte) (p ping, ok bool) {
	r := reader{b: data}
	if head := r.next(); head.kind != isArray || head.n != 6 {
		return p, false
	}
	var name []byte
	for _, part := range []*[]byte{&name, &p.host, &p.salt, &p.digest, &p.user, &p.userDigest} {
		t := r.next()
		if t.kind != isString && t.kind != isBinary {
			return p, false
		}
		*part = t.data
	}
	return p, string(name) == "PING"
}

// judge returns why a client is refused, or "". How long it takes tells nothing
// about the secrets.
func (s *session) judge(p *ping) string {
	if !same(p.digest, p.salt, p.host, s.hands.nonce[:], []byte(s.Security.SharedKey)) {
		return wrongKey
	}
	if salt := s.userSalt(); salt != nil {
		password, known := s.Security.Users[string(p.user)]
		if !same(p.userDigest, salt, p.user, []byte(password)) || !known {
			return wrongUser
		}
	}
	return ""
}

func (s *session) appendPong(dst []byte, p *ping, reason string) []byte {
	dst = append(dst, 0x95)
	dst = appendString(dst, "PONG")
	proof := ""
	if reason == "" {
		dst = append(dst, 0xc3)
		proof = digest(p.salt, []byte(s.Security.Host), s.hands.nonce[:], []byte(s.Security.SharedKey))
	} else {
		dst = append(dst, 0xc2)
	}
	dst = appendString(dst, reason)
	dst = appendString(dst, s.Security.Host)
	return appendString(dst, proof)
}

// digest is the SHA-512 of parts in hexadecimal.
func digest(parts ...[]byte) string {
	h := sha512.New()
	for _, p := range parts {
		h.Write(p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// same compares in constant time.
func same(got []byte, parts ...[]byte) bool {
	return subtle.ConstantTimeCompare(got, []byte(digest(parts...))) == 1
}

// appendString appends a string of at most 64 KiB.
func appendString(dst []byte, s string) []byte {
	switch {
	case len(s) < 32:
		dst = append(dst, 0xa0|byte(len(s)))
	case len(s) < 256:
		dst = append(dst, 0xd9, byte(len(s)))
	default:
		dst = append(dst, 0xda, byte(len(s)>>8), byte(len(s)))
	}
	return append(dst, s...)
}

// appendBinary appends binary data of at most 255 bytes.
func appendBinary(dst, b []byte) []byte {
	return append(append(dst, 0xc4, byte(len(b))), b...)
}
