package ui_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/ui/uitest"
	"github.com/rollway/rollway/internal/testkit"
)

var screenshots = flag.String("screenshots", "", "leave pictures of the page in `DIR`")

// looks are what is looked at: the fragment of each URL, and what is there once it is drawn.
var looks = []struct{ name, hash, drawn string }{
	{"search", "#/search?facets=release", `document.querySelectorAll('.row').length > 10 && document.querySelectorAll('.facet').length > 4 && document.querySelector('.plot canvas')`},
	{"event", "#/search?q=level%3E%3Derror", `document.querySelector('.row') && (document.querySelector('.event .stack') || void document.querySelector('#row-2').click())`},
	{"live", "#/live", `document.querySelectorAll('.row').length > 10 && document.querySelector('.dot.live')`},
	{"stats", "#/stats?q=%7C+stats+count()+by+level,+time(auto)", `document.querySelector('.chart canvas')`},
	{"lines", "#/stats?q=took_ms%3D*+%7C+stats+quantile(0.5,+took_ms)+as+p50,+quantile(0.99,+took_ms)+as+p99+by+time(auto)&as=line", `document.querySelector('.chart canvas')`},
	{"bars", "#/stats?q=%7C+top+10+path,+level", `document.querySelector('.bars')`},
	{"patterns", "#/stats?tab=patterns&since=20m", `document.querySelectorAll('.pattern-rows tr').length > 4 && !document.querySelector('.patterns.loading')`},
	{"errors", "#/errors", `document.querySelector('.spark path') && document.querySelectorAll('.error-rows tbody tr').length > 0`},
	{"error", "#/errors", `document.querySelector('.error-rows tbody button') && (document.querySelector('.event .stack') || void document.querySelector('.error-rows tbody button').click())`},
	{"pipeline", "#/pipeline", `document.querySelector('.flow .stage') && /\d\/s/.test(document.querySelector('.stage-figure').innerText)`},
	{"clients", "#/pipeline?tab=clients", `document.querySelector('.rows tbody tr')`},
	{"letters", "#/pipeline?tab=letters", `document.querySelector('.letters li')`},
	{"why", "#/why?event=%7B%22msg%22%3A%22paid%22%2C%22user%22%3A%7B%22email%22%3A%22a%40b.c%22%7D%7D", `document.querySelector('.why-event') || void document.querySelector('.why-ask .primary').click()`},
	{"mistake", "#/search?q=level%3E%3Dloud", `document.querySelector('#q-error')`},
	{"help", "#/search", `document.querySelector('.row') && (document.querySelector('dialog[open]') || void document.querySelector('[aria-label=Keys]').click())`},
	{"range", "#/search", `document.querySelector('.row') && (document.querySelector('.range-popup') || void document.querySelector('#range').click())`},
}

// eachLook opens all looks in windows of a size, and calls look for both themes.
func eachLook(tab *uitest.Tab, at string, width, height int, look func(name string)) {
	tab.Size(width, height)
	for _, l := range looks {
		tab.Dark(false)
		tab.Go("about:blank")
		tab.Go(at + "/ui/" + l.hash)
		for _, theme := range []string{"light", "dark"} {
			tab.Dark(theme == "dark")
			tab.Until(l.drawn)
			tab.Until(`!document.querySelector('.loading')`)
			look(fmt.Sprintf("%s-%s-%d", l.name, theme, width))
		}
	}
}

// walkAxe has axe-core look for what keeps people from using the page.
func walkAxe(t *testing.T, tab *uitest.Tab, at string) {
	testkit.NoRace(t, "it is about documents")
	axe, err := os.ReadFile(filepath.Join(testkit.NPM(t, "axe-core@"+axeVersion), "node_modules", "axe-core", "axe.min.js"))
	testkit.OK(t, err)
	eachLook(tab, at, 1440, 480, func(name string) { // with fewer rows: they are all alike
		tab.Eval("window.axe ? 0 : (() => {"+string(axe)+"\n})()", nil)
		var found []string
		rules := "" // in the other theme colors alone differ
		if strings.Contains(name, "dark") {
			rules = ", runOnly: ['color-contrast']"
		}
		tab.Eval(`axe.run(document, {resultTypes: ['violations']`+rules+`}).then((r) => r.violations.flatMap((v) => v.nodes.map((n) => v.id + ': ' + n.html.slice(0, 160) + ' ' + n.failureSummary.slice(0, 300))))`, &found)
		for _, f := range found {
			t.Errorf("%s: %s", name, f)
		}
	})
}

const axeVersion = "4.14.1"

// TestScreenshots draws all looks, also on a phone, and with -screenshots leaves pictures, for
// people to see and for documentation.
func TestScreenshots(t *testing.T) {
	if *screenshots == "" {
		testkit.Nightly(t, testkit.Bench, "every look in two widths and two themes")
		*screenshots = t.TempDir()
	}
	testkit.OK(t, os.MkdirAll(*screenshots, 0o755))
	at := os.Getenv("ROLLWAY_URL") // a collector with other lines
	if at == "" {
		at = started(t, rules(t, probes))
		send(t, at, append(withOldError(), "no event")...)
	}
	tab := open(t, uitest.Start(t), at+"/ui/")
	for _, width := range []int{1440, 390} {
		eachLook(tab, at, width, 900, func(name string) {
			testkit.OK(t, os.WriteFile(filepath.Join(*screenshots, name+".png"), tab.Screenshot(), 0o644))
		})
	}
}
