package collector

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// chunkID is an id as Fluentd sends it.
func chunkID(n byte) string {
	return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{n}, 16)) + "\n"
}

// fluent is a message of entries, each of one text, and more options than chunk.
func fluent(chunk string, zipped bool, options map[string]string, texts ...string) string {
	str := func(s string) string { return "\xda" + string([]byte{byte(len(s) >> 8), byte(len(s))}) + s }
	entries := ""
	for _, text := range texts {
		entries += "\x92\xce\x68\x4e\xb7\x40\x81" + str("log") + str(text)
	}
	if zipped {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		io.WriteString(z, entries)
		z.Close()
		entries = b.String()
		options = map[string]string{"compressed": "gzip"}
	}
	option := string([]byte{0x81 + byte(len(options))})
	for k, v := range options {
		option += str(k) + str(v)
	}
	return "\x93" + str("app") + "\xc5" + str(entries)[1:] + option + str("chunk") + str(chunk)
}

// forward sends messages over one connection to an address and reads as many acks as
// there are ids.
func (r *running) forward(t *testing.T, address int, messages string, ids ...string) {
	t.Helper()
	conn, err := net.Dial("tcp", r.ForwardAddrs()[address].String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Minute))
	io.WriteString(conn, messages)
	want := ""
	for _, id := range ids {
		want += "\x81\xa3ack\xda" + string([]byte{byte(len(id) >> 8), byte(len(id))}) + id
	}
	got := make([]byte, len(want))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != want {
		t.Fatalf("acknowledged by %q, %v, want %q", got, err, want)
	}
}

// A chunk of Fluentd that comes again, also after a restart, at another address of its
// tenant and packed in another way, is acknowledged as the first and stored once. Other
// content, other tenants and ids that are not known to be unique make other chunks.
func TestForwardChunksOnce(t *testing.T) {
	cfg := testConfig(t)
	const address = "tcp://127.0.0.1:0"
	cfg.ListenForward = address + " " + address + "?tenant=a " + address + "?tenant=b " + address + "?tenant=a"
	r := run(t, cfg)
	stored, duplicate := uint64(0), uint64(0)
	count := func(what string, more, again uint64) {
		t.Helper()
		stored, duplicate = stored+more, duplicate+again
		s := r.Stats().Receive
		if s.Stored != stored || s.Duplicate != duplicate || s.Received != s.Stored+s.RejectedTotal()+s.Failed+s.Duplicate || s.RejectedTotal() != 0 {
			t.Errorf("%s: stored %d and duplicate %d, want %d and %d: %+v", what, s.Stored, s.Duplicate, stored, duplicate, s)
		}
	}
	one, two := chunkID(1), chunkID(2)
	r.forward(t, 0, fluent(one, false, nil, "x", "y"), one)
	count("first", 2, 0)
	r.forward(t, 0, fluent(one, false, nil, "x", "y"), one)
	count("again", 0, 2)
	r.forward(t, 0, fluent(one, true, nil, "x", "y"), one)
	count("again, packed", 0, 2)
	r.forward(t, 0, fluent(two, false, nil, "x", "y"), two)
	count("the same lines in another chunk", 2, 0)
	r.forward(t, 0, fluent(one, false, nil, "x", "z"), one)
	count("other lines under the id", 2, 0)
	r.forward(t, 0, fluent(one, false, nil, "x", "y", "z"), one)
	count("more lines under the id", 3, 0)
	r.forward(t, 0, fluent(one, false, nil, "x", "y")+fluent(two, false, nil, "x", "y")+fluent(chunkID(3), false, nil, "q")+fluent(one, false, nil, "x", "y"), one, two, chunkID(3), one)
	count("pipelined", 1, 6)
	r.forward(t, 1, fluent(one, false, nil, "x", "y"), one)
	count("of a tenant", 2, 0)
	r.forward(t, 2, fluent(one, false, nil, "x", "y"), one)
	count("of another tenant", 2, 0)
	r.forward(t, 3, fluent(one, false, nil, "x", "y"), one)
	count("at another address of a tenant", 0, 2)
	for _, id := range []string{"1", "c1", "0123456789abcdef0123456789abcdef", "7b4b3c4e-4f5b-4f0e-8d7b-3c4e4f5b4f0e", strings.Repeat("A", 40)} {
		r.forward(t, 0, fluent(id, false, nil, "x", "y")+fluent(id, false, nil, "x", "y"), id, id)
		count("an id that is not unique: "+id, 4, 0)
	}
	signal := map[string]string{"fluent_signal": "0"}
	r.forward(t, 0, fluent(chunkID(4), false, signal, "x")+fluent(chunkID(4), false, signal, "x"), chunkID(4), chunkID(4))
	count("of Fluent Bit, whose id is a hash", 2, 0)
	lines := stored
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	r = run(t, cfg)
	stored, duplicate = 0, 0
	r.forward(t, 0, fluent(one, false, nil, "x", "y"), one)
	r.forward(t, 1, fluent(one, false, nil, "x", "y"), one)
	count("after a restart", 0, 4)
	if _, _, text := r.do(t, "GET", "/api/query", ""); uint64(strings.Count(text, "\n")) != lines {
		t.Errorf("%d lines are stored, want %d", strings.Count(text, "\n"), lines)
	}
}

// A chunk that comes again when rules have changed is acknowledged and not stored, also
// if they leave out all of it now, or left out all of it at first.
func TestForwardChunksAfterReload(t *testing.T) {
	cfg := withEnrichment(t, "rules: [{drop: {where: msg=x}}]")
	cfg.ListenForward = "tcp://127.0.0.1:0"
	r := run(t, cfg)
	send := func() { r.forward(t, 0, fluent(chunkID(1), false, nil, "x", "y"), chunkID(1)) }
	send()
	for _, rules := range []string{"rules: []", "rules: [{drop: {where: msg=y}}]", "rules: [{drop: {where: tag=app}}]"} {
		changed := withEnrichment(t, rules)
		cfg.Enrich, cfg.Rules = changed.Enrich, changed.Rules
		if err := r.Reload(cfg); err != nil {
			t.Fatal(err)
		}
		send()
	}
	s := r.Stats()
	if s.Journal.Records != 1 || s.Receive.Stored != 1 || s.Receive.Duplicate != s.Journal.DuplicateRecords || s.Journal.Duplicates != 3 ||
		s.Receive.Received != s.Receive.Stored+s.Receive.RejectedTotal()+s.Receive.Failed+s.Receive.Duplicate+s.Receive.DroppedTotal() {
		t.Errorf("%+v", s)
	}
}

// A broken message behind a chunk changes nothing about that: the chunk is known when
// it comes again alone.
func TestForwardChunkBeforeBrokenMessage(t *testing.T) {
	cfg := testConfig(t)
	cfg.ListenForward = "tcp://127.0.0.1:0"
	r := run(t, cfg)
	message := fluent(chunkID(1), false, nil, "x", "y")
	r.forward(t, 0, message+"\xc1", chunkID(1))
	r.forward(t, 0, message, chunkID(1))
	if s := r.Stats().Receive; s.Stored != 2 || s.Duplicate != 2 || s.RejectedTotal() > 1 || s.Received != s.Stored+s.RejectedTotal()+s.Failed+s.Duplicate {
		t.Errorf("%+v", s)
	}
}
