package receivertest

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/receiver/decodetest"
)

// What real clients sent whose protocol has a place for a key, Sentry's in the DSN
// and Splunk's token, is let in by a token with that secret, and is its tenant's;
// by other tokens it is refused, and nothing of it is stored.
func TestTokensOfClients(t *testing.T) {
	for receiver, secret := range map[string]string{"sentry": "public", "splunk": "secret"} {
		files, err := filepath.Glob(filepath.Join("..", receiver, "testdata", "*.request"))
		if err != nil || len(files) < 3 {
			t.Fatalf("%d files of %s, %v", len(files), receiver, err)
		}
		for _, file := range files {
			for _, known := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s known %v", filepath.Base(file), known), func(t *testing.T) {
					t.Parallel()
					name := filepath.Join(t.TempDir(), "tokens.yaml")
					sum := sha256.Sum256([]byte(secret))
					if !known {
						sum = sha256.Sum256([]byte("of another"))
					}
					const reader = "r-0123456789abcdef"
					text := fmt.Sprintf("- {name: w, secret_sha256: %x, tenant: shop}\n- {name: r, secret: %s, may: read}\n", sum, reader)
					if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
					s := Run(t, func(c *config.Config) { c.Access.Tokens = name })
					sendAll(t, s, file, known)
					checkTenant(t, s, reader, known)
				})
			}
		}
	}
}

// sendAll sends the requests of a file, which are let in or not.
func sendAll(t *testing.T, s *Server, file string, known bool) {
	t.Helper()
	for _, req := range decodetest.Requests(t, file) {
		req.URL.Scheme, req.URL.Host, req.RequestURI = "http", strings.TrimPrefix(s.URL, "http://"), ""
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		answer, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if known && resp.StatusCode != http.StatusOK || !known && resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s %s: %d %s", req.Method, req.URL.Path, resp.StatusCode, answer)
		}
	}
}

// checkTenant wants lines, all of the tenant, or none.
func checkTenant(t *testing.T, s *Server, secret string, known bool) {
	t.Helper()
	req, err := http.NewRequest("GET", s.URL+"/api/query", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("query: %s, %v", resp.Status, err)
	}
	lines := string(body)
	if n := strings.Count(lines, "\n"); n != strings.Count(lines, `"attrs":{"tenant":"shop"`) || known != (n > 0) {
		t.Errorf("%d lines:\n%s", n, lines)
	}
}
