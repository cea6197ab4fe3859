package collector

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/httpfast"
)

// Requests with events are answered in front of net/http, all others on the
// same connection behind it, from where it comes back; tokens, durabilities and refusals are the same.
func TestFastRequests(t *testing.T) {
	if !httpfast.Supported {
		t.Skip("package httpfast is not for this system")
	}
	r := run(t, withTokens(t))
	conn, err := net.Dial("tcp", r.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	from := bufio.NewReader(conn)
	ask := func(method, path, secret, body string) (int, http.Header, string) {
		t.Helper()
		fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: rollway\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", method, path, secret, len(body), body)
		resp, err := http.ReadResponse(from, nil)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, resp.Header, string(b)
	}
	paths := []string{"/api/logs", "/v1/logs", "/api/logs", "/loki/api/v1/push", "/api/7/store/", "/services/collector"}
	for i, path := range paths {
		code, header, body := ask("POST", path, writerSecret, `{"msg":"first"}`)
		if path == "/api/logs" && (code != 200 || header.Get("X-Durability") != "synced" || !strings.HasPrefix(body, `{"accepted":1,"first_offset":`)) {
			t.Errorf("%s: %d %v %s", path, code, header, body)
		}
		if header.Get("Date") == "" {
			t.Errorf("%s: no Date: %v", path, header)
		}
		if got := r.fast.Stats(); got.Requests != uint64(i+1) || got.HandedOver != 0 {
			t.Fatalf("%s: %d %s: %+v after %d requests", path, code, body, got, i+1)
		}
	}
	if code, _, body := ask("GET", "/healthz", "", ""); code != 200 || !strings.Contains(body, "alive") {
		t.Errorf("%d %s", code, body)
	}
	if code, _, body := ask("POST", "/api/logs", writerSecret, `{"msg":"second"}`); code != 200 {
		t.Errorf("%d %s", code, body)
	}
	if got := r.fast.Stats(); got.Requests != uint64(len(paths))+1 || got.HandedOver != 1 || got.TakenBack != 1 {
		t.Errorf("%+v after a request of another kind and one more", got)
	}
	large := `{"msg":"` + strings.Repeat("x", 200<<10) + `"}`
	if code, _, body := ask("POST", "/api/logs", writerSecret, large); code != 200 {
		t.Errorf("%d %s", code, body)
	}
	if code, _, body := ask("POST", "/api/logs", "wrong", `{"msg":"third"}`); code != 401 {
		t.Errorf("%d %s", code, body)
	}
	if got := r.fast.Stats(); got.Requests != uint64(len(paths))+2 || got.HandedOver != 2 || got.TakenBack != 2 {
		t.Errorf("%+v after a long body and one more", got)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if s := r.Stats().Receive; s.Received != s.Stored+s.RejectedTotal()+s.Failed || s.Stored < 3 || s.Requests[http.StatusOK] < 3 {
		t.Errorf("%+v", s)
	}
}
