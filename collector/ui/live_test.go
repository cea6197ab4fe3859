package ui_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/ui/uitest"
)

// numbered are lines of a service with numbers in their messages.
func numbered(from, n int) (lines []string) {
	for i := range n {
		lines = append(lines, fmt.Sprintf(`{"level":"INFO","service":"shop","msg":"order %d"}`, from+i))
	}
	return lines
}

func walkLive(t *testing.T, browser *uitest.Browser) {
	at := started(t)
	tab := open(t, browser, at+"/ui/#/live")
	tab.Until(`document.querySelector('.dot.live')`)
	send(t, at, numbered(0, 100)...)
	tab.Until(`[...document.querySelectorAll('.row-msg')].pop()?.innerText === 'order 99'`)
	// What is read stays where it is.
	tab.Wheel(".vlist", -600)
	tab.Until(`document.querySelector('.vlist').scrollTop + innerHeight < document.querySelector('.vlist').scrollHeight`)
	const reading = `(() => { const v = document.querySelector('.vlist').getBoundingClientRect(); const r = [...document.querySelectorAll('.row')].find((e) => e.getBoundingClientRect().y >= v.y); return r.innerText + r.getBoundingClientRect().y })()`
	var before, after string
	tab.Still(reading, &before)
	send(t, at, numbered(100, 312)...)
	tab.Until(`document.querySelector('.new-lines')?.innerText.startsWith('312 new')`)
	if tab.Eval(reading, &after); before != after {
		t.Errorf("what was read moved from %q to %q", before, after)
	}
	tab.Click(".new-lines")
	tab.Until(`[...document.querySelectorAll('.row-msg')].pop()?.innerText === 'order 411'`)
	// A pause, and a filter while typing.
	tab.Click(".toolbar button text=Pause")
	send(t, at, numbered(500, 5)...)
	tab.Until(`document.querySelector('.new-lines')?.innerText.startsWith('5 new')`)
	tab.Click(".toolbar button text=Go on")
	tab.Click(".live-filter")
	tab.Type("ORDER 50")
	tab.Until(`[...document.querySelectorAll('.row-msg')].every((e) => e.innerText.startsWith('order 50')) && document.querySelectorAll('.row').length === 6`)
	send(t, at, numbered(506, 20)...)
	tab.Until(`document.querySelectorAll('.row').length === 10`)
	// Without it, what it has hidden is there.
	for range "ORDER 50" {
		tab.Key("Backspace")
	}
	tab.Until(`document.querySelectorAll('.row').length > 20 && [...document.querySelectorAll('.row-msg')].slice(-17).every((e, i) => e.innerText === 'order ' + (509 + i))`)
}

// walkRestart has the collector restart while lines are followed: none is left out, none is there twice.
func walkRestart(t *testing.T, browser *uitest.Browser) {
	data := filepath.Join(t.TempDir(), "data")
	at, stop := run(t, data)
	tab := open(t, browser, at+"/ui/#/live")
	tab.Until(`document.querySelector('.dot.live')`)
	send(t, at, numbered(0, 10)...)
	tab.Until(`document.querySelectorAll('.row').length === 10`)
	stop()
	tab.Until(`document.querySelector('.dot.away')`)
	run(t, data, func(c *config.Config) { c.Listen = strings.TrimPrefix(at, "http://") })
	send(t, at, numbered(10, 10)...)
	tab.Until(`document.querySelectorAll('.row').length === 20 && document.querySelector('.dot.live')`)
	var texts []string
	tab.Eval(`[...document.querySelectorAll('.row-msg')].map((e) => e.innerText)`, &texts)
	for i, text := range texts {
		if text != fmt.Sprintf("order %d", i) {
			t.Errorf("line %d is %q", i, text)
		}
	}
}

// walkHostile has lines that were made to harm those who read them.
func walkHostile(t *testing.T, browser *uitest.Browser) {
	at := started(t, func(c *config.Config) { c.Limits.MaxFields = 20_000 })
	script := `<script>alert(1)</script><img src=x onerror="alert(2)"><svg onload=alert(3)>`
	object := func(m map[string]any) string {
		text, _ := json.Marshal(m)
		return string(text)
	}
	many := map[string]any{"level": "WARN", "msg": "many fields"}
	for i := range 10000 {
		many[fmt.Sprintf("field_%05d", i)] = i
	}
	for _, line := range []string{
		object(map[string]any{"level": "ERROR", "msg": script, "service": script, script: script, "formula": `=HYPERLINK("http://x")`, "error": map[string]any{"stack": script + "\n" + script}}),
		object(map[string]any{"level": "INFO", "msg": "pay \u202e0001 ot\u202c eur \u2066x\u2069 \x1b[31mred\x07", "id": json.Number("9007199254740993")}),
		object(map[string]any{"level": "INFO", "msg": strings.Repeat("long ", 200_000)}),
		object(many),
	} {
		send(t, at, line)
	}
	tab := open(t, browser, at+"/ui/#/search?cols=service&wrap=1")
	tab.Until(`document.querySelectorAll('.row').length === 4`)
	var size int
	if tab.Eval(`document.querySelector('.vlist').innerHTML.length`, &size); size > 60_000 {
		t.Errorf("four rows are %d characters of the document", size)
	}
	if rows := tab.Text(".vlist"); !strings.Contains(rows, "<script>alert(1)</script>") || strings.ContainsAny(rows, "\u202e\u2066\x1b\x07") || !strings.Contains(rows, "‹202E›") {
		t.Errorf("the rows are %.2000q", rows)
	}
	tab.Key("z")
	tab.Until(`!document.querySelector('.row.wrap')`)
	for i, want := range []string{"many fields", "long long", "‹202E›", "<script>"} {
		before := tab.Worked()
		tab.Click(fmt.Sprintf("#row-%d", i))
		tab.Until(fmt.Sprintf(`document.querySelector('.event-msg')?.innerText.includes(%q)`, want))
		if took := tab.Worked() - before; took > 5*time.Second || took <= 0 {
			t.Errorf("to open %q took %s", want, took)
		}
		if want == "‹202E›" && !strings.Contains(tab.Text(".fields"), "9007199254740993") {
			t.Errorf("a large number is changed: %s", tab.Text(".fields"))
		}
		tab.Click(".event .choice button text=Raw")
		tab.Until(`document.querySelector('.event .raw')`)
		tab.Click(".event .choice button text=Fields")
	}
	tab.Click(`.event button[aria-label^="Only lines with this service"]`)
	tab.Until(`document.querySelectorAll('.row').length === 1`)
	var n int
	if tab.Eval(`document.querySelectorAll('#app script, #app img').length`, &n); n > 0 {
		t.Errorf("%d elements are made of a line's text", n)
	}
	tab.Eval(`location.hash = '#/stats?q=%7C+top+5+formula'`, nil)
	tab.Reload()
	tab.Eval(`void (navigator.clipboard.writeText = async (text) => { window.copied = text })`, nil)
	tab.Click(`button[aria-label="Copy the table as CSV"]`)
	tab.Until(`window.copied === "formula,count\r\n,3\r\n\"'=HYPERLINK(\"\"http://x\"\")\",1\r\n"`)
}
