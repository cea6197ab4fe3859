package ui_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/ui/uitest"
	"github.com/rollway/rollway/internal/testkit"
)

// withOldError is a story in which one more error has happened for days.
func withOldError() []string {
	lines := story(time.Now())
	for _, age := range []time.Duration{72 * time.Hour, 48 * time.Hour, 30 * time.Minute, 5 * time.Minute} {
		lines = append(lines, fmt.Sprintf(`{"time":%q,"level":"error","service":"mailer","msg":"cannot send","error":{"type":"SMTPError","message":"451 try again later"}}`, time.Now().Add(-age).UTC().Format(time.RFC3339)))
	}
	return lines
}

const probes = "- {name: probes, drop: {where: 'path=/healthz'}}\n"

func rules(t *testing.T, list string) func(*config.Config) {
	c, err := config.Parse("rollway.yaml", []byte("rules:\n"+list))
	testkit.OK(t, err)
	return func(cfg *config.Config) { cfg.Enrich, cfg.Rules = c.Enrich, c.Rules }
}

// walkErrors: which errors there are, what is new, the newest with its stack, and its lines.
func walkErrors(t *testing.T, browser *uitest.Browser) {
	at := started(t)
	send(t, at, withOldError()...)
	tab := open(t, browser, at+"/ui/#/errors")
	tab.Until(`document.querySelectorAll('.error-rows tbody tr').length === 2 && document.querySelector('.chip.new')`)
	if text := tab.Text(".error-rows tbody tr"); !strings.Contains(text, "ReadTimeout") || !strings.Contains(text, "new") || !strings.Contains(text, "payment-api") || !strings.Contains(text, "2.4.1") {
		t.Errorf("the first error is %q", text)
	}
	tab.Click(".choice button text=New since yesterday")
	tab.Until(`document.querySelectorAll('.error-rows tbody tr').length === 1`)
	tab.Key("j")
	tab.Until(`document.querySelector('.event .stack')?.innerText.includes('charge.py')`)
	tab.Key("Escape")
	tab.Until(`!document.querySelector('.event')`)
	tab.Key("j", "Enter")
	tab.Until(`location.hash.startsWith('#/search') && document.querySelectorAll('.row').length > 3 && [...document.querySelectorAll('.row')].every((e) => e.innerText.includes('failed to charge'))`)
	if _, params := hash(tab); !strings.HasPrefix(params.Get("q"), "error.fingerprint=") {
		t.Errorf("the lines are those of %q", params.Get("q"))
	}
}

// walkRelease is the story of a bad release: its first error, what led to it, a trace, and the fix as it goes live.
func walkRelease(t *testing.T, browser *uitest.Browser) {
	at := started(t)
	send(t, at, withOldError()...)
	tab := open(t, browser, at+"/ui/")
	tab.Until(`document.querySelector('.row')`)
	began := time.Now()
	tab.Key("e")
	tab.Until(`document.querySelector('.error-rows tbody tr')?.innerText.includes('ReadTimeout') && document.querySelector('.chip.new')`)
	tab.Key("j")
	tab.Click(".event .choice button text=Trace")
	tab.Until(`document.querySelectorAll('.event .line-button').length >= 3`)
	tab.Click(`.error-rows tbody tr:first-child button[title*="what led to it"]`)
	tab.Until(`document.querySelector('#row-0.sev-error') && !document.querySelector('#row-1.sev-error')`)
	tab.Until(`!document.querySelector('.facets.loading')`) // until then they move
	tab.Click(".facet-value text=WARN")
	tab.Until(`document.querySelectorAll('.row').length === 1 && document.querySelector('.row').innerText.includes('pool is smaller than its workers') && document.querySelector('.row').innerText.includes('release=2.4.1')`)
	t.Logf("the cause is seen after %v, of a machine that does not read", time.Since(began))
	tab.Until(`!document.querySelector('.facets.loading')`) // until then they move
	tab.Click(".facet-value text=WARN")
	wantQuery(t, tab, "service=payment-api")
	tab.Key("l")
	tab.Until(`document.querySelector('.dot.live')`)
	tab.Click(".live-filter")
	tab.Type("2.4.2")
	send(t, at, `{"level":"info","service":"payment-api","msg":"release 2.4.2 starts","release":"2.4.2","pool":16}`, `{"level":"info","service":"gateway","msg":"request received"}`,
		`{"level":"info","service":"payment-api","msg":"charged cus_0001","release":"2.4.2"}`)
	tab.Until(`document.querySelectorAll('.row').length === 2 && document.querySelector('.row-msg').innerText === 'release 2.4.2 starts'`)
}

// walkPipeline: rates while lines come, the ledger, who is turned away, and dead letters that are
// sent again.
func walkPipeline(t *testing.T, browser *uitest.Browser) {
	tokens := filepath.Join(t.TempDir(), "tokens.yaml")
	testkit.OK(t, os.WriteFile(tokens, []byte("- {name: ops, secret: ops-0123456789abcdef, may: [read, operate]}\n- {name: w, secret: writer-0123456789, tenant: shop}\n- {name: busy, secret: busy-0123456789ab, events_per_second: 1}\n"), 0o600))
	cfg := func(c *config.Config) { c.Access.Tokens, c.Limits.MaxDepth = tokens, 3 }
	at := started(t, rules(t, probes), cfg)
	post := func(secret, body string) {
		t.Helper()
		req, err := http.NewRequest(http.MethodPost, at+"/api/logs", strings.NewReader(body))
		testkit.OK(t, err)
		req.Header.Set("Authorization", "Bearer "+secret)
		resp, err := http.DefaultClient.Do(req)
		testkit.OK(t, err)
		resp.Body.Close()
	}
	post("writer-0123456789", `{"msg":"deep","a":{"b":{"c":{"d":"<script>alert(1)</script>"}}}}`)
	post("writer-0123456789", `[{"msg":"x"},{"msg":"y","path":"/healthz"}]`)
	post("wrong-0123456789", `{}`)
	for range 2 {
		post("busy-0123456789ab", "["+strings.Repeat("{},", 99)+"{}]")
	}
	tab := open(t, browser, at+"/ui/#/pipeline")
	tab.Until(`document.querySelector('dialog.login[open] input')`)
	tab.Type("ops-0123456789abcdef")
	tab.Key("Enter")
	tab.Until(`document.querySelector('.flow .stage') && document.querySelector('.good')?.innerText === 'Every event is accounted for'`)
	for _, want := range []string{"/api/logs", "probes drop", "too deep", "unauthorized", "There are no sinks."} {
		if text := tab.Text(".flow"); !strings.Contains(text, want) && !strings.Contains(strings.ReplaceAll(text, "_", " "), want) {
			t.Errorf("%q is not in %q", want, text)
		}
	}
	tab.Eval(`setInterval(() => fetch('/ui/session'), 100000)`, nil)
	tab.Until(`/\d\/s/.test(document.querySelector('.stage-figure').innerText)`)
	tab.Click(".stage button text=Whose?")
	tab.Until(`document.querySelector('.rows tbody')?.innerText.includes('the token is not known here')`)
	tab.Until(`[...document.querySelectorAll('.rows tbody tr')].some((r) => r.innerText.includes('busy') && r.innerText.includes('more was sent than this token may send'))`)
	tab.Click(".choice button text=Dead letters")
	tab.Until(`document.querySelector('.letter .raw')?.innerText.includes('<script>')`)
	tab.Click(".letters input")
	tab.Click("button text=Send 1 again")
	tab.Until(`document.querySelector('.letter .bad')?.innerText.includes('rejected again: too_deep')`)
	tab.Click(".letter button text=Why?")
	tab.Until(`location.hash.startsWith('#/why') && document.querySelector('#why-event').value.includes('deep')`)
	tab.Click("button text=Explain")
	tab.Until(`document.querySelector('.why-answer .notice')?.innerText.includes('too_deep')`)
	// What one has asked is not offered to the next.
	tab.Key("s")
	tab.Click("#q")
	tab.Type("deep")
	tab.Key("Enter")
	tab.Until(`localStorage.getItem('rollway-recent')?.includes('deep')`)
	tab.Click(`button[title="Log out"]`)
	tab.Until(`document.querySelector('dialog.login[open] input') && !localStorage.getItem('rollway-recent')`)
}

// walkWhy: each rule's decision, and the line.
func walkWhy(t *testing.T, browser *uitest.Browser) {
	at := started(t, rules(t, probes+"- {name: mask, redact: {key: user.email}}\n"))
	tab := open(t, browser, at+"/ui/#/why")
	tab.Click("#why-event")
	tab.Type(`{"msg":"paid","user":{"email":"a@b.c"}}`)
	tab.Click("button text=Explain")
	tab.Until(`document.querySelector('.why-event h2')?.innerText === 'stored'`)
	if text := tab.Text(".did-changed:not(:first-child)"); !strings.Contains(text, "mask redact") || !strings.Contains(text, "attrs.user.email a@b.c [REDACTED]") {
		t.Errorf("the rule says %q", text)
	}
	tab.Eval(`location.hash = '#/why?event=' + encodeURIComponent('{"msg":"x","path":"/healthz"}')`, nil)
	tab.Reload()
	tab.Click("button text=Explain")
	tab.Until(`document.querySelector('.why-event h2')?.innerText === 'not stored, by the rule probes'`)
}

// attack is what a page of another port of the same host tries, for which browsers send the cookie:
// to read, to have something done, to log the visitor out or in as somebody else, to frame the page.
const attack = `<!doctype html><iframe name=f></iframe><iframe id=g src="$URL/ui/"></iframe>
<form id=login target=f method=post action="$URL/ui/session"><input name=token value="eve-0123456789abcdef"></form>
<form id=replay target=f method=post enctype=text/plain action="$URL/api/rejected/replay"><input name='{"ids":["x"],"' value='":1}'></form>
<script>
const all = { credentials: 'include' }, told = (p) => p.then((r) => r.type === 'opaque' ? 'sent' : 'read ' + r.status, () => 'refused')
const tries = {
  read: told(fetch('$URL/api/query?q=secret', all)), header: told(fetch('$URL/api/query', { ...all, headers: { 'Rollway-Page': '1' } })),
  blind: told(fetch('$URL/api/query?q=secret', { ...all, mode: 'no-cors' })), logout: told(fetch('$URL/ui/session', { ...all, method: 'DELETE' })),
  explain: told(fetch('$URL/api/explain-event', { ...all, method: 'POST', mode: 'no-cors', body: '{}' })),
  tail: new Promise((done) => { const e = new EventSource('$URL/api/tail?from=0', { withCredentials: true }); e.onmessage = () => done('read'); e.onerror = () => { e.close(); done('refused') } }),
  script: new Promise((done) => { const s = document.createElement('script'); s.src = '$URL/api/query'; s.onload = () => done('loaded'); s.onerror = () => done('refused'); document.head.append(s) }),
  image: new Promise((done) => { const i = new Image(); i.src = '$URL/ui/icon.svg'; i.onload = () => done('loaded'); i.onerror = () => done('refused') }),
}
login.submit()
setTimeout(() => replay.submit(), 300)
Promise.all(Object.entries(tries).map(async ([k, p]) => k + ' ' + await p)).then((list) => setTimeout(() => { window.tried = list.sort() }, 600))
</script>`

// walkAttack has a real browser with a session open a page of another origin of the same site.
func walkAttack(t *testing.T, browser *uitest.Browser) {
	tokens := filepath.Join(t.TempDir(), "tokens.yaml")
	testkit.OK(t, os.WriteFile(tokens, []byte("- {name: ops, secret: ops-0123456789abcdef, may: [read, write, operate]}\n- {name: eve, secret: eve-0123456789abcdef, tenant: eve, may: read}\n"), 0o600))
	at := started(t, func(c *config.Config) { c.Access.Tokens = tokens })
	own := open(t, browser, at+"/ui/#/pipeline")
	own.Until(`document.querySelector('dialog.login[open] input')`)
	own.Type("ops-0123456789abcdef")
	own.Key("Enter")
	own.Until(`document.querySelector('.flow .stage')`)
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, strings.ReplaceAll(attack, "$URL", at))
	}))
	defer evil.Close()
	tab := browser.Open(t, evil.URL)
	tab.Until(`window.tried`)
	var tried []string
	tab.Eval(`window.tried`, &tried)
	if got, want := strings.Join(tried, ", "), "blind sent, explain sent, header refused, image refused, logout refused, read refused, script refused, tail refused"; got != want {
		t.Errorf("the other page: %s\nwant %s", got, want)
	}
	var who struct{ User string }
	own.Eval(`fetch('/ui/session').then((r) => r.json())`, &who)
	if who.User != "ops" {
		t.Errorf("the visitor is now %q", who.User)
	}
	var lines string
	own.Eval(`fetch('/api/query?q=' + encodeURIComponent('logger=audit')).then((r) => r.text())`, &lines)
	if n := strings.Count(lines, "\n"); n != 1 || !strings.Contains(lines, "logged in") {
		t.Errorf("the audit has\n%s", lines)
	}
	if u, err := url.Parse(at); err != nil || !strings.HasPrefix(evil.URL, u.Scheme+"://"+u.Hostname()) {
		t.Errorf("%s and %s are not of one site", at, evil.URL)
	}
}
