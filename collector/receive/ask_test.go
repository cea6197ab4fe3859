package receive

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/normalize"
)

func TestDurabilityHeader(t *testing.T) {
	for _, tt := range []struct {
		asked    []string
		code     int
		got      string // by the store
		answered string
	}{
		{nil, 200, "", "synced"},
		{[]string{"buffered"}, 200, "buffered", "buffered"},
		{[]string{"synced"}, 200, "synced", "synced"},
		{[]string{"Synced"}, 400, "", ""},
		{[]string{""}, 400, "", ""},
		{[]string{"synced", "buffered"}, 400, "", ""},
	} {
		m := &memory{}
		got := "the store was not called"
		m.failWith(func(b *normalize.Batch) error {
			got = b.Ask.Durability
			if got == "" {
				b.Ask.Durability = "synced"
			}
			return nil
		})
		r := newReceiver(t, m, Options{})
		req := httptest.NewRequest("POST", "/", strings.NewReader(`{"msg":"a"}`))
		req.Header["X-Durability"] = tt.asked
		w := httptest.NewRecorder()
		r.ServeHTTP(w, req)
		if w.Code != tt.code || w.Header().Get("X-Durability") != tt.answered || tt.code == 200 && got != tt.got {
			t.Errorf("%q: %d, store got %q, answer says %q", tt.asked, w.Code, got, w.Header().Get("X-Durability"))
		}
	}
	m := &memory{}
	m.failWith(func(b *normalize.Batch) error { return errFull })
	w := httptest.NewRecorder()
	req := httptest.NewRequest("POST", "/", strings.NewReader(`{"msg":"a"}`))
	req.Header.Set("X-Durability", "synced")
	newReceiver(t, m, Options{}).ServeHTTP(w, req)
	if w.Code != 503 || w.Header().Get("X-Durability") != "" {
		t.Errorf("refused: %d, durability %q", w.Code, w.Header().Get("X-Durability"))
	}
}

func TestIdempotencyKey(t *testing.T) {
	m := &memory{}
	var got string
	m.failWith(func(b *normalize.Batch) error {
		got = b.Ask.Key
		return nil
	})
	r := newReceiver(t, m, Options{})
	post := func(keys ...string) int {
		got = "the store was not called"
		req := httptest.NewRequest("POST", "/", strings.NewReader(`{"msg":"a"}`))
		req.Header["Idempotency-Key"] = keys
		w := httptest.NewRecorder()
		r.ServeHTTP(w, req)
		return w.Code
	}
	long := strings.Repeat("k", 255)
	for _, keys := range [][]string{{"a"}, {`"a b"`}, {long}, {}} {
		want := ""
		if len(keys) == 1 {
			want = keys[0]
		}
		if code := post(keys...); code != 200 || got != want {
			t.Errorf("%q: %d, store got %q", keys, code, got)
		}
	}
	for _, keys := range [][]string{{""}, {long + "k"}, {"a", "a"}, {"\xff"}, {"ü"}, {"a\x00"}} {
		if code := post(keys...); code != 400 || got != "the store was not called" {
			t.Errorf("%q: %d, store got %q", keys, code, got)
		}
	}
}

func TestHashHeader(t *testing.T) {
	m := &memory{}
	var got string
	m.failWith(func(b *normalize.Batch) error {
		got = b.Ask.Key
		return nil
	})
	r := newReceiver(t, m, Options{})
	post := func(body string, header ...string) (int, string) {
		got = "the store was not called"
		req := httptest.NewRequest("POST", "/", strings.NewReader(body))
		for i := 0; i < len(header); i += 2 {
			req.Header.Add(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		r.ServeHTTP(w, req)
		return w.Code, got
	}
	code, first := post(`{"msg":"a"}`, "X-Idempotency", "body")
	if code != 200 || len(first) != len("\x1fbody/")+64 || isKey(first) {
		t.Errorf("%d, the key is %q", code, first)
	}
	if _, key := post(`{"msg":"a"}`, "X-Idempotency", "body"); key != first {
		t.Errorf("the same body has the keys %q and %q", first, key)
	}
	if _, key := post(`{"msg":"a"} `, "X-Idempotency", "body"); key == first {
		t.Error("two bodies have one key")
	}
	if _, key := post(`{"msg":"a"}`, "X-Idempotency", "body", "Idempotency-Key", "k"); key != "k" {
		t.Errorf("the sender's key has become %q", key)
	}
	if _, key := post(`{"msg":"a"}`); key != "" {
		t.Errorf("without the header the key is %q", key)
	}
	for _, values := range [][]string{{""}, {"Body"}, {"event"}, {"body", "body"}} {
		var header []string
		for _, v := range values {
			header = append(header, "X-Idempotency", v)
		}
		if code, key := post(`{"msg":"a"}`, header...); code != 400 || key != "the store was not called" {
			t.Errorf("%q: %d, store got %q", values, code, key)
		}
	}
}
