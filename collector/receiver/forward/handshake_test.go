package forward

import (
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver"
)

func hashed(parts ...string) string {
	sum := sha512.Sum512([]byte(strings.Join(parts, "")))
	return hex.EncodeToString(sum[:])
}

// greeting takes the nonce and the salt out of a HELO.
func greeting(t *testing.T, helo []byte) (nonce, salt string) {
	t.Helper()
	r := reader{b: helo}
	var got []string
	for len(r.b) > 0 {
		got = append(got, string(r.next().data))
	}
	if len(got) != 9 && len(got) != 8 || got[1] != "HELO" || got[3] != "nonce" || got[5] != "auth" || got[7] != "keepalive" {
		t.Fatalf("HELO is %q", helo)
	}
	return got[4], got[6]
}

// shakeHands connects to s and sends pieces made of the HELO.
func shakeHands(t *testing.T, s *Security, message func(nonce, salt string) string, size int) (c *receiver.Chunk, err error) {
	t.Helper()
	session := Protocol{Security: s}.Open().(*session)
	nonce, salt := greeting(t, session.Greet(nil))
	if len(nonce) != 16 || (salt == "") != (len(s.Users) == 0) {
		t.Fatalf("nonce %q, salt %q", nonce, salt)
	}
	c = &receiver.Chunk{Received: received, Norm: normalize.New(normalize.Limits{MaxPast: -1, MaxFuture: -1}), Batch: new(normalize.Batch)}
	rest := message(nonce, salt)
	var left []byte
	for {
		n := min(size, len(rest))
		left, rest = append(left, rest[:n]...), rest[n:]
		c.Data, c.End = left, n == 0
		taken, err := session.Decode(c)
		left = left[taken:]
		if err != nil || c.End {
			if err == nil && len(left) > 0 {
				t.Errorf("%q is left", left)
			}
			return c, err
		}
	}
}

func TestHandshake(t *testing.T) {
	const key, salt, host = "the shared key", "sa\x00lt", "client.example"
	users := map[string]string{"ann": "pass word", "bob": "b"}
	event := arr(str("app.x"), num(1749988800), hello)
	ping := func(hostName, keySalt, digest, user, userDigest string) string {
		return arr(str("PING"), str(hostName), bin(keySalt), str2(digest), str(user), str2(userDigest))
	}
	right := func(nonce, _ string) string { return ping(host, salt, hashed(salt, host, nonce, key), "", "") }
	as := func(user, password string) func(nonce, authSalt string) string {
		return func(nonce, authSalt string) string {
			return ping(host, salt, hashed(salt, host, nonce, key), user, hashed(authSalt, user, password))
		}
	}
	for _, tt := range []struct {
		name   string
		users  map[string]string
		ping   func(nonce, authSalt string) string
		reason string // "": let in
		none   bool   // there is no PONG
	}{
		{name: "right", ping: right},
		{name: "right, with a user that nobody asks for", ping: as("eve", "x")},
		{name: "wrong key", ping: func(nonce, _ string) string { return ping(host, salt, hashed(salt, host, nonce, "another"), "", "") }, reason: wrongKey},
		{name: "no key", ping: func(nonce, _ string) string { return ping(host, salt, hashed(salt, host, nonce, ""), "", "") }, reason: wrongKey},
		{name: "empty digest", ping: func(string, string) string { return ping(host, salt, "", "", "") }, reason: wrongKey},
		{name: "another nonce", ping: func(string, string) string {
			return ping(host, salt, hashed(salt, host, strings.Repeat("n", 16), key), "", "")
		}, reason: wrongKey},
		{name: "digest in capitals", ping: func(nonce, _ string) string {
			return ping(host, salt, strings.ToUpper(hashed(salt, host, nonce, key)), "", "")
		}, reason: wrongKey},
		{name: "user", users: users, ping: as("ann", "pass word")},
		{name: "another user", users: users, ping: as("bob", "b")},
		{name: "wrong password", users: users, ping: as("ann", "b"), reason: wrongUser},
		{name: "unknown user", users: users, ping: as("eve", ""), reason: wrongUser},
		{name: "no user", users: users, ping: right, reason: wrongUser},
		{name: "user, but the wrong key", users: users, ping: func(_, authSalt string) string {
			return ping(host, salt, hashed("x"), "ann", hashed(authSalt, "ann", "pass word"))
		}, reason: wrongKey},
		{name: "an event at once", ping: func(string, string) string { return "" }, none: true},
		{name: "a PING of five", ping: func(string, string) string { return arr(str("PING"), str("h"), str(""), str(""), str("")) }, none: true},
		{name: "a PONG", ping: func(string, string) string { return arr(str("PONG"), str("h"), str(""), str(""), str(""), str("")) }, none: true},
		{name: "numbers", ping: func(string, string) string { return "\x96\x01\x02\x03\x04\x05\x06" }, none: true},
		{name: "no MessagePack", ping: func(string, string) string { return "\xc1" }, none: true},
		{name: "more than a stranger may send", ping: func(string, string) string {
			return "\x96" + str("PING") + "\xdb\x00\x10\x00\x00" + strings.Repeat("h", 5000)
		}, none: true},
	} {
		for _, size := range []int{1, 50, 1 << 20} {
			var nonce string
			c, err := shakeHands(t, &Security{SharedKey: key, Users: tt.users, Host: "server"}, func(n, authSalt string) string {
				nonce = n
				return tt.ping(n, authSalt) + event
			}, size)
			pong, events := "\x95"+str("PONG")+"\xc3"+str("")+str("server")+str2(hashed(salt, "server", nonce, key)), 1
			switch {
			case tt.none:
				pong, events = "", 0
			case tt.reason != "":
				pong, events = "\x95"+str("PONG")+"\xc2"+str(tt.reason)+str("server")+str(""), 0
			}
			if string(c.Reply) != pong || c.Batch.Records != events || c.Batch.RejectedTotal != 0 || (err == nil) != (events == 1) {
				t.Errorf("%s, %d bytes at a time: %q, %d stored, %d rejected, %v\nwant %q", tt.name, size, c.Reply, c.Batch.Records, c.Batch.RejectedTotal, err, pong)
			}
			if err != nil && (strings.Contains(err.Error(), key) || strings.Contains(fmt.Sprint(err), "pass word")) {
				t.Errorf("%s: a secret is in the error: %v", tt.name, err)
			}
		}
	}
	// One that connects and goes counts for nothing.
	if c, err := shakeHands(t, &Security{SharedKey: key}, func(string, string) string { return "\x96" }, 1); err != nil || c.Batch.RejectedTotal != 0 {
		t.Errorf("%v, %+v", err, c.Batch)
	}
}

// str2 is a string of 32 to 255 bytes as most write it, a shorter one as str.
func str2(s string) string {
	if len(s) < 32 {
		return str(s)
	}
	return "\xd9" + string([]byte{byte(len(s))}) + s
}

// Nonces differ.
func TestGreetings(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		s := Protocol{Security: &Security{SharedKey: "k", Users: map[string]string{"u": "p"}}}.Open().(*session)
		nonce, salt := greeting(t, s.Greet(nil))
		if seen[nonce] || seen[salt] {
			t.Fatal("a nonce came again")
		}
		seen[nonce], seen[salt] = true, true
	}
	if s := (Protocol{}).Open().(*session); len(s.Greet(nil)) > 0 {
		t.Error("a server without a key says something")
	}
}

// A stranger whose PING is longer than it may be is turned away while it still
// sends, not kept in memory until it ends.
func TestStrangerThatGoesOn(t *testing.T) {
	s := Protocol{Security: &Security{SharedKey: "key", Host: "server"}}.Open()
	begun := "\x96" + str("PING") + "\xdb\x00\x10\x00\x00"
	for size, ok := range map[int]bool{maxPing: true, maxPing + 1: false} {
		c := &receiver.Chunk{Data: []byte(begun + strings.Repeat("h", size-len(begun))), Received: received, Norm: normalize.New(normalize.Limits{}), Batch: new(normalize.Batch)}
		if n, err := s.Decode(c); (err == nil) != ok || n != 0 {
			t.Errorf("of %d bytes %d are taken, %v", size, n, err)
		}
	}
}
