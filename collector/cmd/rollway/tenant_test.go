package main

import (
	"bufio"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A token of a tenant follows the tenant's lines from where it has read to, each once, and
// reconciles the tenant's account; that is no account of the journal.
func TestTokenOfATenant(t *testing.T) {
	dir := t.TempDir()
	const a, b = "aaa-0123456789abcdef", "bbb-0123456789abcdef"
	tokens, config := filepath.Join(dir, "tokens.yaml"), filepath.Join(dir, "config.yaml")
	writeFile(t, tokens, "- {name: a, secret: "+a+", tenant: shop}\n- {name: b, secret: "+b+", tenant: bank, may: [write, read]}\n")
	writeFile(t, config, fmt.Sprintf("access: {tokens: %q}\n", tokens))
	data := filepath.Join(dir, "data")
	d := serveDaemon(t, "-config", config, "-data", data)
	post := func(secret, body string) {
		t.Helper()
		req, err := http.NewRequest("POST", d.addr+"/api/logs", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+secret)
		if code, answer := received(t)(http.DefaultClient.Do(req)); code != 200 {
			t.Fatal(code, answer)
		}
	}
	for i := range 4 {
		post(a, `{"msg":"of another"}`)
		post(b, fmt.Sprintf(`{"msg":"own %d"}`, i))
	}
	post(a, strings.Repeat("{\"msg\":\"of another\"}\n", 10))
	post(b, `{"msg":"own 4"}`)
	t.Setenv("ROLLWAY_TOKEN", b)
	tail := exec.CommandContext(t.Context(), "rollway", "tail", "-f", "-o", "json", "-n", "2", "-addr", d.addr)
	out, err := tail.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	start(t, tail)
	lines := bufio.NewReader(out)
	for i := 3; i < 7; i++ {
		line, err := lines.ReadString('\n')
		if err != nil || !strings.Contains(line, fmt.Sprintf(`"msg":"own %d"`, i)) {
			t.Fatalf("line %d: %v, %s", i, err, line)
		}
		if i >= 4 && i < 6 {
			post(a, `{"msg":"of another"}`)
			post(b, fmt.Sprintf(`{"msg":"own %d"}`, i+1))
		}
	}
	cli(t, "", "reconcile", "-addr", d.addr).want(t, 0)
	cli(t, "", "reconcile", data, "-addr", d.addr).want(t, 1, "tenant bank alone", "a token without a tenant")
}
