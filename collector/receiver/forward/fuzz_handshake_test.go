package forward

import (
	"testing"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver"
)

// FuzzHandshake has a client with any name, salt, key, user and password say PING,
// cut anywhere, and send an event after it: it is let in if key and password are
// right; else it is told why, gets no proof of the key and leaves no event. What
// another client sends instead of a PING lets it in never.
func FuzzHandshake(f *testing.F) {
	const key = "the key"
	f.Add("client.example", "sa\x00lt", key, "ann", "pass", true, []byte("\x96\xa4PING\xa1h\xa1s\xa0\xa0\xa0\x93\xa1t\x00\x80"), 9)
	f.Add("", "", key, "", "", false, []byte("\xc1"), 0)
	f.Add("client", "salt", "another", "bob", "", true, []byte("\x92\xa1t\x90"), 40)
	f.Add("client", "salt", key, "eve", "", true, []byte("\xc0\xc0\x96\xa4PONG\x01\x02\x03\x04\x05"), 60)
	f.Fuzz(func(t *testing.T, host, salt, hasKey, user, password string, users bool, raw []byte, cut int) {
		s := &Security{SharedKey: key, Host: "server"}
		if users {
			s.Users = map[string]string{"ann": "pass", "bob": ""}
		}
		client := Protocol{Security: s}.Open().(*session)
		nonce, authSalt := greeting(t, client.Greet(nil))
		ping := arr(str("PING"), str(host), bin(salt), str2(hashed(salt, host, nonce, hasKey)), str(user), str2(hashed(authSalt, user, password)))
		if len(ping) > maxPing {
			return // refused or not by how it arrives
		}
		reason, proof, ok := "", hashed(salt, "server", nonce, key), "\xc3"
		switch expected, known := s.Users[user]; {
		case hasKey != key:
			reason = wrongKey
		case users && (!known || password != expected):
			reason = wrongUser
		}
		if reason != "" {
			proof, ok = "", "\xc2"
		}
		c, err := sendCut(t, client, []byte(ping+arr(str("t"), num(1749988800), hello)), cut)
		records := 0
		if reason == "" {
			records = 1
		}
		if pong := "\x95" + str("PONG") + ok + str(reason) + str("server") + str2(proof); string(c.Reply) != pong {
			t.Fatalf("answered %q, want %q", c.Reply, pong)
		}
		if (err == nil) != (reason == "") || c.Batch.Records != records || c.Batch.RejectedTotal != 0 {
			t.Fatalf("%q: %v, %d events stored, %d rejected", reason, err, c.Batch.Records, c.Batch.RejectedTotal)
		}

		stranger := Protocol{Security: s}.Open().(*session)
		stranger.Greet(nil)
		c, err = sendCut(t, stranger, raw, cut)
		if stranger.hands.over || c.Batch.Records+c.Batch.RejectedTotal > 0 {
			t.Fatalf("%q is let in: %v", raw, err)
		}
		refused := "\x95" + str("PONG") + "\xc2" + str(wrongKey) + str("server") + str("")
		if len(c.Reply) > 0 && (string(c.Reply) != refused || err == nil) {
			t.Fatalf("%q is answered %q, %v", raw, c.Reply, err)
		}
	})
}

// sendCut gives a session data in two pieces and then its end.
func sendCut(t *testing.T, s *session, data []byte, cut int) (c *receiver.Chunk, err error) {
	t.Helper()
	if cut < 0 || cut > len(data) {
		cut = len(data) / 2
	}
	c = &receiver.Chunk{Received: received, Norm: normalize.New(normalize.Limits{MaxPast: -1, MaxFuture: -1}), Batch: new(normalize.Batch)}
	var left []byte
	for _, piece := range [][]byte{data[:cut], data[cut:], nil} {
		left = append(left, piece...)
		c.Data, c.End = left, piece == nil
		taken, err := s.Decode(c)
		if taken < 0 || taken > len(left) {
			t.Fatalf("%d of %d bytes taken", taken, len(left))
		}
		if err != nil {
			return c, err
		}
		left = left[taken:]
	}
	return c, nil
}
