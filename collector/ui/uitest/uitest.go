// Package uitest has what tests need of a real browser: it starts Chromium, and drives its
// tabs as a person does, by keys and the mouse.
package uitest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/rollway/rollway/internal/testkit"
)

// A Browser is a Chromium that ends with its test.
type Browser struct{ ctx context.Context }

// Start starts Chromium, or skips the test where there is none.
func Start(t testing.TB) *Browser {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(testkit.Program(t, "chromium")), chromedp.NoSandbox, // in a container
		chromedp.Flag("disable-quic", true), chromedp.Flag("hide-scrollbars", false))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		cancel()
		stop()
	})
	testkit.OK(t, chromedp.Do(ctx)) // starts it
	return &Browser{ctx}
}

// patience is how long one call may take on a busy machine.
const patience = 2 * time.Minute

// A Tab is a page of the browser.
type Tab struct {
	t   testing.TB
	ctx context.Context
}

// watch collects what goes wrong in a page before anything else of it runs.
const watch = `window.failures = []
addEventListener('error', (e) => failures.push('error: ' + e.message))
addEventListener('unhandledrejection', (e) => failures.push('rejection: ' + e.reason))
addEventListener('securitypolicyviolation', (e) => failures.push('policy: ' + e.violatedDirective + ' ' + e.blockedURI))
const said = console.error
console.error = (...list) => { failures.push('console: ' + list.join(' ')); said(...list) }
window.alert = () => failures.push('an alert')`

// Open opens a page in a tab of its own, which is closed at the end of the test.
func (b *Browser) Open(t testing.TB, url string) *Tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx)
	tab := &Tab{t, ctx}
	t.Cleanup(cancel)
	tab.Size(1440, 900)
	tab.Call("Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": watch}, nil)
	tab.Go(url)
	return tab
}

// Failures are the errors of the page's scripts, what its policy refused, and alerts.
func (tab *Tab) Failures() (list []string) {
	tab.t.Helper()
	tab.Eval("window.failures ?? []", &list)
	return list
}

// Go leads the tab to a URL and waits until it is loaded.
func (tab *Tab) Go(url string) {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, patience)
	defer cancel()
	testkit.OK(tab.t, chromedp.Do(ctx, chromedp.Navigate(url)))
}

// Call calls a method of the DevTools protocol.
func (tab *Tab) Call(method string, params, result any) {
	tab.t.Helper()
	err := chromedp.Do(tab.ctx, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return target.Call(ctx, method, params, result)
	}))
	if err != nil && strings.Contains(err.Error(), "target navigated") { // while the page loads anew
		tab.Call(method, params, result)
	} else if err != nil {
		tab.t.Fatalf("%s: %v", method, err)
	}
}

// Eval evaluates an expression in the page, awaits it if it is a promise, and stores it in out.
func (tab *Tab) Eval(expression string, out any) {
	tab.t.Helper()
	var answer struct {
		Result struct {
			Value string `json:"value"`
		} `json:"result"`
		Exception *struct {
			Text      string `json:"text"`
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
	}
	source := fmt.Sprintf("Promise.resolve(%s).then((v) => JSON.stringify(v ?? null))", expression)
	tab.Call("Runtime.evaluate", map[string]any{"expression": source, "awaitPromise": true, "returnByValue": true}, &answer)
	if answer.Exception != nil {
		tab.t.Fatalf("%s: %s %s", expression, answer.Exception.Text, answer.Exception.Exception.Description)
	}
	if out == nil {
		return
	}
	testkit.OK(tab.t, json.Unmarshal([]byte(answer.Result.Value), out))
}

// Until waits until an expression is true, for a minute at most.
func (tab *Tab) Until(expression string) {
	tab.t.Helper()
	tab.Within(time.Minute, expression)
}

// Within waits until an expression is true, for a time at most.
func (tab *Tab) Within(most time.Duration, expression string) {
	tab.t.Helper()
	const once = 10 * time.Second // less than a call may take
	for left := most; left > 0; left -= once {
		var ok bool
		tab.Eval(fmt.Sprintf(`new Promise((done) => {
			const end = performance.now() + %d
			const look = () => { let is = false; try { is = Boolean(%s) } catch {} ; is || performance.now() > end ? done(is) : setTimeout(look, 10) }
			look()
		})`, min(left, once).Milliseconds(), expression), &ok)
		if ok {
			return
		}
	}
	tab.t.Fatalf("waited %v until %s; the page says:\n%.3000s", most, expression, tab.Text("body"))
}

// Text is what the first element of a CSS selector says.
func (tab *Tab) Text(selector string) (text string) {
	tab.t.Helper()
	tab.Eval(fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector), &text)
	return text
}

// Reload loads the page again, after an address of it that differs in the fragment alone.
func (tab *Tab) Reload() {
	tab.t.Helper()
	var at string
	tab.Eval("location.href", &at)
	tab.Go("about:blank")
	tab.Go(at)
}

// Key presses keys one after the other: letters, or names such as Enter.
func (tab *Tab) Key(keys ...string) {
	tab.t.Helper()
	codes := map[string]int{"Enter": 13, "Escape": 27, "Tab": 9, "ArrowDown": 40, "ArrowUp": 38, "PageDown": 34, "Backspace": 8, " ": 32}
	for _, key := range keys {
		params := map[string]any{"type": "keyDown", "key": key, "windowsVirtualKeyCode": codes[key]}
		if len(key) == 1 {
			params["text"] = key
		} else if key == "Enter" {
			params["text"] = "\r"
		}
		tab.Call("Input.dispatchKeyEvent", params, nil)
		tab.Call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key, "windowsVirtualKeyCode": codes[key]}, nil)
	}
}

// Type types a text where the focus is.
func (tab *Tab) Type(text string) {
	tab.t.Helper()
	for _, key := range strings.Split(text, "") {
		tab.Key(key)
	}
}

// Search asks the page for the lines of an expression.
func (tab *Tab) Search(q string) {
	tab.t.Helper()
	tab.Key("/")
	tab.Eval(`document.querySelector('#q').select()`, nil)
	tab.Key("Backspace")
	tab.Type(q)
	tab.Key("Enter")
}

// Click waits for an element and clicks in its middle. What is named is a CSS selector, after
// that, if it has one, " text=" and a text of the element.
func (tab *Tab) Click(what string) {
	tab.t.Helper()
	x, y := tab.middle(what)
	tab.Drag(x, y, x, y)
}

// element is the script that finds what Click names.
func element(what string) string {
	selector, text, _ := strings.Cut(what, " text=")
	return fmt.Sprintf("[...document.querySelectorAll(%q)].find((e) => e.innerText.includes(%q) && e.getClientRects().length)", selector, text)
}

// middle is where an element is that has not moved for some frames.
func (tab *Tab) middle(what string) (x, y float64) {
	tab.t.Helper()
	tab.Until(element(what))
	tab.Eval(fmt.Sprintf("void %s?.scrollIntoView({block: 'nearest'})", element(what)), nil)
	var at [2]float64
	tab.Still(fmt.Sprintf("((r) => r && [r.x + r.width / 2, r.y + r.height / 2])(%s?.getBoundingClientRect())", element(what)), &at)
	return at[0], at[1]
}

// Still stores in out the value of an expression once it has not changed for some frames.
func (tab *Tab) Still(expression string, out any) {
	tab.t.Helper()
	tab.Eval(fmt.Sprintf(`(async () => {
		const look = () => JSON.stringify(%s)
		let value = look()
		for (let frames = 0, still = 0; still < 6 && frames < 600; frames++) {
			await new Promise(requestAnimationFrame)
			const now = look()
			still = now && now === value ? still + 1 : 0
			value = now
		}
		return value && JSON.parse(value)
	})()`, expression), out)
}

// Drag presses the mouse at one point and lets it go at another.
func (tab *Tab) Drag(x, y, toX, toY float64) {
	tab.t.Helper()
	mouse := func(kind string, x, y float64) {
		tab.Call("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1}, nil)
	}
	mouse("mouseMoved", x, y)
	mouse("mousePressed", x, y)
	if x != toX || y != toY {
		mouse("mouseMoved", (x+toX)/2, (y+toY)/2)
		mouse("mouseMoved", toX, toY)
	}
	mouse("mouseReleased", toX, toY)
}

// Wheel turns the wheel over an element.
func (tab *Tab) Wheel(what string, by float64) {
	tab.t.Helper()
	x, y := tab.middle(what)
	tab.Call("Input.dispatchMouseEvent", map[string]any{"type": "mouseWheel", "x": x, "y": y, "deltaX": 0, "deltaY": by}, nil)
}

// Size sets how large the window is.
func (tab *Tab) Size(width, height int) {
	tab.t.Helper()
	tab.Call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 640}, nil)
}

// Dark sets whether the system prefers a dark theme.
func (tab *Tab) Dark(dark bool) {
	tab.t.Helper()
	value := map[bool]string{false: "light", true: "dark"}[dark]
	tab.Call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": value}}}, nil)
}

// Screenshot is what the window shows, a PNG.
func (tab *Tab) Screenshot() []byte {
	tab.t.Helper()
	var answer struct {
		Data string `json:"data"`
	}
	tab.Call("Page.captureScreenshot", map[string]any{"format": "png"}, &answer)
	data, err := base64.StdEncoding.DecodeString(answer.Data)
	testkit.OK(tab.t, err)
	return data
}

// Worked is how long the page's own thread has used a processor, on a busy machine too.
func (tab *Tab) Worked() time.Duration {
	tab.t.Helper()
	tab.Call("Performance.enable", map[string]any{"timeDomain": "threadTicks"}, nil)
	var answer struct {
		Metrics []struct {
			Name  string  `json:"name"`
			Value float64 `json:"value"`
		} `json:"metrics"`
	}
	tab.Call("Performance.getMetrics", map[string]any{}, &answer)
	for _, m := range answer.Metrics {
		if m.Name == "TaskDuration" {
			return time.Duration(m.Value * float64(time.Second))
		}
	}
	return 0
}

// Smooth watches a page until end is called, which fails the test unless 99 of 100 frames take 50 ms, each task
// 200 ms, the tab 300 MiB and its list 200 rows at most. Processors that have other things to do make frames late;
// how long the page's thread had one does not depend on them.
func (tab *Tab) Smooth(b *Browser) (end func()) {
	tab.t.Helper()
	tab.Eval(`void (() => {
		window.frames_ = []; window.tasks = []
		let last = performance.now()
		const frame = (now) => { frames_.push(now - last); last = now; requestAnimationFrame(frame) }
		requestAnimationFrame(frame)
		new PerformanceObserver((list) => tasks.push(...list.getEntries().map((e) => e.duration))).observe({ type: 'longtask' })
	})()`, nil)
	before := tab.Worked()
	return func() {
		tab.t.Helper()
		var got struct{ Frames, P99, Longest, Heap, Rows float64 }
		tab.Eval(`(() => { const f = [...frames_].sort((a, b) => a - b)
			return { Frames: f.length, P99: f[Math.floor(f.length * 0.99)], Longest: Math.max(0, ...tasks), Heap: performance.memory.usedJSHeapSize / 2 ** 20, Rows: document.querySelectorAll('.row').length } })()`, &got)
		worked, size := (tab.Worked()-before).Seconds()*1000/got.Frames, b.Memory(tab.t)
		tab.t.Logf("%v frames, p99 %.0f ms, %.1f ms of work (mean), longest task %.0f ms, %v rows in the document, heap %.0f MiB, tab %d MiB", got.Frames, got.P99, worked, got.Longest, got.Rows, got.Heap, size>>20)
		if got.P99 > 50 || got.Longest > 200 || size>>20 > 300 || got.Rows > 200 {
			tab.t.Error("want frames of 50 ms, tasks of 200 ms, 300 MiB and 200 rows at most")
		}
	}
}

// Memory is how many bytes the tab that takes most has for itself: the program of the browser, which all
// share, is left out. It is 0 where /proc does not tell.
func (b *Browser) Memory(t testing.TB) (most int64) {
	t.Helper()
	var answer struct {
		Info []struct {
			Type string `json:"type"`
			ID   int    `json:"id"`
		} `json:"processInfo"`
	}
	testkit.OK(t, chromedp.FromContext(b.ctx).Browser.Call(b.ctx, "SystemInfo.getProcessInfo", map[string]any{}, &answer))
	for _, p := range answer.Info {
		if p.Type != "renderer" {
			continue
		}
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.ID)) // it may have ended
		_, rest, _ := strings.Cut(string(status), "RssAnon:")
		var kib int64
		_, _ = fmt.Sscan(rest, &kib)
		most = max(most, kib<<10)
	}
	return most
}
