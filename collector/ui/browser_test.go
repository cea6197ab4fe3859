package ui_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/ui/uitest"
)

// TestPage walks through the page in Chromium, as a person would.
func TestPage(t *testing.T) {
	browser := uitest.Start(t)
	at := started(t, rules(t, probes))
	send(t, at, append(story(time.Now()), "no event")...)
	for _, tt := range []struct {
		name string
		walk func(t *testing.T, tab *uitest.Tab, at string)
	}{
		{"Search", walkSearch}, {"Event", walkEvent}, {"Range", walkRange}, {"Errors of an expression", walkMistake},
		{"Completion", walkCompletion}, {"Rows first", walkFirst}, {"Unseen", walkUnseen}, {"Stats", walkStats}, {"Patterns", walkPatterns}, {"Narrow", walkNarrow}, {"Axe", walkAxe},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.walk(t, open(t, browser, at+"/ui/"), at)
		})
	}
	for name, walk := range map[string]func(t *testing.T, browser *uitest.Browser){"Live": walkLive, "Restart": walkRestart, "Errors": walkErrors, "Release": walkRelease, "Pipeline": walkPipeline,
		"Why": walkWhy, "Attack": walkAttack, "Hostile": walkHostile, "Empty": walkEmpty, "Slow": walkSlow, "Stop": walkStop} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			walk(t, browser)
		})
	}
}

// hash is the part of a tab's URL that has the state, with its parameters.
func hash(tab *uitest.Tab) (view string, params url.Values) {
	var fragment string
	tab.Eval("location.hash", &fragment)
	view, query, _ := strings.Cut(strings.TrimPrefix(fragment, "#/"), "?")
	params, _ = url.ParseQuery(query)
	return view, params
}

func wantQuery(t *testing.T, tab *uitest.Tab, q string) {
	t.Helper()
	tab.Until(fmt.Sprintf(`(new URLSearchParams(location.hash.split('?')[1]).get('q') ?? '') === %q`, q))
}

const lineCount = `Number(document.querySelector('.toolbar [role=status] b').innerText.replace(/,/g, ''))`

func walkSearch(t *testing.T, tab *uitest.Tab, _ string) {
	tab.Until(`document.querySelectorAll('.row').length > 20 && document.querySelectorAll('.facet-value').length > 8`)
	const settled = `!document.querySelector('.histogram.loading, .facets.loading') && `
	tab.Until(settled + `document.querySelector('.plot canvas')`)
	var all, some, rest int
	tab.Eval(lineCount, &all)
	tab.Click(".facet-value text=ledger")
	wantQuery(t, tab, "service=ledger")
	tab.Until(settled + `[...document.querySelectorAll('.row-field')].every((e) => e.innerText === 'ledger')`)
	tab.Eval(lineCount, &some)
	tab.Click(".facet-value text=ledger")
	wantQuery(t, tab, "")
	tab.Until(settled + lineCount + fmt.Sprint(" === ", all))
	tab.Click(`button[aria-label="Leave out service ledger"]`)
	wantQuery(t, tab, "service!=ledger")
	tab.Until(settled + `[...document.querySelectorAll('.row-field')].every((e) => e.innerText !== 'ledger')`)
	if tab.Eval(lineCount, &rest); some == 0 || rest == 0 || some+rest != all {
		t.Errorf("%d lines are %d of the ledger and %d of others", all, some, rest)
	}
	tab.Eval("history.back()", nil)
	tab.Until(lineCount + fmt.Sprint(" === ", all))
	// A list that moves too fast to be read has no details in its rows until it rests.
	tab.Eval(`(async () => { for (let i = 0; document.querySelector('.row-key'); i++) { document.querySelector('.vlist').scrollTo(0, i % 2 * 3000); await new Promise(requestAnimationFrame) } })()`, nil)
	tab.Until(`document.querySelectorAll('.row-key').length > document.querySelectorAll('.row').length`)
	// A list of thousands of lines has some dozens in the document, also at its end.
	tab.Key("z")
	tab.Until(`document.querySelector('.row.wrap')`)
	tab.Eval(`document.querySelector('.vlist').scrollTo(0, 1e9)`, nil)
	tab.Until(`document.querySelector('.vlist-space').getBoundingClientRect().height > 300 * 22`)
	tab.Until(`document.querySelectorAll('.row').length > 10 && document.querySelectorAll('.row').length < 200`)
}

func walkEvent(t *testing.T, tab *uitest.Tab, at string) {
	tab.Go(at + "/ui/#/search?q=level%3E%3Derror")
	tab.Reload()
	tab.Until(`document.querySelectorAll('.row.sev-error').length > 5`)
	tab.Key("j", "j", "Enter")
	tab.Until(`document.querySelector('.event .stack pre')?.innerText.includes('ReadTimeout')`)
	var second string
	tab.Eval(`document.querySelector('#row-1 .row-msg').innerText`, &second)
	if got := strings.TrimSpace(tab.Text(".event-msg")); got != second {
		t.Errorf("the line at the side is %q, want %q", got, second)
	}
	tab.Click(".stack summary")
	tab.Until(`!document.querySelector('.event .stack').open`)
	tab.Click(`.event .choice button text=Trace`)
	tab.Until(`document.querySelectorAll('.event .line-button').length >= 3`)
	var times []string
	tab.Eval(`[...document.querySelectorAll('.event .line-button .row-field')].map((e) => e.innerText)`, &times)
	if times[0] != "gateway" {
		t.Errorf("the trace begins in %s, want the gateway", times[0])
	}
	tab.Click(`.event .choice button text=Lines around`)
	tab.Until(`document.querySelectorAll('.event .line-button').length > 20 && document.querySelector('.line-button[aria-current]')`)
	tab.Click(`.event .choice button text=Raw`)
	tab.Until(`document.querySelector('.event .raw')?.innerText.startsWith('{"time":')`)
	// A link shows what is seen.
	tab.Reload()
	tab.Until(`document.querySelector('.event .raw')?.innerText.startsWith('{"time":')`)
	tab.Click(`.event .choice button text=Fields`)
	tab.Click(`.event button[aria-label="Only lines with this release"]`)
	wantQuery(t, tab, `level>=error release="2.4.1"`)
	tab.Until(`document.querySelectorAll('.row.sev-error').length > 5`)
	tab.Key("Escape")
	tab.Until(`!document.querySelector('.event')`)
}

func walkRange(t *testing.T, tab *uitest.Tab, _ string) {
	tab.Click("#range")
	tab.Click(".presets button text=Last 15 minutes")
	tab.Until(`location.hash.includes('since=15m')`)
	tab.Until(`!document.querySelector('.histogram.loading') && document.querySelector('.histogram .u-over')`)
	var box struct{ X, Y, Width, Height float64 }
	tab.Still(`document.querySelector('.histogram .u-over')?.getBoundingClientRect()`, &box)
	tab.Drag(box.X+box.Width*0.25, box.Y+30, box.X+box.Width*0.5, box.Y+30)
	tab.Until(`location.hash.includes('until=')`)
	_, params := hash(tab)
	since, err := time.Parse(time.RFC3339, params.Get("since"))
	until, err2 := time.Parse(time.RFC3339, params.Get("until"))
	if took := until.Sub(since); err != nil || err2 != nil || took < 3*time.Minute || took > 5*time.Minute {
		t.Errorf("a quarter of 15 minutes is %s to %s", params.Get("since"), params.Get("until"))
	}
	tab.Eval("history.back()", nil)
	tab.Until(`location.hash.includes('since=15m') && !location.hash.includes('until=')`)
	tab.Click("#range")
	tab.Click(".range-custom input")
	tab.Type("45m")
	tab.Key("Enter")
	tab.Until(`location.hash.includes('since=45m')`)
}

func walkMistake(t *testing.T, tab *uitest.Tab, _ string) {
	tab.Until(`document.querySelector('.row')`)
	tab.Search("charge level>=loud")
	tab.Until(`document.querySelector('#q-error')?.innerText.includes('expected a level')`)
	if bad := tab.Text(".tok-bad"); bad != "loud" {
		t.Errorf("%q is marked, want what the error is about", bad)
	}
	var under [2]float64
	tab.Eval(`[document.querySelector('.tok-bad').getBoundingClientRect().x, document.querySelector('#q-error span').getBoundingClientRect().x]`, &under)
	if d := under[0] - under[1]; d < -12 || d > 12 {
		t.Errorf("the error begins %v pixels beside its column", d)
	}
}

func walkCompletion(t *testing.T, tab *uitest.Tab, _ string) {
	tab.Until(`document.querySelector('.row')`)
	// What is searched for suggestions has 1.5 s, and on a busy machine more.
	tab.Eval(`void (window.setTimeout = ((real) => (f, ms) => real(f, ms === 1500 || window.held && ms === 120 ? 60000 : ms))(window.setTimeout))`, nil)
	// An answer that does not come is not kept: who types on is answered.
	tab.Eval(`void (window.fetch = ((real) => (...asked) => {
		if (window.refused || !/\/api\/facets\?.*limit=50/.test(asked[0])) return real(...asked)
		window.refused = true
		return Promise.reject(new TypeError('no network'))
	})(window.fetch))`, nil)
	tab.Key("/")
	tab.Type("service=")
	tab.Until(`window.refused`)
	tab.Type("p")
	tab.Until(`[...document.querySelectorAll('.suggestions li')].some((e) => e.innerText.startsWith('payment-api'))`)
	for range "service=p" {
		tab.Key("Backspace")
	}
	tab.Until(`![...document.querySelectorAll('.suggestions li')].some((e) => e.innerText.startsWith('payment-api'))`) // but perhaps what other tabs have asked
	tab.Type("se")
	tab.Until(`document.querySelector('.suggestions li')?.innerText.startsWith('service=')`)
	// What is offered may be older than what is typed.
	tab.Eval(`void (window.held = true)`, nil)
	tab.Type("rv")
	tab.Eval(`void (window.held = false)`, nil)
	tab.Key("Tab")
	tab.Until(`document.querySelector('#q').value === 'service='`)
	tab.Until(`[...document.querySelectorAll('.suggestions li')].some((e) => e.innerText.startsWith('payment-api'))`)
	tab.Type("pay")
	tab.Until(`document.querySelectorAll('.suggestions li').length === 1`)
	tab.Key("Tab")
	tab.Until(`document.querySelector('#q').value === 'service=payment-api'`)
	tab.Key("Enter")
	tab.Until(`location.hash.includes('payment-api')`)
	wantQuery(t, tab, "service=payment-api")
	// Who types on ends what was searched for the text before.
	tab.Eval(`void (window.searches = [], window.fetch = ((real) => (...asked) => /~i"/.test(decodeURIComponent(asked[0])) ? new Promise((_, no) => {
		const { signal } = asked[1]
		searches.push(signal)
		signal.addEventListener('abort', () => no(signal.reason))
	}) : real(...asked))(window.fetch))`, nil)
	tab.Key("/")
	tab.Eval(`document.querySelector('#q').select()`, nil)
	tab.Type("service=ga")
	tab.Until(`searches.length === 1 && !searches[0].aborted`)
	tab.Type("t")
	tab.Until(`searches.length === 2 && searches[0].aborted && !searches[1].aborted`)
}

// walkFirst: the first rows are asked for first, and all else once they are there.
func walkFirst(t *testing.T, tab *uitest.Tab, _ string) {
	tab.Until(`document.querySelector('.row') && !document.querySelector('.facets.loading, .histogram.loading')`)
	tab.Eval(`void (() => {
		window.setTimeout = ((real) => (f, ms) => real(f, ms === 400 ? 60000 : ms))(window.setTimeout) // if lines take long, figures do not wait
		window.asked = []
		const old = document.querySelector('.vlist')
		window.fetch = ((real) => (...what) => {
			const { pathname, searchParams } = new URL(what[0])
			if (pathname !== '/api/fields') asked.push(pathname + ' ' + (searchParams.get('last') ?? '') + (document.querySelector('.vlist') === old ? ' before' : ' after'))
			return real(...what)
		})(window.fetch)
	})()`, nil)
	tab.Search("level>=debug")
	tab.Until(`asked.some((a) => a.startsWith('/api/hits')) && asked.some((a) => a.startsWith('/api/facets'))`)
	var asked []string
	tab.Eval(`asked`, &asked)
	if want := []string{"/api/query 40 before", "/api/query 300 after", "/api/hits  after", "/api/facets  after"}; !slices.Equal(slices.Sorted(slices.Values(asked[1:])), slices.Sorted(slices.Values(want[1:]))) || asked[0] != want[0] {
		t.Errorf("the page asked %q, want %q", asked, want)
	}
}

// hiding makes a page one that nobody sees until look is called, and counts what it asks.
const hiding = `window.unseen = true; window.asks = 0
Object.defineProperty(document, 'hidden', { get: () => unseen })
window.look = (at) => { unseen = !at; document.dispatchEvent(new Event('visibilitychange')) }
window.fetch = ((real) => (...asked) => { asks += asked[0].includes('/api/'); return real(...asked) })(window.fetch)
window.setTimeout = ((real) => (f, ms) => real(f, ms === 2000 ? 1 : ms))(window.setTimeout)` // polls come soon

// walkUnseen: a page that nobody sees asks nothing.
func walkUnseen(t *testing.T, tab *uitest.Tab, at string) {
	tab.Call("Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": hiding}, nil)
	tab.Reload()
	tab.Until(`document.querySelector('#q') && performance.getEntriesByType('resource').some((r) => r.name.includes('/ui/session'))`)
	var asks, later int
	if tab.Still(`asks`, &asks); asks > 0 {
		t.Errorf("a page that nobody has seen asks %d times", asks)
	}
	tab.Eval(`look(true)`, nil)
	tab.Until(`document.querySelectorAll('.row').length > 20 && !document.querySelector('.facets.loading, .histogram.loading')`)
	tab.Eval(`void (asks = 0)`, nil)
	tab.Key("p")
	tab.Until(`asks > 3`)
	tab.Eval(`look(false)`, nil)
	tab.Still(`asks`, &asks)
	if tab.Still(`asks`, &later); later != asks {
		t.Errorf("a page that nobody sees any more asks %d times", later-asks)
	}
	tab.Eval(`look(true)`, nil)
	tab.Until(fmt.Sprintf(`asks > %d`, later))
}

func walkStats(t *testing.T, tab *uitest.Tab, at string) {
	tab.Until(`document.querySelector('.row')`)
	tab.Key("t")
	tab.Click(`.stats .choice button text=Figures`)
	tab.Click(`.examples button text=Lines by level over time`)
	tab.Until(`document.querySelector('.chart canvas') && document.querySelectorAll('.legend li').length === 4`)
	tab.Click(`.choice button text=Table`)
	tab.Until(`!document.querySelector('.chart') && document.querySelectorAll('table.rows tbody tr').length > 20`)
	tab.Click(`.choice button text=Lines`)
	tab.Until(`document.querySelector('.chart canvas')`)
	tab.Search("release=* | top 5 release")
	tab.Until(`document.querySelectorAll('table.bars tbody tr').length === 2`)
	tab.Click(`table.bars button text=2.4.1`)
	tab.Until(`location.hash.startsWith('#/search') && document.querySelector('.row')`)
	wantQuery(t, tab, `release=* release="2.4.1"`)
	// Pipes asked for in Search make a table, too.
	tab.Search("| stats count() by service")
	tab.Until(`location.hash.startsWith('#/stats') && document.querySelectorAll('table.bars tbody tr').length === 3`)
}

func walkPatterns(t *testing.T, tab *uitest.Tab, at string) {
	tab.Go(at + "/ui/#/stats?tab=patterns&since=15m")
	tab.Reload()
	tab.Until(`document.querySelectorAll('.pattern-rows tbody tr').length > 5 && !document.querySelector('.patterns.loading')`)
	tab.Click(`.pattern-rows button[aria-label="Leave out this pattern"]`)
	tab.Until(`location.hash.includes('msg')`)
	tab.Eval("history.back()", nil)
	tab.Until(`!location.hash.includes('msg')`)
	tab.Eval(`[...document.querySelectorAll('.pattern-rows tr')].find((r) => r.innerText.includes('failed to charge')).querySelector('.nowrap button').click()`, nil)
	tab.Until(`location.hash.startsWith('#/search') && document.querySelectorAll('.row.sev-error').length > 5 && !document.querySelector('.row.sev-info')`)
}

func walkNarrow(t *testing.T, tab *uitest.Tab, at string) {
	tab.Size(390, 844)
	for _, view := range []string{"search", "live", "stats", "stats?q=%7C+stats+count()+by+level,+time(auto)"} {
		tab.Go(at + "/ui/#/" + view)
		tab.Reload()
		tab.Until(`document.querySelector('main button, main .row')`)
		var wide int
		if tab.Eval("document.documentElement.scrollWidth - innerWidth", &wide); wide > 0 {
			t.Errorf("%s is %d pixels wider than a phone", view, wide)
		}
	}
}

func walkEmpty(t *testing.T, browser *uitest.Browser) {
	at := started(t)
	tab := open(t, browser, at+"/ui/#/live")
	tab.Until(`document.querySelector('.live .empty code')?.innerText.includes('curl')`)
	tab.Key("s")
	tab.Until("document.querySelector('.search .empty code')?.innerText === `curl -d '{\"level\":\"info\",\"msg\":\"hello\"}' ${location.origin}/api/logs`")
	tab.Eval(`void (navigator.clipboard.writeText = async (text) => { window.copied = text })`, nil)
	tab.Click(`.empty button[aria-label="Copy the command"]`)
	tab.Until(`window.copied?.startsWith('curl -d')`)
	send(t, at, `{"level":"info","msg":"hello"}`)
	tab.Until(`document.querySelector('.row-msg')?.innerText === 'hello'`) // by itself
	// Who looks in the wrong time is told where the lines are.
	send(t, at, `{"time":"2015-07-29T17:41:44Z","msg":"an old line"}`)
	tab.Go(at + "/ui/#/search?q=old&since=15m")
	tab.Reload()
	tab.Click(".empty p button text=2015-07-29")
	tab.Until(`document.querySelector('.row-msg')?.innerText === 'an old line'`)
}
