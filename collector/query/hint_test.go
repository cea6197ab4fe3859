package query

import (
	"fmt"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// hinted returns the hint for a query of a tenant, "" being all, for which the newest lines are looked at for so long.
func hinted(t *testing.T, s *store, limit time.Duration, q, parameters, tenant string) string {
	t.Helper()
	a, err := over(s, Options{ReadAs: func(name string) (string, bool) {
		stored := map[string]string{"hostname": "host", "error.msg": "error.message", "Message": "msg", "level": "level", "rare": "msg"}
		return stored[name], name == "rare"
	}})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("GET", "/api/query?q="+url.QueryEscape(q)+parameters, nil)
	if tenant != "" {
		r = Only(r, tenant)
	}
	req, err := a.parseRequest(r, "q", "from")
	if err != nil {
		t.Fatal(err)
	}
	ctx, out, done, ok := a.start(httptest.NewRecorder(), r, req)
	if !ok {
		t.Fatal("no answer")
	}
	defer done()
	return a.hint(ctx, out, req.query, limit)
}

// A hint comes with an answer without lines, as a header.
func TestHintOverHTTP(t *testing.T) {
	s := newStore(t)
	s.add(t, testLine(1, "INFO", "slow"))
	_, base := serve(t, s, Options{})
	for q, want := range map[string]string{"SLOW": `case matters; of the newest 1 lines 1 match i"SLOW"`, "slow": "", "-slow": ""} {
		for _, parameter := range []string{"limit", "last"} {
			resp, _, err := ask(t, base, "q", q, parameter, "5")
			if got := resp.Header.Get("Rollway-Hint"); err != nil || got != want {
				t.Errorf("%s: %q, %v", q, got, err)
			}
		}
	}
}

func TestHint(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	s.add(t, strings.TrimSpace(paymentLine), testLine(1, "INFO", "Slow answer"))
	for _, c := range []struct{ q, want string }{
		{`custmer_id=cus_123`, "of the newest 2 lines none has the field `custmer_id`; did you mean `customer_id`?"},
		{`level=error CustomerID=cus_123`, "of the newest 2 lines none has the field `CustomerID`; did you mean `customer_id`?"},
		{`status>=500`, "of the newest 2 lines none has the field `status`; did you mean `http.status`?"},
		{`Message~slow`, "of the newest 2 lines none has the field `Message`; `Message` is stored as `msg`"},
		{`hostname=web-1`, "of the newest 2 lines none has the field `hostname`; `hostname` is stored as `host`"},
		{`error.msg=x`, "of the newest 2 lines none has the field `error.msg`; `error.msg` is stored as `error.message`"},
		{`rare=1`, "of the newest 2 lines none has the field `rare`"},
		{`attrs.servce=x`, "of the newest 2 lines none has the field `servce`; did you mean `service`?"},
		{`absent in (1, 2)`, "of the newest 2 lines none has the field `absent`"},
		{"\"a\\tb\"=1", "of the newest 2 lines none has the field \"a\\tb\""},
		{`slow`, `case matters; of the newest 2 lines 1 match i"slow"`},
		{`SLOW w"ANSWER" n=1`, `case matters; of the newest 2 lines 1 match i"SLOW" iw"ANSWER"`},
		{`service=Payment-API or msg=x`, `case matters; of the newest 2 lines 1 match service=i"Payment-API" msg=i"x"`},
		{`region=EU*`, `case matters; of the newest 2 lines 1 match region~i"EU"`},
		{`region in (US, EU-WEST)`, `case matters; of the newest 2 lines 1 match region in (i"US", i"EU-WEST")`},
		{`SLOW level=error`, ``}, {`none`, ``}, {`n=7`, ``}, {`-absent=1 level=fatal`, ``}, {`time>2030-01-01`, ``}, {`i"nothing"`, ``}, {`re"SLOW"`, ``}, {``, ``},
		{`SLOW | stats count()`, `case matters; of the newest 2 lines 1 match i"SLOW"`},
	} {
		if got := hinted(t, s, time.Minute, c.q, "", ""); got != c.want {
			t.Errorf("%s: %q, want %q", c.q, got, c.want)
		}
	}
	if got := hinted(t, s, time.Minute, "SLOW", "&from=1", ""); got != `case matters; of the newest 1 lines 1 match i"SLOW"` {
		t.Errorf("of the last line: %q", got)
	}
	if got := hinted(t, newStore(t), time.Minute, "SLOW absent=1", "", ""); got != "" {
		t.Errorf("without lines: %q", got)
	}
}

// A tenant is told of its own lines alone, and not how many they are.
func TestHintOfTenant(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	for i := range 3 {
		s.add(t, testLine(i, "INFO", "slow"))
		s.add(t, strings.Replace(testLine(i, "INFO", "Fast"), `"n":`, `"tenant":"a","mine":`, 1))
		s.add(t, strings.Replace(testLine(i, "INFO", "fair"), `"n":`, `"tenant":"b","theirs":`, 1))
	}
	for _, c := range []struct{ q, tenant, want string }{
		{"theirs=7", "a", "of your newest lines none has the field `theirs`"},
		{"min=7", "a", "of your newest lines none has the field `min`; did you mean `mine`?"},
		{"their=7", "a", "of your newest lines none has the field `their`"},
		{"their=7", "b", "of your newest lines none has the field `their`; did you mean `theirs`?"},
		{"FAST", "a", `case matters; of your newest lines 3 match i"FAST"`},
		{"FAST", "b", ""}, {"SLOW", "a", ""}, {"their=7", "c", ""}, {"mine=7", "a", ""},
	} {
		if got := hinted(t, s, time.Minute, c.q, "", c.tenant); got != c.want {
			t.Errorf("%s of %s: %q, want %q", c.q, c.tenant, got, c.want)
		}
		req := Only(httptest.NewRequest("GET", "/api/query?q="+c.q, nil), c.tenant)
		w := httptest.NewRecorder()
		a, err := over(s, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if a.ServeQuery(w, req); w.Header().Get("Rollway-Hint") != c.want {
			t.Errorf("%s of %s over HTTP: %v", c.q, c.tenant, w.Header())
		}
	}
}

// A hint is of the newest lines alone, and of so many names.
func TestHintIsBounded(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	s.add(t, `{"time":"2026-05-28T12:40:00.000000000Z","level":"INFO","msg":"OLD","attrs":{"old":1}}`)
	numbered(t, s, hintLines-1, 1000)
	if got := hinted(t, s, time.Minute, "old=2", "", ""); got != "" {
		t.Errorf("all lines: %q", got)
	}
	s.add(t, testLine(1, "INFO", "new"))
	for q, want := range map[string]string{
		"old=2": fmt.Sprintf("of the newest %d lines none has the field `old`", hintLines),
		"Old":   "",
		"NEW":   fmt.Sprintf(`case matters; of the newest %d lines 1 match i"NEW"`, hintLines),
	} {
		if got := hinted(t, s, time.Minute, q, "", ""); got != want {
			t.Errorf("%s: %q, want %q", q, got, want)
		}
	}
	if got := hinted(t, s, -time.Minute, "absent=1", "", ""); got != "" {
		t.Errorf("without time: %q", got)
	}
	h := hint{names: make(map[string]struct{}), fields: []field{resolve("absent")}}
	for i := range 3 * hintNames {
		h.take(fmt.Appendf(nil, `{"attrs":{"k%d":{"%s":%s}}}`, i, strings.Repeat("x", i), strings.Repeat(`{"":`, 1000)+"1"+strings.Repeat("}", 1000)))
	}
	if len(h.names) != hintNames {
		t.Errorf("%d names", len(h.names))
	}
}
