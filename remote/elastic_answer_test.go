package remote_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/rollway/rollway/line"
	"github.com/rollway/rollway/remote"
)

// One answer has all that can become of a line, whatever it says of errors as a
// whole, and in whatever order its members come.
func TestElasticPartialFailure(t *testing.T) {
	t.Parallel()
	const items = `"items":[{"create":{"status":201}},` +
		`{"create":{"status":429,"error":{"type":"es_rejected_execution_exception","reason":"queue is full"}}},` +
		`{"create":{"status":400,"error":{"type":"mapper_parsing_exception","reason":"failed to parse","caused_by":{"type":"t","reason":"not a date"}}}},` +
		`{"create":{"status":503,"error":{"type":"unavailable_shards_exception","reason":"no primary"}}},` +
		`{"create":{"status":409,"error":"there"}}]`
	for _, body := range []string{
		`{"errors":true,"took":3,` + items + `}`,
		`{"took":3,` + items + `,"errors":true}`,
		`{` + items + `}`,
		`{"errors":false,` + items + `}`,
		`{"ingest_took":1,"took":3,"errors":true,` + items + `,"more":{"a":[1,{}]}}`,
	} {
		peer := startElasticPeer(t)
		peer.always = status(200, body)
		var told []string
		w := open(t, peer.url(), remote.Options{OnError: func(err error) { told = append(told, err.Error()) }})
		all := numbered(0, 5)
		n, err := w.Write([]byte(all))
		if n != len(numbered(0, 1)) || err == nil || !strings.Contains(err.Error(), "429") || !strings.Contains(err.Error(), "queue is full") {
			t.Errorf("%s: Write = %d, %v", body, n, err)
		}
		settled(t, w, 1, 1)
		peer.always = nil
		write(t, w, all[n:])
		settled(t, w, 5, 4)
		peer.want(t, numbered(1, 2)+numbered(3, 4)) // the others were settled by the first answer
		if d := w.Stats().Dropped; d != (line.Drops{Refused: 1}) {
			t.Errorf("%s: Dropped = %+v", body, d)
		}
		w.Close()
		w.Told()
		if len(told) != 1 || !strings.Contains(told[0], "line 3 of its request: 400 mapper_parsing_exception: failed to parse (not a date)") {
			t.Errorf("%s: OnError was told %q", body, told)
		}
	}
}

// What an answer does not say of a line is not taken for granted.
func TestElasticAnswersThatDoNotConfirm(t *testing.T) {
	t.Parallel()
	const whole = `{"errors":false,"took":3,"items":[{"create":{"status":201}},{"create":{"status":201}},{"create":{"status":201}}]}`
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		n      int // lines that are settled
		told   string
	}{
		{"a login page", status(200, "<html>", "Content-Type", "text/html"), 0, "HTML page"},
		{"nothing", status(200, ""), 0, "unexpected EOF"},
		{"cut after errors", cut(len(whole), "application/json", whole[:15]), 0, "cut short"},
		{"cut in the items", cut(len(whole), "application/json", whole[:60]), 0, "cut short"},
		{"no end", status(200, whole[:len(whole)-1]), 0, "unexpected EOF"},
		{"garbage after the end", status(200, whole+"]"), 0, "not a whole one of _bulk"},
		{"fewer items than lines", status(200, `{"errors":false,"items":[{"create":{"status":201}},{"create":{"status":201}}]}`), 2, "does not speak of all 3 lines"},
		{"more items than lines", status(200, strings.Replace(whole, "[", `[{"create":{"status":201}},`, 1)), 0, "more than 3 items"},
		{"errors and no items", status(200, `{"errors":true,"items":[]}`), 0, "does not speak of all 3 lines"},
		{"items of failures only", status(200, `{"errors":true,"items":[{"create":{"error":{"type":"t","reason":"r"}}}]}`), 0, "the status 0"},
		{"an item with two actions", status(200, `{"errors":false,"items":[{"create":{"status":201},"index":{"status":201}}]}`), 0, "2 actions"},
		{"errors that is no boolean", status(200, `{"errors":"no"}`), 0, "for a value"},
		{"a long item", status(200, `{"errors":false,"items":[{"create":{"status":201,"x":"`+strings.Repeat("x", 2<<20)+`"}}]}`), 0, "longer than"},
	} {
		peer := startElasticPeer(t)
		peer.always = c.answer
		w := open(t, peer.url(), remote.Options{})
		all := numbered(0, 3)
		n, err := w.Write([]byte(all))
		if n != len(numbered(0, c.n)) || err == nil || !strings.Contains(err.Error(), c.told) {
			t.Errorf("%s: Write = %d, %.300v, want %d lines and %q", c.name, n, err, c.n, c.told)
		}
		settled(t, w, c.n, c.n)
		peer.always = nil
		write(t, w, all[n:])
		settled(t, w, 3, 3)
		peer.want(t, all[n:])
	}
}

// These confirm all lines.
func TestElasticAnswersThatConfirm(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"took":3,"errors":false}`,
		`{"errors":false,"items":[]}`, // of an engine that lists failures only
		`{"took":30,"errors":false,"items":[` + strings.TrimSuffix(strings.Repeat(`{"create":{"_index":"logs-shop","_id":"1","_version":1,"result":"created","_shards":{"total":2,"successful":1,"failed":0},"_seq_no":1,"_primary_term":1,"status":201}},`, 3), ",") + "]}\n",
	} {
		peer := startElasticPeer(t)
		peer.always = status(200, body)
		w := open(t, peer.url(), remote.Options{})
		write(t, w, numbered(0, 3))
		settled(t, w, 3, 3)
	}
}

// A full batch of short lines has an answer of some MB where the engine does not
// know filter_path.
func TestElasticLongAnswer(t *testing.T) {
	t.Parallel()
	const lines = 40_000
	peer := startElasticPeer(t)
	peer.always = status(200, `{"took":30,"errors":false,"items":[`+
		strings.TrimSuffix(strings.Repeat(fmt.Sprintf(`{"create":{"_index":"logs-shop","_id":%q,"result":"created","_shards":{"total":2,"successful":1,"failed":0},"status":201}},`, strings.Repeat("x", 40)), lines), ",")+"]}")
	w := open(t, peer.url(), remote.Options{})
	write(t, w, strings.Repeat("{}\n", lines))
	settled(t, w, lines, lines)
}
