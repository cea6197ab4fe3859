package receiver

import (
	"cmp"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
		m.asked = func(o StoreOptions) Stored {
			got = o.Durability
			return Stored{Durability: cmp.Or(got, "synced")}
		}
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
	m.failWith(func(b *normalize.Batch) error { return ErrFull })
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
	m.asked = func(o StoreOptions) Stored {
		got = o.Key
		return Stored{}
	}
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
	m.asked = func(o StoreOptions) Stored {
		got = o.Key
		return Stored{}
	}
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

// TestAfter: a request is stored after the one that it names, if that is under way,
// and waits for it no longer than maxAfter.
func TestAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		var order []string
		m.asked = func(o StoreOptions) Stored {
			order = append(order, o.Key)
			return Stored{}
		}
		r := newReceiver(t, m, Options{BodyTimeout: time.Hour})
		post := func(key, after string, body io.Reader) int {
			req := httptest.NewRequest("POST", "/", body)
			if key != "" {
				req.Header["Idempotency-Key"] = []string{key}
			}
			if after != "" {
				req.Header["Idempotency-After"] = []string{after}
			}
			w := httptest.NewRecorder()
			r.ServeHTTP(w, req)
			return w.Code
		}
		line := func() io.Reader { return strings.NewReader(`{"msg":"a"}`) }
		slow := func(key string) (end func()) {
			in, out := io.Pipe()
			go post(key, "", in)
			return func() {
				io.WriteString(out, `{"msg":"a"}`)
				out.Close()
			}
		}

		end := slow("1")
		synctest.Wait()
		go post("3", "2", line()) // before 2 has begun
		synctest.Wait()
		go post("2", "1", line())
		synctest.Wait()
		go post("4", "2", line())
		synctest.Wait()
		go post("other", "", line())
		synctest.Wait()
		end()
		synctest.Wait()
		if got := strings.Join(order, " "); got != "3 other 1 2 4" {
			t.Errorf("stored in the order %s", got)
		}

		end = slow("5")
		synctest.Wait()
		if began := time.Now(); post("6", "5", line()) != 200 || time.Since(began) != maxAfter {
			t.Errorf("waited %v for a request that does not end", time.Since(began))
		}
		end()
		synctest.Wait()
		for _, keys := range [][2]string{{"7", "7"}, {"", "7"}, {"7", "\t"}} {
			if code := post(keys[0], keys[1], line()); code != 400 {
				t.Errorf("%q after %q is answered %d", keys[0], keys[1], code)
			}
		}
		if len(r.pending.ends) != 0 {
			t.Errorf("%d requests seem to be under way", len(r.pending.ends))
		}
	})
}
