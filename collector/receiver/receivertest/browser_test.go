package receivertest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/ui/uitest"
	"github.com/rollway/rollway/internal/testkit"
)

const (
	pageSecret   = "p0123456789abcdef" // Sentry takes letters and digits
	readerSecret = "r-0123456789abcdef"
)

// browserPage sends by the SDKs of Sentry and OpenTelemetry, by fetch with a header, and as
// the page goes away.
const browserPage = `
import * as Sentry from '@sentry/browser'
import { LoggerProvider, SimpleLogRecordProcessor } from '@opentelemetry/sdk-logs'
import { OTLPLogExporter } from '@opentelemetry/exporter-logs-otlp-http'
const url = '$URL', secret = '$SECRET'
Sentry.init({ dsn: url.replace('://', '://' + secret + '@') + '/42', enableLogs: true })
Sentry.captureException(new Error('sentry event'))
Sentry.logger.warn('sentry log')
Sentry.flush()
const provider = new LoggerProvider({ processors: [new SimpleLogRecordProcessor({ exporter:
  new OTLPLogExporter({ url: url + '/v1/logs', headers: { Authorization: 'Bearer ' + secret } }) })] })
provider.getLogger('shop').emit({ severityNumber: 13, body: 'otel log' })
fetch(url + '/api/logs', { method: 'POST', headers: { 'Content-Type': 'application/json', Authorization: 'Bearer ' + secret }, body: '{"msg":"by fetch"}' })
  .then((r) => r.json()).then((r) => fetch(url + '/api/logs?sentry_key=' + secret, { method: 'POST', body: JSON.stringify({ msg: 'the page read ' + r.accepted }) }))
navigator.sendBeacon(url + '/api/logs?sentry_key=' + secret, new Blob(['{"msg":"by beacon"}'], { type: 'application/json' }))
fetch(url + '/api/query').then(() => 'read', () => 'refused').then((how) =>
  fetch(url + '/api/logs?sentry_key=' + secret, { method: 'POST', body: JSON.stringify({ msg: 'reading was ' + how }) }))
`

var browserLines = []string{"sentry event", "sentry log", "otel log", "by fetch", "the page read 1", "by beacon", "reading was refused"}

// TestBrowser has a page of another origin send from a real browser. A page whose origin no
// token lists stores nothing.
func TestBrowser(t *testing.T) {
	testkit.Nightly(t, testkit.Senders, "it needs a browser, and SDKs from a registry")
	browser := uitest.Start(t)
	pages := map[string]*httptest.Server{}
	var script []byte
	for _, name := range []string{"listed", "other"} {
		pages[name] = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, "<!doctype html><script>%s</script>", script)
		}))
		defer pages[name].Close()
	}
	tokens := filepath.Join(t.TempDir(), "tokens.yaml")
	testkit.OK(t, os.WriteFile(tokens, fmt.Appendf(nil, "- {name: page, secret: %s, tenant: shop, origins: [%q]}\n- {name: r, secret: %s, may: read}\n", pageSecret, pages["listed"].URL, readerSecret), 0o600))
	s := Run(t, func(c *config.Config) { c.Access.Tokens = tokens })
	s.Reader = &http.Client{Transport: bearer(readerSecret)}
	script = bundle(t, strings.NewReplacer("$URL", s.URL, "$SECRET", pageSecret).Replace(browserPage))
	for _, name := range []string{"other", "listed"} {
		browser.Open(t, pages[name].URL)
		if name == "other" {
			Eventually(t, "refusals", func() bool { return refusals(t, s) >= 4 })
			if n := s.Stats().Receive.Stored; n > 0 {
				t.Errorf("%d events of another page are stored", n)
			}
		} else {
			missing := browserLines
			defer func() { t.Logf("not stored are %q", missing) }()
			Eventually(t, "what the page sends", func() bool {
				lines := strings.Join(s.Lines(t), "\n")
				missing = slices.DeleteFunc(slices.Clone(missing), func(text string) bool { return strings.Contains(lines, text) })
				return len(missing) == 0
			})
		}
	}
	lines := strings.Join(s.Lines(t), "\n")
	if n := strings.Count(lines, `"tenant":"shop"`); n != strings.Count(lines, "\n")+1 {
		t.Errorf("%d lines of the tenant:\n%s", n, lines)
	}
}

// bundle makes one script of a module with packages of npm.
func bundle(t *testing.T, module string) []byte {
	t.Helper()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.js"), filepath.Join(dir, "out.js")
	testkit.OK(t, os.WriteFile(in, []byte(module), 0o644))
	Node(t, fmt.Sprintf(`require('esbuild').buildSync({ stdin: { contents: require('fs').readFileSync(%q, 'utf8'), resolveDir: __dirname }, bundle: true, outfile: %q })`, in, out),
		"esbuild@0.28.2", "@sentry/browser@10.78.0", "@opentelemetry/sdk-logs@0.223.0", "@opentelemetry/exporter-logs-otlp-http@0.223.0", "@opentelemetry/api-logs@0.223.0")
	script, err := os.ReadFile(out)
	testkit.OK(t, err)
	return []byte(strings.ReplaceAll(string(script), "</script", `<\/script`))
}

// bearer sends a token with each request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// refusals is how many requests were turned away.
func refusals(t *testing.T, s *Server) (n int) {
	resp, err := s.Reader.Get(s.URL + "/api/clients")
	testkit.OK(t, err)
	defer resp.Body.Close()
	var list struct{ Clients []struct{ Refused int } }
	testkit.OK(t, json.NewDecoder(resp.Body).Decode(&list))
	for _, c := range list.Clients {
		n += c.Refused
	}
	return n
}
